// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2 in the table of metrics: of pictures with their profiles and alpha, and of video
// with every choice of colour that its file leaves open.
#pragma once

#include "src/cli/metrics/metric.h"

namespace similis::cli {

Metric ssimulacra2_metric();

}  // namespace similis::cli
