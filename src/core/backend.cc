// SPDX-License-Identifier: Apache-2.0
#include "src/core/backend.h"

#include <cstdlib>
#include <mutex>

#include "hwy/highway.h"
#include "similis/info.hpp"
#include "similis/version.h"
#include "src/core/joined.h"
#include "src/core/parallel.h"
#include "src/core/require.h"
#include "src/gpu/device.h"

namespace similis {
namespace {

std::string variable(const char* variable_name) {
  const char* text = std::getenv(variable_name);
  return text == nullptr ? "" : text;
}

std::vector<std::int64_t> targets_in(std::int64_t mask) {
  std::vector<std::int64_t> targets;
  for (std::int64_t bits = mask; bits != 0; bits &= bits - 1) targets.push_back(bits & -bits);
  return targets;
}

std::vector<std::string> names(const std::vector<std::int64_t>& targets) {
  std::vector<std::string> result;
  for (const std::int64_t target : targets) result.push_back(simd_target_name(target));
  return result;
}

// Leaves only the target that the environment names.
void apply_simd_target_variable() {
  const std::string wanted = variable("SIMILIS_SIMD_TARGET");
  if (wanted.empty()) return;
  for (const std::int64_t target : simd_targets()) {
    if (simd_target_name(target) != wanted) continue;
    hwy::SetSupportedTargetsForTest(target);
    return;
  }
  throw InvalidArgument(
      fmt::format("SIMILIS_SIMD_TARGET is \"{}\"; this build on this processor takes {}", wanted,
          joined(names(simd_targets()), ", ")));
}

void prepare_simd_target() {
  static std::mutex mutex;
  static bool prepared = false;
  const std::lock_guard lock(mutex);
  if (prepared) return;
  apply_simd_target_variable();
  prepared = true;
}

std::string checked_backend_variable() {
  const std::string backend = variable("SIMILIS_BACKEND");
  require(backend.empty() || backend == "auto" || backend == "cpu" || backend == "cuda" ||
              backend == "vulkan",
      "SIMILIS_BACKEND is \"{}\"; it must be auto, cpu, cuda or vulkan", backend);
  return backend;
}

}  // namespace

std::string simd_target_name(std::int64_t target) { return hwy::TargetName(target); }

std::vector<std::int64_t> simd_targets() {
  static const std::vector<std::int64_t> targets =
      targets_in(hwy::SupportedTargets() & HWY_TARGETS);
  return targets;
}

void force_simd_target(std::int64_t target) {
  simd_targets();  // remembers what there is before hiding it
  prepare_simd_target();
  hwy::SetSupportedTargetsForTest(target);
  if (target == 0) apply_simd_target_variable();
}

void require_backend(Device device, const char* operation, bool is_offered) {
  const std::string backend = checked_backend_variable();
  const bool is_free = backend.empty() || backend == "auto";
  if (device.kind == DeviceKind::cpu) {
    require(is_free || backend == "cpu",
        "{}: the images are on the CPU, and SIMILIS_BACKEND is \"{}\"; move them to the GPU or "
        "unset it",
        operation, backend);
    prepare_simd_target();
    return;
  }
  require(backend != "cpu",
      "{}: the images are on {}, and SIMILIS_BACKEND is \"cpu\"; move them to the CPU or unset it",
      operation, device);
  require(is_free || backend == name(device.kind),
      "{}: the images are on {}, and SIMILIS_BACKEND is \"{}\"; move them there or unset it",
      operation, device, backend);
  if (gpu::device_functions(device.kind) == nullptr) {
    throw DeviceError(
        fmt::format("{}: the images are on {}, and this build of similis has no {} code", operation,
            device, device.kind == DeviceKind::vulkan ? "Vulkan" : "GPU"));
  }
  if (!is_offered) {
    throw DeviceError(fmt::format("{}: the images are on {}; this operation {}", operation, device,
        device.kind == DeviceKind::vulkan ? "has no kernels for Vulkan" : "runs on the CPU only"));
  }
  if (!gpu::exists(device)) {
    throw DeviceError(
        fmt::format("{}: the images are on {}; {}", operation, device, gpu::describe(device.kind)));
  }
}

Device device_of(const char* operation, Device device, const Execution& exec) {
  const DeviceKind queue = exec.queue.kind;
  if (queue == DeviceKind::vulkan && device.kind == DeviceKind::cpu) {
    const gpu::DeviceFunctions* const functions = gpu::device_functions(queue);
    return {queue, functions == nullptr ? 0 : functions->index_of(exec.queue.handle)};
  }
  if (queue == DeviceKind::cpu || device.kind == DeviceKind::cpu) return device;
  require(queue == device.kind,
      "{}: the images are on {}, and execution.queue is a queue of {}; both must be of one kind",
      operation, device, name(queue));
  return device;
}

Info info() {
  Info result;
  result.version = SIMILIS_VERSION;
  const std::vector<std::int64_t> supported = simd_targets();
  prepare_simd_target();
  result.simd_targets = names(supported);
  for (const std::int64_t target : targets_in(HWY_TARGETS)) {
    const std::string target_name = simd_target_name(target);
    bool is_supported = false;
    for (const std::string& other : result.simd_targets) is_supported |= other == target_name;
    if (!is_supported) result.unsupported_simd_targets.push_back(target_name);
  }
  const std::string wanted = variable("SIMILIS_SIMD_TARGET");
  result.simd_target = wanted.empty() ? result.simd_targets.front() : wanted;
  result.simd_target_reason =
      wanted.empty() ? "the best this processor has" : "SIMILIS_SIMD_TARGET asks for it";
  result.threads = default_threads();
  checked_backend_variable();
  for (const DeviceKind kind : gpu::kKinds) {
    result.gpu_backends.push_back({.kind = kind,
        .is_compiled = gpu::device_functions(kind) != nullptr,
        .description = gpu::describe(kind)});
  }
  return result;
}

}  // namespace similis
