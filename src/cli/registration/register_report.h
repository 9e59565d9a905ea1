// SPDX-License-Identifier: Apache-2.0
// The results of `similis register`, in numbers.
#pragma once

#include <string>
#include <vector>

#include "src/cli/registration/register_command.h"
#include "src/cli/registration/register_files.h"
#include "src/cli/registration/register_labels.h"
#include "src/cli/terminal/json_text.h"
#include "src/registration/report.h"

namespace similis::cli {

struct RegisterReport {
  const RegisterCommand& command;
  const RegisterOptions& options;
  const RegisterInput &fixed, &moving;
  const Registration& result;
  Device device;  ///< that it ran on
  registration_internal::ReportedSimilarity similarity;
  Tensor jacobian;                 ///< empty without a deformable stage
  std::vector<LabelOverlap> dice;  ///< of --fixed-labels and --moving-labels
  double seconds = 0;
};

/// As report.json has it.
Json report_json(const RegisterReport& report);

/// The same in words for the terminal.
std::string report_table(const Json& report);

}  // namespace similis::cli
