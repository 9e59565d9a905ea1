// SPDX-License-Identifier: Apache-2.0
// `--report`: results as one HTML file that needs no other and makes no request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/cli/terminal/json_text.h"

namespace similis::cli {

/// Pages stay below this.
inline constexpr std::size_t kMostPageBytes = 5000000;

/// Throws UsageError, naming the option or command, if this build cannot make pages.
void require_pages(std::string_view argument);

/// A section for a document that report_document() made. Takes the frames out of it and packs them.
/// `images`: page_images.h's; null if there are none. `bytes`: what the section may take of the
/// page.
Json page_section(Json document, std::size_t bytes);

/// The page of these sections.
std::string page_html(const std::vector<Json>& sections);

/// Path, size and SHA-256 of each path that is a regular file; of an image sequence those of its
/// files one after the other, and their number; only the path of others.
Json page_files(const std::vector<std::string>& paths);

/// Bytes as text for a page: "data:image/png;base64,…" without what comes before the comma.
std::string base64(std::string_view bytes);

}  // namespace similis::cli
