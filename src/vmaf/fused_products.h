// SPDX-License-Identifier: Apache-2.0
// Which instructions multiply and add the halves of words, in words-inl.h.
#pragma once

namespace similis::vmaf_internal {

/// True if the processor multiplies pairs of 16 bits and adds them in one instruction, which the
/// vector target AVX3 then uses. A test changes it.
bool& fuses_products();

}  // namespace similis::vmaf_internal
