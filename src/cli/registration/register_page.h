// SPDX-License-Identifier: Apache-2.0
// report.html of `similis register`.
#pragma once

#include <string>

#include "src/cli/registration/register_report.h"

namespace similis::cli {

/// Moving on fixed's grid, and what the page names.
struct RegisterPage {
  const RegisterReport& report;
  const Json& numbers;  ///< report_json()
  const media::Volume &before, &affine, &warped;
  std::string command;  ///< as typed
};

/// The page as HTML that needs no other file and makes no request.
std::string register_page_html(const RegisterPage& page);

}  // namespace similis::cli
