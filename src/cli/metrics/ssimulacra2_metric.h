// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2 in the table of metrics: it scores pictures with their profiles and alpha, and
// video, with an option for every choice of colour that a file may leave open.
#pragma once

#include "src/cli/metrics/metric.h"

namespace similis::cli {

Metric ssimulacra2_metric();

}  // namespace similis::cli
