// SPDX-License-Identifier: Apache-2.0
// Hands each pass to the device of its arrays.
#include "src/registration/passes.h"

#include "src/core/operation.h"
#include "src/gpu/device.h"

namespace similis::registration_internal {
namespace {

const Passes& passes_on(Device device) {
  static constexpr const Passes& (*kPasses[kDeviceKinds])() = {
      cpu_passes, SIMILIS_IF_CUDA(cuda_passes), nullptr};
  return kPasses[static_cast<std::size_t>(device.kind)]();
}

}  // namespace

std::int64_t weigh_inside(const GridRows& rows, const Map& voxels, const Grid& to, Reals u,
    Reals mask, Reals weights, const Execution& exec) {
  return passes_on(rows.device).weigh_inside(rows, voxels, to, u, mask, weights, exec);
}
std::int64_t drop_below(
    const GridRows& rows, Reals value, double least, Reals weights, const Execution& exec) {
  return passes_on(rows.device).drop_below(rows, value, least, weights, exec);
}
std::int64_t count_nonzero(const GridRows& rows, Reals mask, const Execution& exec) {
  return passes_on(rows.device).count_nonzero(rows, mask, exec);
}
Moments moments(const GridRows& rows, Reals f, Reals j, Reals weights, const Execution& exec) {
  return passes_on(rows.device).moments(rows, f, j, weights, exec);
}
void add_gradient(const GridRows& rows, Reals f, Reals j, Reals weights, const LinearGradient& by,
    Reals gradient, const Execution& exec) {
  passes_on(rows.device).add_gradient(rows, f, j, weights, by, gradient, exec);
}
void add_scaled(
    Device device, std::int64_t count, double factor, Reals b, Reals a, const Execution& exec) {
  passes_on(device).add_scaled(device, count, factor, b, a, exec);
}
void scale(
    Device device, std::int64_t count, double factor, Reals in, Reals out, const Execution& exec) {
  passes_on(device).scale(device, count, factor, in, out, exec);
}
void fill(Device device, std::int64_t count, double value, Reals out, const Execution& exec) {
  passes_on(device).fill(device, count, value, out, exec);
}
void blend(const GridRows& rows, const Box& box, Reals m, Reals b, Reals u, const Execution& exec) {
  passes_on(rows.device).blend(rows, box, m, b, u, exec);
}
double largest_square(const GridRows& rows, Reals field, const Execution& exec) {
  return passes_on(rows.device).largest_square(rows, field, exec);
}
void turn(const GridRows& rows, const Matrix& m, Reals in, Reals out, const Execution& exec) {
  passes_on(rows.device).turn(rows, m, in, out, exec);
}
void round_to(
    Device device, std::int64_t count, double unit, Reals elements, const Execution& exec) {
  passes_on(device).round_to(device, count, unit, elements, exec);
}
Determinants corner_determinants(const GridRows& rows, Reals u, const Box& box, double accepted,
    Reals flags, const Execution& exec) {
  return passes_on(rows.device).corner_determinants(rows, u, box, accepted, flags, exec);
}
void mark_folds(const GridRows& rows, Reals u, const Box& box, double accepted, std::int64_t by,
    Reals flags, const Execution& exec) {
  passes_on(rows.device).mark_folds(rows, u, box, accepted, by, flags, exec);
}
void to_floats(const TensorView& view, float* out, const Execution& exec) {
  passes_on(view.device).to_floats(view, out, exec);
}
void threshold(
    Device device, std::int64_t count, double least, Reals elements, const Execution& exec) {
  passes_on(device).threshold(device, count, least, elements, exec);
}
void normalize_mask(Device device, std::int64_t count, float* elements, const Execution& exec) {
  passes_on(device).normalize_mask(device, count, elements, exec);
}
std::int64_t look_for_gaps(
    const GridRows& rows, const float* values, float* mask, bool drops, const Execution& exec) {
  return passes_on(rows.device).look_for_gaps(rows, values, mask, drops, exec);
}
Spread spread(const GridRows& rows, const float* values, const float* mask, const Execution& exec) {
  return passes_on(rows.device).spread(rows, values, mask, exec);
}
Neighbours nth_above(const GridRows& rows, const float* values, const float* mask, float least,
    std::int64_t before, const Execution& exec) {
  return passes_on(rows.device).nth_above(rows, values, mask, least, before, exec);
}
void rescale(const GridRows& rows, float low, float by, const float* mask, float* values,
    const Execution& exec) {
  passes_on(rows.device).rescale(rows, low, by, mask, values, exec);
}
void divide(const GridRows& rows, Reals share, double least, Reals values, const Execution& exec) {
  passes_on(rows.device).divide(rows, share, least, values, exec);
}
void multiply(Device device, std::int64_t count, const float* b, float* a, const Execution& exec) {
  passes_on(device).multiply(device, count, b, a, exec);
}
void edge_products(
    const GridRows& rows, const Averages& of, int a, int b, float* out, const Execution& exec) {
  passes_on(rows.device).edge_products(rows, of, a, b, out, exec);
}
void precondition(const GridRows& rows, const float* q, float* field, const Execution& exec) {
  passes_on(rows.device).precondition(rows, q, field, exec);
}
Mass mass(const GridRows& rows, const float* values, const Execution& exec) {
  return passes_on(rows.device).mass(rows, values, exec);
}
RegisterSummary lengths(const GridRows& rows, const float* field, const Execution& exec) {
  return passes_on(rows.device).lengths(rows, field, exec);
}
Tensor upload(Device device, const Extents& shape, const std::vector<double>& numbers,
    const Execution& exec) {
  return passes_on(device).upload(device, shape, numbers, exec);
}

void copy_floats(const TensorView& from, const TensorView& to, const Execution& exec) {
  const std::int64_t count = from.shape.count();
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  if (to.device != from.device) {
    return gpu::copy_to_cpu(to.data(), from, bytes, exec.queue.handle);
  }
  scale(from.device, count, 1, static_cast<const float*>(from.data()),
      static_cast<float*>(to.data()), exec);
  if (from.device.kind == DeviceKind::cpu) return;
  float last = 0;
  gpu::copy_to_cpu(&last, to.data(), sizeof(last), to.device, exec.queue.handle);
}

Tensor on_cpu(const Tensor& tensor, const Execution& exec) {
  if (tensor.device.kind == DeviceKind::cpu) return tensor;
  const Tensor result = allocate(tensor.shape, tensor.dtype);
  gpu::copy_to_cpu(result.data(), tensor,
      static_cast<std::size_t>(tensor.shape.count()) * size_bytes(tensor.dtype), exec.queue.handle);
  return result;
}

}  // namespace similis::registration_internal
