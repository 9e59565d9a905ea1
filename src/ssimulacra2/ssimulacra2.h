// SPDX-License-Identifier: Apache-2.0
// SSIMULACRA 2.1 as it is handed to a backend: pictures checked, blends chosen, scales laid out.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "similis/execution.hpp"
#include "similis/ssimulacra2.hpp"
#include "similis/tensor.hpp"
#include "src/core/operation.h"
#include "src/ssimulacra2/score.h"

namespace similis::ssimulacra2_internal {

/// Pictures of one side: [N,C,H,W].
struct Pictures {
  TensorView samples;
  Ssimulacra2Transfer transfer = Ssimulacra2Transfer::srgb;

  std::int64_t count() const { return samples.shape[0]; }
  int channels() const { return static_cast<int>(samples.shape[1]); }
  std::int64_t height() const { return samples.shape[2]; }
  std::int64_t width() const { return samples.shape[3]; }
  bool has_alpha() const { return channels() % 2 == 0; }
  bool is_grey() const { return channels() <= 2; }
  /// The picture with this number alone.
  Pictures picture(std::int64_t index) const;
};

/// The sample assumed behind transparent pixels; not read without alpha.
using Background = float;

/// The scores of one pair over these backgrounds; the lowest is the pair's.
struct Backgrounds {
  int count;
  std::array<Background, 2> values;
};
Backgrounds backgrounds_of(bool reference_has_alpha);

/// The part of the work that depends on a reference alone, over one background.
struct Pyramid;

/// One picture against another over one background, on the CPU.
struct CpuPass {
  Pictures x;  ///< not read where pyramid is given
  Pictures y;  ///< empty samples: the pyramid of x alone is wanted
  Background background = 0.5f;
  Ssimulacra2Mode mode = Ssimulacra2Mode::exact;
  const Pyramid* pyramid = nullptr;   ///< the reference's, from make_pyramid_cpu()
  const LossWeights* loss = nullptr;  ///< for the map; empty: sums alone
  float* map = nullptr;               ///< [H,W]; each pixel's share is added to it
};
PairSums sums_cpu(const CpuPass& pass, const Execution& exec);

std::shared_ptr<const Pyramid> make_pyramid_cpu(
    const Pictures& x, Background background, Ssimulacra2Mode mode, const Execution& exec);

/// Writes the score of each pair of two batches on a GPU, queued on exec.queue.
void ssimulacra2_cuda(const Pictures& x, const Pictures& y, Ssimulacra2Mode mode, double* scores,
    const Execution& exec);

/// Pairs to score; on the CPU also maps of what each pixel loses.
struct ScorePass {
  Pictures x, y;
  Ssimulacra2Mode mode;
  TensorView value;  ///< f64, dense; empty if not wanted
  TensorView map;    ///< f32, dense; likewise
};
void ssimulacra2_cpu(const ScorePass& pass, const Execution& exec);

/// The same scores through Vulkan, of buffers or of pictures on the CPU; mode exact alone.
void ssimulacra2_vulkan(const ScorePass& pass, const Execution& exec);

extern const Operation<ScorePass> kSsimulacra2;
/// The same with a map, or against a reference that is kept: on the CPU alone.
extern const Operation<ScorePass> kSsimulacra2Map;

}  // namespace similis::ssimulacra2_internal
