// SPDX-License-Identifier: Apache-2.0
#include "bench/image_pair_bench.h"

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "bench/peak_memory.h"
#include "src/core/joined.h"
#include "tests/arrays.h"

namespace similis::bench {
namespace {

struct Images {
  test::Array x, y;
};

// Noise is never zero for long, so no processor or compiler gets away with less work. Only the
// images of the case at hand are kept.
const Images& images_of(const Extents& shape, DType dtype) {
  static Images images;
  if (images.x.shape == shape && images.x.dtype == dtype) return images;
  images = {};
  const double range = dtype == DType::u8 ? 255 : dtype == DType::u16 ? 1023 : 1;
  images.x = test::noise(shape, dtype, test::Layout::dense, 1, range);
  images.y = test::noise(shape, dtype, test::Layout::dense, 2, range);
  return images;
}

// Counts what an operation holds at a time. Operations allocate on the calling thread alone.
class CountingAllocator {
 public:
  Allocator allocator() { return {.allocate = allocate, .release = release, .context = this}; }
  std::size_t peak_bytes() const { return peak_bytes_; }

 private:
  static void* allocate(void* context, std::size_t bytes, Device, void*) {
    auto& self = *static_cast<CountingAllocator*>(context);
    self.bytes_ += bytes;
    self.peak_bytes_ = std::max(self.peak_bytes_, self.bytes_);
    return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  }
  static void release(void* context, void* pointer, std::size_t bytes, Device, void*) {
    static_cast<CountingAllocator*>(context)->bytes_ -= bytes;
    std::free(pointer);
  }
  std::size_t bytes_ = 0, peak_bytes_ = 0;
};

void run(
    benchmark::State& state, Operation operation, const Extents& shape, DType dtype, int threads) {
  const Images& images = images_of(shape, dtype);
  ThreadPool pool(threads);
  const Execution exec{.runner = pool.runner()};
  operation(images.x, images.y, exec);
  for (auto _ : state) operation(images.x, images.y, exec);

  CountingAllocator counting;
  const Execution counted{.allocator = counting.allocator(), .runner = pool.runner()};
  const std::int64_t resident = peak_bytes([&] { operation(images.x, images.y, counted); });
  const auto elements = static_cast<double>(shape.count());
  state.counters["resident_B/elem"] = static_cast<double>(resident) / elements;
  state.counters["allocated_B/elem"] = static_cast<double>(counting.peak_bytes()) / elements;
}

}  // namespace

bool add(const char* name, Operation operation, const Extents& shape, DType dtype) {
  static constexpr const char* kShortNames[] = {"u8", "u16", "f16", "bf16", "f32", "f64"};
  for (const int threads : {1, 2}) {
    const std::string full_name = fmt::format("{}/{}/{}/threads:{}", name, joined(shape, "x"),
        kShortNames[static_cast<int>(dtype)], threads);
    benchmark::RegisterBenchmark(full_name.c_str(),
        [=](benchmark::State& state) { run(state, operation, shape, dtype, threads); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  return true;
}

}  // namespace similis::bench
