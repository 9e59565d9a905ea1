// SPDX-License-Identifier: Apache-2.0
#include "src/cli/terminal/interruption.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <utility>

namespace similis::cli {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

// Those of kSignals that are not ignored, as SIGHUP is under nohup.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kSignals) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

Interruption::Interruption() {
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(signalfd(-1, &set, SFD_CLOEXEC));
  end_.reset(eventfd(0, EFD_CLOEXEC));
  thread_ = std::thread([this] { watch(); });
}

Interruption::~Interruption() {
  const std::uint64_t one = 1;
  static_cast<void>(!write(end_.get(), &one, sizeof one));
  thread_.join();
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Interruption::watch() {
  std::array<pollfd, 2> ends = {pollfd{signals_.get(), POLLIN, 0}, pollfd{end_.get(), POLLIN, 0}};
  for (;;) {
    if (poll(ends.data(), ends.size(), -1) < 0) continue;
    if (ends[1].revents != 0) return;
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) == sizeof info) {
      take(static_cast<int>(info.ssi_signo));
    }
  }
}

void Interruption::take(int signal) {
  const std::lock_guard lock(mutex_);
  if (signal_ != 0 || stops_.empty()) {
    std::signal(signal, SIG_DFL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    raise(signal);
  }
  signal_ = signal;
  for (const std::function<void()>& stop : stops_) stop();
}

std::string Interruption::words() const {
  const char* name = signal_ == SIGINT ? "SIGINT" : signal_ == SIGTERM ? "SIGTERM" : "SIGHUP";
  return std::string("interrupted by ") + name;
}

Interruption::Keep::Keep(Interruption* interruption, std::function<void()> stop)
    : interruption_(interruption) {
  if (interruption_ == nullptr) return;
  const std::lock_guard lock(interruption_->mutex_);
  stop_ = interruption_->stops_.insert(interruption_->stops_.end(), std::move(stop));
}

Interruption::Keep::~Keep() {
  if (interruption_ == nullptr) return;
  const std::lock_guard lock(interruption_->mutex_);
  interruption_->stops_.erase(stop_);
}

}  // namespace similis::cli
