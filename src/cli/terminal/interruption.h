// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP while there are scores to save.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "src/media/io/descriptor.h"

namespace similis::cli {

/// Takes these signals over from the threads that are started while it lives; construct it before
/// any. A first signal while a Keep lives is remembered; any other ends the program as if it were
/// not caught. Signals that were ignored stay ignored.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// The number of the first signal; 0 if none came.
  int signal() const { return signal_; }
  /// "interrupted by SIGINT"
  std::string words() const;

  /// Says that there are scores to save. `stop` is called by another thread when a signal comes; it
  /// makes waits for input end.
  class Keep {
   public:
    explicit Keep(
        Interruption* interruption, std::function<void()> stop = [] {});
    ~Keep();
    Keep(const Keep&) = delete;
    Keep& operator=(const Keep&) = delete;

   private:
    Interruption* interruption_;
    std::list<std::function<void()>>::iterator stop_;
  };

 private:
  void watch();
  void take(int signal);

  media::Descriptor signals_, end_;  // readable when a signal came, and when watching ends
  std::mutex mutex_;
  std::list<std::function<void()>> stops_;
  std::atomic<int> signal_ = 0;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace similis::cli
