// SPDX-License-Identifier: Apache-2.0
// VMAF of a clip, and the features that its models read, in all 64 bits of libvmaf's C code.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "similis/api.h"
#include "similis/execution.hpp"
#include "similis/tensor.hpp"

namespace similis {

struct VmafOptions {
  /// Models as `similis vmaf -m` takes them: "version=vmaf_v0.6.1neg:name=neg",
  /// "path=model.json:disable_clip"; without a "=", the version or the path alone: "vmaf_v0.6.1".
  std::vector<std::string> models = {"vmaf_v0.6.1"};
  /// Further features: "vif", "adm=adm_enhn_gain_limit=1.2:debug=true", "motion".
  std::vector<std::string> features = {};
  std::optional<int> bit_depth = {};  ///< 8, 10, 12 or 16; empty: 8 for u8, 16 for u16
};

/// VMAF of each frame of a clip by the first of options.models.
/// reference, distorted: luma planes [N,H,W] of consecutive frames, or one plane [H,W]; u8, or u16
/// with samples in the low bits; alike in all but their strides; on the CPU or on one GPU (CUDA).
/// Returns f64 on their device: [N], or a scalar. Exact: the bits are the same on a GPU, on every
/// vector target and for any number of threads. On a GPU the call waits for exec.queue.
/// Workspace: 6 B a pixel of one frame, and a copy of planes whose rows are not dense; on a GPU 4 B
/// a pixel of the frames that go together, up to 64 and 160 MB or one, and two reference frames.
/// Throws InvalidArgument if the planes are not that, a side is below 33, there is no such model,
/// options.models is empty, bit_depth does not fit the dtype, a sample is above 2^bit_depth - 1, or
/// the features include cambi and the planes are on a GPU.
SIMILIS_API Tensor vmaf(const TensorView& reference, const TensorView& distorted,
    const VmafOptions& options = {}, const Execution& exec = {});

/// value: shaped as vmaf()'s result, f64, dense.
SIMILIS_API void vmaf_into(const TensorView& reference, const TensorView& distorted,
    const TensorView& value, const VmafOptions& options = {}, const Execution& exec = {});

/// The numbers of one frame, by VmafScorer::columns().
struct VmafNumbers {
  std::int64_t frame = 0;
  std::vector<double> values;
};

/// Scores a clip frame by frame: every model and feature in one pass, each feature once. It keeps
/// the reference's luma of one frame, or two with motion_five_frame_window.
class SIMILIS_API VmafScorer {
 public:
  /// Throws InvalidArgument for options that vmaf() refuses, or frames that are too small; models
  /// may be empty if features are not.
  VmafScorer(std::int64_t height, std::int64_t width, const VmafOptions& options = {});
  ~VmafScorer();
  VmafScorer(VmafScorer&&) noexcept;
  VmafScorer& operator=(VmafScorer&&) noexcept;

  /// libvmaf's names: of features, then of what waits for the next frame, then of models.
  const std::vector<std::string>& columns() const;
  /// Takes the next frame's planes [H,W], or those of several frames [N,H,W], which may be reused
  /// at once. All frames lie on the CPU or all on one GPU, where several in a call are faster, and
  /// the call waits for exec.queue. Throws as vmaf() does; the scorer is then as it was.
  void push(const TensorView& reference, const TensorView& distorted, const Execution& exec = {});
  /// Says that no frame comes any more.
  void finish();
  /// The next frame whose numbers are all known; empty if there is none. Frames are ready when the
  /// next one (with motion_five_frame_window: the two next) has come, or after finish().
  std::optional<VmafNumbers> pop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace similis
