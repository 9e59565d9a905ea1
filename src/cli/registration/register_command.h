// SPDX-License-Identifier: Apache-2.0
// `similis register`: finds the map that lays one volume over another, and writes it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace similis::cli {

/// The command line as typed, not yet parsed.
struct RegisterCommand {
  std::string fixed, moving;  ///< paths
  std::string output;         ///< the beginning of the names of files; a folder if it ends in /
  std::string stages = "rigid,affine,deformable";
  std::string init = "auto";  ///< auto, centers, moments, identity, or a file
  std::string preset = "balanced";
  std::vector<std::string> metrics;  ///< empty: lncc and ncc
  std::string linear_metric = "mi=bins=32";
  std::string iterations, levels;                             ///< as 50x40x20; empty: the preset's
  std::string fluid, elastic, step, min_jacobian, tolerance;  ///< numbers; empty: the defaults
  std::string fixed_mask, moving_mask, fixed_labels, moving_labels;
  std::vector<std::pair<std::string, std::string>> channels;  ///< further ones: paths
  std::string not_finite = "error";
  std::vector<std::string> also;  ///< paths, or PATH:label
  bool writes_jacobian = false, is_plain = false;
  bool has_no_page = false;  ///< no report.html
  std::string seed;          ///< of a metric's sampling; empty: 0
  std::string device = "auto";
  std::string threads;  ///< empty: one per core
  std::string format = "table";
  std::string command;  ///< the whole, for the page
};

/// Writes the transforms, the warped volumes, report.json and report.html, and prints a report.
/// Returns the exit status: 128 and the number of the signal after an interruption, which leaves
/// nothing behind.
int register_volumes(const RegisterCommand& command);

}  // namespace similis::cli
