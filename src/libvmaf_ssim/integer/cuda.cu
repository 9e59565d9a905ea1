// SPDX-License-Identifier: Apache-2.0
// Integer SSIM on the GPU: four launches take all pairs of a batch, and nothing is done on the
// host.
//   terms    raw samples ─> term of each pixel, read once                     8 B a pixel written
//            and the plain sum of each block's terms
//   starts   plain sums ─> about what the running sum is at each stripe
//   maps     terms ─> what each chunk does to the running sum, by binade      8 B a pixel read
//   walk     maps ─> the sum with the bits of a loop, a warp a frame: 32 maps at once, their terms
//            only where it leaves a binade; the score
// Terms are kept rather than computed twice: where the sum wanders about 0 the walk needs many of
// them, and the maps need to know about where the sum will be. Moments never leave registers and
// one row of shared memory. A thread moves a window down its column (column.h).
#include <algorithm>

#include "src/core/tensor/memory.h"
#include "src/gpu/cuda/vendor.h"
#include "src/libvmaf_ssim/integer/column.h"
#include "src/libvmaf_ssim/integer/ordered_walk.h"
#include "src/libvmaf_ssim/libvmaf_ssim.h"

namespace similis::libvmaf_ssim_internal {
namespace {

constexpr int kThreads = 256;
constexpr int kColumns =
    kThreads - 2 * kRadius;  // the other threads only feed their neighbours (3 %)
constexpr int kRows = 32;    // rows of a stripe, which reads 8 more; at 4K the blocks fill the GPU
// Several frames go together, as long as their terms take at most 512 MB, so that the walk of one
// runs beside the kernels of another.
constexpr std::int64_t kMostTerms = std::int64_t{1} << 26, kMostFrames = 32768;

// A batch of planes and its division into tiles and stripes.
struct Frames {
  const void *x, *y;
  std::int64_t strides_x[3], strides_y[3];
  std::int64_t count, height, width;
  int bit_depth;
  std::int64_t tiles, stripes;

  explicit Frames(const PlanePairs& planes)
      : x(planes.x.data()),
        y(planes.y.data()),
        count(planes.count()),
        height(planes.height()),
        width(planes.width()),
        bit_depth(planes.bit_depth),
        tiles((width + kColumns - 1) / kColumns),
        stripes((height + kRows - 1) / kRows) {
    for (int axis = 0; axis < 3; ++axis) {
      strides_x[axis] = planes.x.strides[axis];
      strides_y[axis] = planes.y.strides[axis];
    }
  }
  std::int64_t pixels() const { return height * width; }
};

// Arrays that one launch hands to the next.
struct Workspace {
  double* terms;      // [frame][row][column]
  double* tile_sums;  // [frame][stripe][tile]; NaN where a sample has more bits than bit_depth
  double* starts;     // [frame][stripes + 1]
  ChunkMap* chunks;   // [frame][chunk]
  ChunkMap* groups;   // [frame][group]
};

__device__ double not_a_number() { return bits_as<double>(std::uint64_t{0x7ff8} << 48); }

// Returns a weight along one axis; most windows are whole.
__device__ int weight_along(std::int64_t position, std::int64_t extent) {
  constexpr int whole = 256;
  const bool is_whole = position >= kRadius && position < extent - kRadius;
  return is_whole ? whole : weight_inside(position, extent);
}

template <class Sample, class Sums>
__global__ __launch_bounds__(kThreads, Sums::blocks) void terms_kernel(Frames f, Workspace out) {
  using Down = typename Sums::Down;
  using Across = typename Sums::Across;
  __shared__ Down down[2][Sums::products][kThreads];  // two rows: one barrier a row is enough
  __shared__ int weights_down[kRows];
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t frame = blockIdx.y;
  const std::int64_t column = blockIdx.x % f.tiles * kColumns + t - kRadius;
  const std::int64_t first = blockIdx.x / f.tiles * kRows;
  const std::int64_t end = first + kRows < f.height ? first + kRows : f.height;
  const bool is_inside = column >= 0 && column < f.width;
  const bool owns = t >= kRadius && t < kThreads - kRadius && column < f.width;
  const int middle = middle_of_range(f.bit_depth), peak = (1 << f.bit_depth) - 1;
  const auto* x = static_cast<const Sample*>(f.x) + frame * f.strides_x[0] +
                  (is_inside ? column : 0) * f.strides_x[2];
  const auto* y = static_cast<const Sample*>(f.y) + frame * f.strides_y[0] +
                  (is_inside ? column : 0) * f.strides_y[2];
  double* terms = out.terms + frame * f.height * f.width + column;
  const int weight_across = owns ? weight_along(column, f.width) : 0;
  if (t < kRows) weights_down[t] = weight_along(first + t, f.height);
  int weight_down = 0;
  Weight weight{};
  ColumnSums<Sums> sums;
  double sum = 0;
  bool exceeded = false;
  int next_x = 0, next_y = 0;  // fetched a row ahead, so that no row waits for its own loads
  bool next_exists = false;
  const auto fetch = [&](std::int64_t row) {
    next_exists = is_inside && row >= 0 && row < f.height;
    if (!next_exists) return;
    next_x = x[row * f.strides_x[1]];
    next_y = y[row * f.strides_y[1]];
  };
  fetch(first - kRadius);
  for (std::int64_t row = first - kRadius; row < end + kRadius; ++row) {
    const int a = next_x, b = next_y;
    const bool exists = next_exists;
    fetch(row + 1);
    Down products[Sums::products] = {};
    if (exists) {
      exceeded |= a > peak || b > peak;
      Sums::multiply(a, b, middle, products);
    }
    sums.feed(products);
    const std::int64_t done = row - kRadius;
    if (done < first) continue;
    const int buffer = static_cast<int>(done & 1);
    for (int p = 0; p < Sums::products; ++p) down[buffer][p][t] = sums.complete(p);
    __syncthreads();
    if (!owns) continue;
    Across across[Sums::products];
    for (int p = 0; p < Sums::products; ++p) across[p] = sum_across<Across>(&down[buffer][p][t]);
    if (const int next = weights_down[done - first]; next != weight_down) {
      weight_down = next;
      weight = weight_of(weight_across * weight_down, f.bit_depth);
    }
    const double term = Sums::term(across, weight, middle);
    terms[done * f.width] = term;
    sum += term;
  }
  const double total = gpu::block_sum<kThreads>(sum);
  const bool any_exceeded = __syncthreads_or(exceeded) != 0;
  if (t != 0) return;
  out.tile_sums[frame * f.stripes * f.tiles + blockIdx.x] = any_exceeded ? not_a_number() : total;
}

// One block a frame.
__global__ void starts_kernel(Frames f, Workspace w) {
  const std::int64_t frame = blockIdx.x;
  double* starts = w.starts + frame * (f.stripes + 1);
  for (std::int64_t stripe = threadIdx.x; stripe < f.stripes; stripe += kThreads) {
    double sum = 0;
    for (std::int64_t tile = 0; tile < f.tiles; ++tile) {
      sum += w.tile_sums[(frame * f.stripes + stripe) * f.tiles + tile];
    }
    starts[stripe + 1] = sum;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  starts[0] = 0;
  for (std::int64_t stripe = 0; stripe < f.stripes; ++stripe) starts[stripe + 1] += starts[stripe];
}

// Returns about what the sum is before a term, as if it grew evenly within a stripe.
__device__ double expected_before(std::int64_t term, const Frames& f, const double* starts) {
  const std::int64_t stripe_terms = kRows * f.width, stripe = term / stripe_terms;
  const std::int64_t in_stripe =
      stripe + 1 < f.stripes ? stripe_terms : (f.height - stripe * kRows) * f.width;
  const double part =
      static_cast<double>(term - stripe * stripe_terms) / static_cast<double>(in_stripe);
  return starts[stripe] + part * (starts[stripe + 1] - starts[stripe]);
}

// Results of one thread for its part of a chunk, neighbouring terms. Sums of units are exact.
struct PartOfChunk {
  double sums[kBinades];
  double sum, lowest, highest;  // of the terms, and of their partial sums
  bool is_halfway[kBinades];
};

__device__ PartOfChunk part_of(const double* terms, int count, int first_exponent) {
  PartOfChunk part{};
  for (int i = 0; i < count; ++i) {
    const double term = terms[i];
    part.sum += term;
    part.lowest = -larger(-part.lowest, -part.sum);
    part.highest = larger(part.sum, part.highest);
    for (int b = 0; b < kBinades; ++b) {
      const Binade in = binade(first_exponent + b);
      const double units = in_units(term, in);
      part.sums[b] += units;
      part.is_halfway[b] |= is_halfway(term, units, in);
    }
  }
  return part;
}

// Returns the results of part a followed by part b.
__device__ PartOfChunk then(const PartOfChunk& a, const PartOfChunk& b) {
  PartOfChunk both;
  both.lowest = -larger(-a.lowest, -(a.sum + b.lowest));
  both.highest = larger(a.highest, a.sum + b.highest);
  both.sum = a.sum + b.sum;
  for (int i = 0; i < kBinades; ++i) {
    both.sums[i] = a.sums[i] + b.sums[i];
    both.is_halfway[i] = a.is_halfway[i] || b.is_halfway[i];
  }
  return both;
}

// Composes `count` neighbours into the first. As many threads take part, of which this is the one
// at `index`; all threads of the block call it.
template <class T> __device__ void compose(T* all, int index, int count) {
  for (int distance = 1; distance < count; distance *= 2) {
    __syncthreads();
    const bool takes_part = (index & (2 * distance - 1)) == 0 && index + distance < count;
    if (takes_part) all[index] = then(all[index], all[index + distance]);
  }
  __syncthreads();
}

// Returns the map of a chunk from the results of all its parts.
__device__ ChunkMap map_of(
    const PartOfChunk& all, const double* terms, int term_count, int first_exponent) {
  ChunkMap map;
  map.first_exponent = first_exponent;
  map.reach = reach_of(larger(-all.lowest, all.highest), term_count, first_exponent);
  for (int b = 0; b < kBinades; ++b) {
    map.from_even[b] = map.from_odd[b] = all.sums[b];
    if (all.is_halfway[b]) map_in_order(terms, term_count, b, map);
  }
  return map;
}

// Each block takes a group, one half after the other: its terms lie in shared memory, and 16
// threads take the parts of a chunk. Parts are composed as a tree, then maps.
constexpr int kPartTerms = 16, kChunkThreads = kChunkTerms / kPartTerms;
constexpr int kAtATime = kThreads / kChunkThreads;
constexpr int kPartPitch = kPartTerms + 1;  // so that no two threads of a warp meet in a bank
static_assert(kPartPitch * sizeof(double) >= sizeof(PartOfChunk));

__global__ __launch_bounds__(kThreads) void maps_kernel(Frames f, Workspace w) {
  __shared__ double near_terms[kThreads * kPartPitch];  // later each thread's part of a chunk
  __shared__ ChunkMap maps[kGroupChunks];
  auto* const parts = reinterpret_cast<PartOfChunk*>(near_terms);
  const int t = static_cast<int>(threadIdx.x), in_chunk = t % kChunkThreads;
  const std::int64_t frame = blockIdx.y, group = blockIdx.x, count = f.height * f.width;
  const double* terms = w.terms + frame * count;
  const double* starts = w.starts + frame * (f.stripes + 1);
  const std::int64_t chunk_count = chunks_of(count);
  const int in_group = at_most(chunk_count - group * kGroupChunks, kGroupChunks);
  for (int done = 0; done < in_group; done += kAtATime) {
    const std::int64_t first_here = (group * kGroupChunks + done) * kChunkTerms;
    const int here = at_most(count - first_here, kThreads * kPartTerms);
#pragma unroll
    for (int k = 0; k < kPartTerms; ++k) {
      const int i = k * kThreads + t;
      near_terms[i / kPartTerms * kPartPitch + i % kPartTerms] =
          i < here ? terms[first_here + i] : 0;
    }
    __syncthreads();
    const int chunk = done + t / kChunkThreads, first_of_part = t * kPartTerms;
    const std::int64_t first = (group * kGroupChunks + chunk) * kChunkTerms;
    const int exponent =
        chunk < in_group ? first_exponent_about(expected_before(first, f, starts)) : 0;
    const int in_part = first_of_part < here ? at_most(here - first_of_part, kPartTerms) : 0;
    const PartOfChunk part = part_of(&near_terms[t * kPartPitch], in_part, exponent);
    __syncthreads();
    parts[t] = part;
    compose(parts + t - in_chunk, in_chunk, kChunkThreads);
    if (in_chunk == 0 && chunk < in_group) {
      maps[chunk] = map_of(parts[t], terms + first, at_most(count - first, kChunkTerms), exponent);
    }
    __syncthreads();
  }
  if (t < in_group) w.chunks[frame * chunk_count + group * kGroupChunks + t] = maps[t];
  compose(maps, t, in_group);
  if (t == 0) w.groups[frame * groups_of(count) + group] = maps[0];
}

// A window of maps: each lane of a subgroup has one.
struct WindowOfMaps {
  ChunkMap map;
  int count;

  // Steps of the maps are composed from the lowest lane on; where one does not hold, the lanes
  // above it have found nothing that counts.
  __device__ int advance(int from, double& sum) const {
    if (from >= count) return from;
    const int lane = static_cast<int>(threadIdx.x), exponent = exponent_of(sum);
    const bool is_asked = lane >= from && lane < count;
    const Step own = is_asked ? step_of(map, exponent) : Step{0, 0};
    const Step before = steps_before(own, exponent);
    const double start = sum + before.from(sum), end = start + own.from(start);
    const bool fails = is_asked && !(exponent_of(start) == exponent && holds(map, start));
    const int first = gpu::first_lane(fails), next = first < count ? first : count;
    if (next > from) sum = gpu::value_of(end, next - 1);
    return next;
  }

 private:
  __device__ static Step steps_before(const Step& own, int exponent) {
    const int lane = static_cast<int>(threadIdx.x);
    Step all = own;
    if (gpu::first_lane(own.from_even != own.from_odd) == gpu::kSubgroup) {
      for (int distance = 1; distance < gpu::kSubgroup; distance *= 2) {
        const double below = gpu::value_below(all.from_even, distance);
        if (lane >= distance) all.from_even += below;
      }
      const double before = gpu::value_below(all.from_even, 1);
      return lane == 0 ? Step{0, 0} : Step{before, before};
    }
    const Binade twice = binade(exponent + 1);
    for (int distance = 1; distance < gpu::kSubgroup; distance *= 2) {
      const Step below = step_below(all, distance);
      if (lane >= distance) all = then(below, all, twice);
    }
    const Step before = step_below(all, 1);
    return lane == 0 ? Step{0, 0} : before;
  }
  __device__ static Step step_below(const Step& step, int distance) {
    return {gpu::value_below(step.from_even, distance), gpu::value_below(step.from_odd, distance)};
  }
};

// The terms of one lane.
struct TermsOfLane {
  static constexpr int kEach = kChunkTerms / gpu::kSubgroup;
  double term[kEach];

  __device__ TermsOfLane(const double* terms, int count) {
    for (int k = 0; k < kEach; ++k) {
      const int i = static_cast<int>(threadIdx.x) * kEach + k;
      term[k] = i < count ? terms[i] : 0;
    }
  }
};

// The subgroup that walks: the threads of one block.
struct Subgroup {
  double* near_terms;  // kChunkTerms, shared

  __device__ WindowOfMaps window(const ChunkMap* maps, int count) const {
    const int lane = static_cast<int>(threadIdx.x);
    return {lane < count ? maps[lane] : ChunkMap{}, count};
  }

  // While the sum stays in a binade, all lanes add terms in its units; the term that takes it to
  // another binade is added by itself. Halfway terms, and sums that leave often, go one by one.
  __device__ double add(const double* terms, int count, double sum) const {
    constexpr int kEach = TermsOfLane::kEach, kBinadesAtMost = 4;
    const int first = static_cast<int>(threadIdx.x) * kEach;
    const TermsOfLane own(terms, count);
    int done = 0;
    for (int i = 0; i < kBinadesAtMost; ++i) {
      const Binade in = binade(exponent_of(sum));
      const double floor = power_of_two(exponent_of(sum));
      double after[kEach], total = 0;
      bool any_halfway = false;
      for (int k = 0; k < kEach; ++k) {
        const double units = first + k < done ? 0 : in_units(own.term[k], in);
        any_halfway |= first + k >= done && is_halfway(own.term[k], units, in);
        after[k] = total += units;
      }
      if (gpu::first_lane(any_halfway) < gpu::kSubgroup) break;
      const double start = sum + total_below(total);
      double before = start, leaving = 0;
      int leaves = kEach;
      for (int k = kEach - 1; k >= 0; --k) {
        const double size = magnitude(start + after[k]);
        const bool stays = size > floor && size < 2 * floor && magnitude(own.term[k]) < floor / 2;
        if (stays || first + k < done) continue;
        leaves = k;
        leaving = own.term[k];
        before = k == 0 ? start : start + after[k - 1];
      }
      const int lane = gpu::first_lane(leaves < kEach);
      if (lane == gpu::kSubgroup) return gpu::value_of(start + total, gpu::kSubgroup - 1);
      sum = gpu::value_of(before, lane) + gpu::value_of(leaving, lane);
      done = lane * kEach + static_cast<int>(gpu::value_of(leaves, lane)) + 1;
      if (done >= count) return sum;
    }
    return one_by_one(own, done, sum);
  }

 private:
  // Returns the sum of the totals of lower lanes.
  __device__ static double total_below(double total) {
    const int lane = static_cast<int>(threadIdx.x);
    for (int distance = 1; distance < gpu::kSubgroup; distance *= 2) {
      const double below = gpu::value_below(total, distance);
      if (lane >= distance) total += below;
    }
    const double before = gpu::value_below(total, 1);
    return lane == 0 ? 0 : before;
  }

  __device__ double one_by_one(const TermsOfLane& own, int done, double sum) const {
    __syncthreads();
    for (int k = 0; k < TermsOfLane::kEach; ++k) {
      const int i = static_cast<int>(threadIdx.x) * TermsOfLane::kEach + k;
      near_terms[i] = i < done ? 0 : own.term[k];  // a sum is never -0: adding 0 changes nothing
    }
    __syncthreads();
#pragma unroll 16
    for (int i = 0; i < kChunkTerms; ++i) sum += near_terms[i];
    return sum;
  }
};

// One block a frame.
__global__ __launch_bounds__(gpu::kSubgroup) void walk_kernel(
    Frames f, Workspace w, double total_weight, double* scores) {
  __shared__ double near_terms[kChunkTerms];
  const std::int64_t frame = blockIdx.x, count = f.height * f.width;
  const double about = w.starts[frame * (f.stripes + 1) + f.stripes];
  if (about != about) {
    if (threadIdx.x == 0) scores[frame] = about;
    return;
  }
  const MappedTerms all{w.terms + frame * count, w.chunks + frame * chunks_of(count),
      w.groups + frame * groups_of(count), count};
  const double sum = walk(all, Subgroup{near_terms});
  if (threadIdx.x == 0) scores[frame] = sum / total_weight;
}

// Cuts one allocation into aligned parts.
class Cut {
 public:
  explicit Cut(char* memory) : memory_(memory) {}
  template <class T> T* take(std::int64_t count) {
    T* part = reinterpret_cast<T*>(memory_ + bytes_);
    bytes_ += (static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return part;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  char* memory_;
  std::size_t bytes_ = 0;
};

Workspace cut(const Frames& f, Cut& memory) {
  const std::int64_t pixels = f.pixels();
  return {.terms = memory.take<double>(f.count * pixels),
      .tile_sums = memory.take<double>(f.count * f.stripes * f.tiles),
      .starts = memory.take<double>(f.count * (f.stripes + 1)),
      .chunks = memory.take<ChunkMap>(f.count * chunks_of(pixels)),
      .groups = memory.take<ChunkMap>(f.count * groups_of(pixels))};
}

template <class Sample, class Sums>
void queue_terms(const Frames& f, const Workspace& w, void* stream) {
  const dim3 blocks(static_cast<unsigned>(f.tiles * f.stripes), static_cast<unsigned>(f.count));
  gpu::launch("integer_ssim", stream, blocks, kThreads, 0, terms_kernel<Sample, Sums>, f, w);
}

void queue(const PlanePairs& planes, const Workspace& w, double* scores, void* stream) {
  const Frames f(planes);
  if (planes.x.dtype == DType::u8) {
    queue_terms<std::uint8_t, Centred8>(f, w, stream);
  } else if (planes.bit_depth <= 10) {
    queue_terms<std::uint16_t, Centred10>(f, w, stream);
  } else {
    queue_terms<std::uint16_t, Whole>(f, w, stream);
  }
  const auto count = static_cast<unsigned>(f.count);
  const auto groups = static_cast<unsigned>(groups_of(f.pixels()));
  gpu::launch("integer_ssim", stream, dim3(count), kThreads, 0, starts_kernel, f, w);
  gpu::launch("integer_ssim", stream, dim3(groups, count), kThreads, 0, maps_kernel, f, w);
  gpu::launch("integer_ssim", stream, dim3(count), gpu::kSubgroup, 0, walk_kernel, f, w,
      total_weight(f.height, f.width), scores);
}

// Returns some pairs of a batch.
PlanePairs part_of_batch(const PlanePairs& planes, std::int64_t first, std::int64_t count) {
  PlanePairs part = planes;
  for (TensorView* view : {&part.x, &part.y}) {
    view->shape[0] = count;
    view->offset += first * view->strides[0];
  }
  return part;
}

}  // namespace

void integer_ssim_cuda(const PlanePairs& planes, double* scores, const Execution& exec) {
  const gpu::Current current(planes.x.device);
  const std::int64_t fit = kMostTerms / (planes.height() * planes.width());
  const std::int64_t at_once =
      std::min(planes.count(), std::clamp<std::int64_t>(fit, 1, kMostFrames));
  const Frames frames(part_of_batch(planes, 0, at_once));
  Cut measured(nullptr);
  cut(frames, measured);
  const auto memory = allocate_bytes(measured.bytes(), planes.x.device, exec);
  Cut taken(static_cast<char*>(memory.get()));
  const Workspace workspace = cut(frames, taken);
  for (std::int64_t first = 0; first < planes.count(); first += at_once) {
    const std::int64_t count = std::min(at_once, planes.count() - first);
    queue(part_of_batch(planes, first, count), workspace, scores + first, exec.queue.handle);
  }
}

}  // namespace similis::libvmaf_ssim_internal
