// SPDX-License-Identifier: Apache-2.0
#include "src/cli/corpus/corpus.h"

#include <fmt/core.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "similis/version.h"
#include "src/cli/corpus/results_file.h"
#include "src/cli/device.h"
#include "src/cli/terminal/progress.h"
#include "src/core/counted.h"

namespace similis::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kNoteEvery = std::chrono::minutes(1);
constexpr std::size_t kMostNotes = 100;  // pairs whose notes are printed; rows say more
constexpr auto kRetryAfter = std::chrono::seconds(1);
constexpr int kFailed = 1, kSignalled = 128;

// The first line: all that decides what a row says.
Json header_of(const Scoring& scoring, const CorpusOptions& options) {
  Json metrics = Json::object();
  for (const Measure& measure : scoring.measures) {
    Json& entry = metrics[measure.name] = Json::object();
    for (const auto& [name, value] : measure.settings(std::nullopt)) {
      entry[name] = Json::parse(value);
    }
  }
  Json settings = {{"device", device_name(scoring.device)}, {"metrics", metrics}};
  if (scoring.by_default) settings["skips_metrics"] = true;
  const FrameSelection selection = scoring.shown();
  if (selection != FrameSelection{}) settings["selection"] = selection_document(selection);
  if (const auto& background = scoring.inputs.rules.background)
    settings["background"] = *background;
  if (const auto& raw = scoring.inputs.raw) {
    settings["raw"] = {{"width", raw->width}, {"height", raw->height},
        {"bit_depth", raw->pixels.bit_depth}, {"chroma", chroma_name(raw->pixels)}};
  }
  if (const auto& adaptation = scoring.inputs.rules.adaptation;
      adaptation && *adaptation != Adaptation{}) {
    settings["adaptation"] = adaptation_document(*adaptation);
  }
  if (scoring.inputs.rules.masks_not_finite) settings["nan"] = "mask";
  if (scoring.inputs.rate.is_known()) settings["fps"] = scoring.inputs.rate.value();
  if (options.frames_in_rows) settings["frames_in_rows"] = true;
  if (options.shard.count > 1) {
    settings["shard"] = fmt::format("{}/{}", options.shard.number, options.shard.count);
  }
  return {{"similis", SIMILIS_VERSION}, {"settings", settings}};
}

bool can_open(const FilePair& files) {
  return access(files.reference.c_str(), R_OK) == 0 && access(files.distorted.c_str(), R_OK) == 0;
}

class CorpusRun {
 public:
  CorpusRun(const Scoring& scoring, const PairList& pairs, const CorpusOptions& options)
      : scoring_(scoring),
        pairs_(pairs),
        options_(options),
        results_(options.output, header_of(scoring, options), pairs) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (options.shard.has(pairs.id(i)) && !results_.has(i)) to_do_.push_back(i);
    }
    if (pairs.repeated() > 0) {
      print_note(
          fmt::format("{} listed more than once; scored once", counted(pairs.repeated(), "pair")));
    }
  }

  int run() {
    const Interruption::Keep keep(scoring_.interruption);
    Progress progress("pairs", static_cast<std::int64_t>(to_do_.size()));
    progress_ = &progress;
    const auto count = std::min<std::size_t>(
        static_cast<std::size_t>(scoring_.threads), std::max<std::size_t>(1, to_do_.size()));
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < count; ++i) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    results_.sync();
    progress.clear();
    for (const std::string& line : notes_.lines()) print_note(line);
    if (noted_pairs_ > kMostNotes) {
      print_note(fmt::format(
          "notes of {} more are not shown", counted(noted_pairs_ - kMostNotes, "pair")));
    }
    if (error_) std::rethrow_exception(error_);
    if (is_interrupted()) {
      print_error(fmt::format("{}; {} of {} are scored, and the same command continues",
          scoring_.interruption->words(), done_ - failed_, counted(to_do_.size(), "pair")));
      return kSignalled + scoring_.interruption->signal();
    }
    if (failed_ > 0) {
      print_error(fmt::format("{} of {} could not be scored; their rows in {} say why", failed_,
          counted(to_do_.size(), "pair"), options_.output));
    }
    const bool keeps = keeps_thresholds();
    if (failed_ > 0) return kFailed;
    return keeps ? 0 : kMissedThreshold;
  }

 private:
  // Looks at all rows of the list, whichever run wrote them.
  bool keeps_thresholds() const {
    bool keeps = true;
    if (options_.thresholds.empty()) return keeps;
    results_.for_each_row([&](const Json& row) {
      if (row.contains("error") || !pairs_.find(row.value("id", ""))) return;
      for (const std::string& line :
          missed_thresholds(options_.thresholds, scoring_.measures, row)) {
        print_error(line);
        keeps = false;
      }
    });
    return keeps;
  }

  bool is_interrupted() const {
    return scoring_.interruption != nullptr && scoring_.interruption->signal() != 0;
  }

  // Takes pairs until there are none left.
  void work() {
    Scoring scoring = scoring_;
    scoring.exec.runner = serial_runner();
    scoring.threads = 1;
    try {
      for (;;) {
        const std::size_t at = next_++;
        if (at >= to_do_.size() || is_interrupted() || has_stopped_) return;
        score(scoring, to_do_[at]);
      }
    } catch (...) {  // the results cannot be written, or there is no memory
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      has_stopped_ = true;
    }
  }

  void score(const Scoring& scoring, std::size_t pair) {
    const FilePair files = pairs_.files(pair);
    for (int attempt = 0;; ++attempt) {
      Notes notes;
      const Report report = score_one_pair(scoring, files, notes);
      if (is_interrupted() && !report.error.empty()) return;  // it is not done
      if (!report.error.empty() && attempt < options_.retries && !can_open(files)) {
        std::this_thread::sleep_for(kRetryAfter);
        continue;
      }
      add(pair, report, notes);
      return;
    }
  }

  void add(std::size_t pair, const Report& report, const Notes& notes) {
    Json row = {{"id", std::string(pairs_.id(pair))},
        {"reference", std::string(pairs_.reference(pair))},
        {"distorted", std::string(pairs_.distorted(pair))}};
    if (report.error.empty()) {
      row.update(row_document(report, options_.frames_in_rows));
    } else {
      row["error"] = report.error;
    }
    const std::lock_guard lock(mutex_);
    results_.add(row);
    ++done_;
    failed_ += report.error.empty() ? 0 : 1;
    if (!notes.lines().empty() && ++noted_pairs_ <= kMostNotes) notes_.add_all(notes);
    progress_->step();
    if (!report.error.empty()) {
      progress_->clear();
      print_error(report.error);
    }
    if (isatty(STDERR_FILENO) != 0 || Clock::now() - noted_ < kNoteEvery) return;
    noted_ = Clock::now();
    const std::chrono::duration<double> seconds = noted_ - start_;
    print_note(fmt::format("{}, {} failed",
        progress_line("pairs", static_cast<std::int64_t>(done_),
            static_cast<std::int64_t>(to_do_.size()), seconds.count()),
        failed_));
  }

  const Scoring& scoring_;
  const PairList& pairs_;
  const CorpusOptions& options_;
  ResultsFile results_;
  std::vector<std::size_t> to_do_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> has_stopped_ = false;

  std::mutex mutex_;  // of all below and of results_
  Notes notes_;
  Progress* progress_ = nullptr;
  std::size_t done_ = 0, failed_ = 0, noted_pairs_ = 0;
  Clock::time_point start_ = Clock::now(), noted_ = start_;
  std::exception_ptr error_;
};

}  // namespace

int score_corpus(const Scoring& scoring, const PairList& pairs, const CorpusOptions& options) {
  return CorpusRun(scoring, pairs, options).run();
}

}  // namespace similis::cli
