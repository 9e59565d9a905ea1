// SPDX-License-Identifier: Apache-2.0
// The memory that a piece of work takes, as Linux counts it.
#pragma once

#include <malloc.h>

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

namespace similis::bench {

/// A line of /proc/self/status, such as "VmHWM".
inline std::int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kibibytes = 0;
    if (word == name + ":" && status >> kibibytes) return kibibytes * 1024;
  }
  throw std::runtime_error("peak_bytes: /proc/self/status has no " + name);
}

/// By how many bytes resident memory at its peak during work() exceeds what it was before. Linux
/// counts in batches of up to 64 pages a thread, so this is right to about a quarter of a megabyte.
template <class Work> std::int64_t peak_bytes(const Work& work) {
  malloc_trim(0);  // memory that earlier work freed would be taken again unseen
  std::ofstream clear("/proc/self/clear_refs");
  clear << 5 << std::flush;  // VmHWM starts again from VmRSS: proc(5)
  if (!clear) throw std::runtime_error("peak_bytes: /proc/self/clear_refs cannot be written");
  const std::int64_t before = status_bytes("VmRSS");
  work();
  return status_bytes("VmHWM") - before;
}

}  // namespace similis::bench
