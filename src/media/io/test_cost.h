// SPDX-License-Identifier: Apache-2.0
// The cost of refusing a file that promises more than it has, measured in a process of its own so
// that nothing else is counted.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "src/media/picture/test_pictures.h"

namespace similis::media {

#ifdef SIMILIS_SANITIZED
inline constexpr bool kMeasuresMemory = false;  // a sanitizer takes more than any picture
#else
inline constexpr bool kMeasuresMemory = true;
#endif

struct Cost {
  long grown_kilobytes = 0;     ///< resident at the peak, over what was resident before
  long programs_kilobytes = 0;  ///< resident at the peak of the largest program that was run
  double seconds = 0;           ///< on a processor, programs included
  std::array<char, 1000> words{};
};

inline double processor_seconds(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

inline void measure_refusal(const Buffer& bytes, const std::string& name, Cost& cost) {
  rusage before{}, after{}, programs{};
  getrusage(RUSAGE_SELF, &before);
  std::snprintf(cost.words.data(), cost.words.size(), "%s", refusal(bytes, name).c_str());
  getrusage(RUSAGE_SELF, &after);
  getrusage(RUSAGE_CHILDREN, &programs);
  cost.grown_kilobytes = after.ru_maxrss - before.ru_maxrss;
  cost.programs_kilobytes = programs.ru_maxrss;
  cost.seconds = processor_seconds(after) - processor_seconds(before) + processor_seconds(programs);
}

/// The error of read_image for the bytes; it must come within a second, take less than 32 MiB, and
/// start no program that takes more than 128 MiB, of which ffmpeg alone needs 60.
inline std::string refused_at_once(const Buffer& bytes, const std::string& name) {
  void* shared =
      mmap(nullptr, sizeof(Cost), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(shared, MAP_FAILED);
  Cost* cost = new (shared) Cost();
  const pid_t child = fork();
  if (child == 0) {
    measure_refusal(bytes, name, *cost);
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << name << ": it did not end by itself";
  EXPECT_LT(cost->seconds, 1) << name;
  if (kMeasuresMemory) {
    EXPECT_LT(cost->grown_kilobytes, 32 * 1024) << name;
    EXPECT_LT(cost->programs_kilobytes, 128 * 1024) << name;
  }
  const std::string words(cost->words.data());
  munmap(shared, sizeof(Cost));
  return words;
}

}  // namespace similis::media
