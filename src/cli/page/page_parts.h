// SPDX-License-Identifier: Apache-2.0
// The texts that a report's page is put together from; cmake/report_page.cmake writes them.
#pragma once

namespace similis::cli {

extern const char* const kPage_html;  ///< with places such as {{data}}
extern const char* const kPage_css;
extern const char* const kPage_js;          ///< tables, charts, slider
extern const char* const kRegistration_js;  ///< the result of `similis register`, by these
extern const char* const kSections_js;      ///< the content of a report, by all of these
extern const char* const kChart_js;         ///< Chart.js; empty if the build found none
extern const char* const kChartLicence;

}  // namespace similis::cli
