// SPDX-License-Identifier: Apache-2.0
// libsimilis_xpu_N.so: compiles a kernel's text for the device of a SYCL queue, and launches it
// there. The queue and the memory are torch's; python/similis/_torch/xpu_queue.py calls it.
//
// Built by a plain C++ compiler against the headers of SYCL's runtime: the kernels are text, which
// the runtime itself compiles.
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <sycl/sycl.hpp>
#include <vector>

namespace {

namespace oneapi = sycl::ext::oneapi::experimental;

// Push constants by value, as large as Vulkan's devices all take.
struct Push {
  unsigned long words[32];
};

thread_local std::string last_error;

template <class Call> int guarded(const Call& call) {
  try {
    call();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "an unknown exception";
  }
  return 1;
}

sycl::kernel compiled(const sycl::queue& queue, const char* text) {
  const std::vector<std::string> options{"-std=c++20", "-ffp-contract=off", "-w"};
  std::string log;
  try {
    auto source = oneapi::create_kernel_bundle_from_source(
        queue.get_context(), oneapi::source_language::sycl, std::string(text));
    auto built = oneapi::build(source, std::vector<sycl::device>{queue.get_device()},
        oneapi::properties{oneapi::build_options{options}, oneapi::save_log{&log}});
    return built.ext_oneapi_get_kernel("similis_kernel");
  } catch (const sycl::exception& error) {
    throw std::runtime_error(std::string("SYCL's compiler: ") + error.what() + " " + log);
  }
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

/// The words of the last failure on this thread.
EXPORT const char* similis_xpu_last_error() { return last_error.c_str(); }

/// Compiles a free-function kernel named similis_kernel. It is never released: a process has a few.
/// Returns 0, or 1 for a failure.
EXPORT int similis_xpu_compile(void* queue, const char* text, void** kernel) {
  return guarded(
      [&] { *kernel = new sycl::kernel(compiled(*static_cast<sycl::queue*>(queue), text)); });
}

/// Queues a kernel, whose arguments are the push constants and the buffers, and returns at once.
/// groups, size: of the grid and of a group, along x, y and z.
EXPORT int similis_xpu_launch(void* queue, void* kernel, const void* push, std::size_t push_bytes,
    void* const* buffers, int count, const std::size_t* groups, const std::size_t* size) {
  return guarded([&] {
    Push block{};
    if (push_bytes > sizeof block) throw std::runtime_error("push constants are above 256 bytes");
    std::memcpy(&block, push, push_bytes);
    static_cast<sycl::queue*>(queue)->submit([&](sycl::handler& handler) {
      handler.set_arg(0, block);
      for (int i = 0; i < count; ++i) handler.set_arg(i + 1, buffers[i]);
      const sycl::range<3> local(size[2], size[1], size[0]);
      const sycl::range<3> global(groups[2] * size[2], groups[1] * size[1], groups[0] * size[0]);
      handler.parallel_for(
          sycl::nd_range<3>(global, local), *static_cast<const sycl::kernel*>(kernel));
    });
  });
}
