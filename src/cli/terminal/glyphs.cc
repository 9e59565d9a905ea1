// SPDX-License-Identifier: Apache-2.0
#include "src/cli/terminal/glyphs.h"

#include <cstddef>

namespace similis::cli {
namespace {

struct Glyph {
  char letter;
  const char* rows;  // seven of five dots
};

// clang-format off
constexpr Glyph kGlyphs[] = {
    {'0', " ### " "#   #" "#  ##" "# # #" "##  #" "#   #" " ### "},
    {'1', "  #  " " ##  " "  #  " "  #  " "  #  " "  #  " " ### "},
    {'2', " ### " "#   #" "    #" "  ## " " #   " "#    " "#####"},
    {'3', " ### " "#   #" "    #" "  ## " "    #" "#   #" " ### "},
    {'4', "   # " "  ## " " # # " "#  # " "#####" "   # " "   # "},
    {'5', "#####" "#    " "#### " "    #" "    #" "#   #" " ### "},
    {'6', "  ## " " #   " "#    " "#### " "#   #" "#   #" " ### "},
    {'7', "#####" "    #" "   # " "  #  " "  #  " "  #  " "  #  "},
    {'8', " ### " "#   #" "#   #" " ### " "#   #" "#   #" " ### "},
    {'9', " ### " "#   #" "#   #" " ####" "    #" "   # " " ##  "},
    {'.', "     " "     " "     " "     " "     " " ##  " " ##  "},
    {',', "     " "     " "     " "     " " ##  " "  #  " " #   "},
    {'-', "     " "     " "     " "#####" "     " "     " "     "},
    {'=', "     " "     " "#####" "     " "#####" "     " "     "},
    {'a', "     " "     " " ### " "    #" " ####" "#   #" " ####"},
    {'b', "#    " "#    " "#### " "#   #" "#   #" "#   #" "#### "},
    {'c', "     " "     " " ### " "#    " "#    " "#   #" " ### "},
    {'d', "    #" "    #" " ####" "#   #" "#   #" "#   #" " ####"},
    {'e', "     " "     " " ### " "#   #" "#####" "#    " " ### "},
    {'f', "  ## " " #  #" " #   " "###  " " #   " " #   " " #   "},
    {'g', "     " " ####" "#   #" "#   #" " ####" "    #" " ### "},
    {'h', "#    " "#    " "# ## " "##  #" "#   #" "#   #" "#   #"},
    {'i', "  #  " "     " " ##  " "  #  " "  #  " "  #  " " ### "},
    {'j', "   # " "     " "  ## " "   # " "   # " "#  # " " ##  "},
    {'k', "#    " "#    " "#  # " "# #  " "##   " "# #  " "#  # "},
    {'l', " ##  " "  #  " "  #  " "  #  " "  #  " "  #  " " ### "},
    {'m', "     " "     " "## # " "# # #" "# # #" "#   #" "#   #"},
    {'n', "     " "     " "# ## " "##  #" "#   #" "#   #" "#   #"},
    {'o', "     " "     " " ### " "#   #" "#   #" "#   #" " ### "},
    {'p', "     " "     " "#### " "#   #" "#### " "#    " "#    "},
    {'q', "     " "     " " ## #" "#  ##" " ####" "    #" "    #"},
    {'r', "     " "     " "# ## " "##  #" "#    " "#    " "#    "},
    {'s', "     " "     " " ### " "#    " " ### " "    #" "#### "},
    {'t', " #   " " #   " "###  " " #   " " #   " " #  #" "  ## "},
    {'u', "     " "     " "#   #" "#   #" "#   #" "#  ##" " ## #"},
    {'v', "     " "     " "#   #" "#   #" "#   #" " # # " "  #  "},
    {'w', "     " "     " "#   #" "#   #" "# # #" "# # #" " # # "},
    {'x', "     " "     " "#   #" " # # " "  #  " " # # " "#   #"},
    {'y', "     " "     " "#   #" "#   #" " ####" "    #" " ### "},
    {'z', "     " "     " "#####" "   # " "  #  " " #   " "#####"},
};
// clang-format on

void draw_glyph(const Glyph& glyph, int left, const std::function<void(int x, int y)>& dot) {
  for (int y = 0; y < kGlyphHeight; ++y) {
    for (int x = 0; x < kGlyphWidth; ++x) {
      if (glyph.rows[y * kGlyphWidth + x] == '#') dot(left + x, y);
    }
  }
}

}  // namespace

int text_width(std::string_view text) {
  if (text.empty()) return 0;
  return static_cast<int>(text.size()) * kGlyphAdvance - (kGlyphAdvance - kGlyphWidth);
}

void draw_text(std::string_view text, const std::function<void(int x, int y)>& dot) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const Glyph& glyph : kGlyphs) {
      if (glyph.letter == text[i]) draw_glyph(glyph, static_cast<int>(i) * kGlyphAdvance, dot);
    }
  }
}

}  // namespace similis::cli
