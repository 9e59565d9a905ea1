// SPDX-License-Identifier: Apache-2.0
#include "src/operations/operations.h"

#include <fmt/core.h>

#include <stdexcept>

#include "src/fields/fields.h"
#include "src/libvmaf_ssim/libvmaf_ssim.h"
#include "src/lncc/lncc.h"
#include "src/ms_ssim/ms_ssim.h"
#include "src/mutual_information/mutual_information.h"
#include "src/ncc/ncc.h"
#include "src/pixel_error/pixel_error.h"
#include "src/smooth/smooth.h"
#include "src/ssim/ssim.h"
#include "src/ssimulacra2/ssimulacra2.h"
#include "src/warp/warp.h"

namespace similis {
namespace {

template <class Pass> ListedOperation listed(const Operation<Pass>& operation) {
  return {
      &operation.table, operation.runs_on(DeviceKind::cuda), operation.runs_on(DeviceKind::vulkan)};
}

// For operations whose passes run in steps that both backends have.
ListedOperation on_cpu_and_cuda(const OperationTable& table) { return {&table, true, false}; }

}  // namespace

// A new operation is a line here.
std::span<const ListedOperation> operations() {
  static const ListedOperation list[] = {
      listed(pixel_error_internal::kMse),
      listed(pixel_error_internal::kMae),
      listed(pixel_error_internal::kPsnr),
      listed(ssim_internal::kSsim),
      listed(ms_ssim_internal::kMsSsim),
      listed(libvmaf_ssim_internal::kIntegerSsim),
      listed(libvmaf_ssim_internal::kFloatSsim),
      listed(libvmaf_ssim_internal::kFloatMsSsim),
      listed(libvmaf_ssim_internal::kLibvmafPsnr),
      listed(ssimulacra2_internal::kSsimulacra2),
      listed(lncc_internal::kLncc),
      listed(ncc_internal::kNcc),
      listed(mutual_information_internal::kMutualInformation),
      listed(mutual_information_internal::kHistogram),
      listed(mutual_information_internal::kFromHistogram),
      listed(smooth_internal::kSmooth),
      on_cpu_and_cuda(warp_internal::kSampleTable),
      on_cpu_and_cuda(warp_internal::kSampleLabelsTable),
      on_cpu_and_cuda(warp_internal::kComposeTable),
      on_cpu_and_cuda(warp_internal::kAffineGridTable),
      on_cpu_and_cuda(fields_internal::kExponentiateTable),
      on_cpu_and_cuda(fields_internal::kInvertTable),
      on_cpu_and_cuda(fields_internal::kJacobianTable),
  };
  return list;
}

const ListedOperation& operation(std::string_view name) {
  for (const ListedOperation& listed : operations()) {
    if (name == listed.table->name) return listed;
  }
  throw std::logic_error(fmt::format("similis has no operation {}", name));
}

}  // namespace similis
