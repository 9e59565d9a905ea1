// SPDX-License-Identifier: Apache-2.0
// Letters of 5×7 dots for the labels of pictures.
#pragma once

#include <functional>
#include <string_view>

namespace similis::cli {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 7;
inline constexpr int kGlyphAdvance = 6;  ///< from one letter to the next

/// Dots between the outermost edges of the text.
int text_width(std::string_view text);

/// Calls dot(x, y) for every dot of the text, from its upper left corner on. Digits, lower-case
/// letters, the sides of a body (R, L, A, P, S, I) and ".,-=" have glyphs; everything else is
/// blank.
void draw_text(std::string_view text, const std::function<void(int x, int y)>& dot);

}  // namespace similis::cli
