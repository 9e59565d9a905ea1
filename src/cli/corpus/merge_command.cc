// SPDX-License-Identifier: Apache-2.0
#include "src/cli/corpus/merge_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include "src/cli/corpus/pair_list.h"
#include "src/cli/corpus/results_file.h"
#include "src/cli/results/report.h"
#include "src/cli/terminal/growing_output.h"
#include "src/cli/terminal/json_text.h"
#include "src/cli/terminal/notes.h"
#include "src/cli/terminal/output.h"
#include "src/cli/usage_error.h"
#include "src/core/counted.h"
#include "src/core/number_text.h"
#include "src/media/io/descriptor.h"
#include "src/media/io/whole_file.h"

namespace similis::cli {
namespace {

constexpr std::uint16_t kMissing = 0xffff;
constexpr std::array kEndings = {".jsonl", ".json", ".csv"};

// The place of a pair's row.
struct Row {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint16_t part = kMissing;
};

class Merge {
 public:
  explicit Merge(const MergeOptions& options)
      : options_(options), list_(read_pair_list(options.pairs)), rows_(list_.size()) {
    if (options.parts.size() >= kMissing) throw UsageError("too many parts; merge fewer at once");
  }

  int run() {
    for (std::size_t i = 0; i < options_.parts.size(); ++i) read_part(i);
    std::size_t missing = 0;
    for (const Row& row : rows_) missing += row.part == kMissing;
    if (missing > 0) {
      print_error(fmt::format("{} of {} missing{}; nothing is written", counted(missing, "pair"),
          list_.size(),
          failed_.empty() ? "" : fmt::format(", of which {} could not be scored", still_failed())));
      return 1;
    }
    GrowingOutput output(options_.output);
    write(output);
    output.keep();
    return 0;
  }

 private:
  void read_part(std::size_t part) {
    const std::string& path = options_.parts[part];
    files_.emplace_back(
        std::make_unique<media::Descriptor>(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    if (files_.back()->get() < 0) {
      throw Error(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    }
    for_each_line(files_.back()->get(), path, [&](const std::string& line, std::int64_t offset) {
      const Json json = Json::parse(line, nullptr, false);
      if (!json.is_object()) {
        throw UsageError(fmt::format(
            "{} is not a file of results: the line at byte {} is not a row", path, offset));
      }
      offset == 0 ? take_header(json, path) : take_row(json, line, part, offset);
    });
  }

  // Settings of all parts but for their shard.
  void take_header(Json header, const std::string& path) {
    if (!header.contains("similis") || !header.contains("settings")) {
      throw UsageError(
          fmt::format("{} is not a file of results: its first line has no settings", path));
    }
    header["settings"].erase("shard");
    if (header_.is_null()) header_ = header;
    if (header_ != header) {
      throw UsageError(fmt::format("{} has other settings than {}", path, options_.parts.front()));
    }
  }

  void take_row(const Json& json, const std::string& line, std::size_t part, std::int64_t offset) {
    const std::string id = json.value("id", "");
    const auto pair = list_.find(id);
    if (!pair) return;  // of another list
    if (json.contains("error")) {
      failed_.insert(*pair);
      return;
    }
    Row& row = rows_[*pair];
    if (row.part != kMissing && text_of(row) != line) {
      throw UsageError(fmt::format("\"{}\" has different rows in {} and {}", id,
          options_.parts[row.part], options_.parts[part]));
    }
    row = {static_cast<std::uint64_t>(offset), static_cast<std::uint32_t>(line.size()),
        static_cast<std::uint16_t>(part)};
  }

  std::size_t still_failed() const {
    std::size_t count = 0;
    for (const std::size_t pair : failed_) count += rows_[pair].part == kMissing;
    return count;
  }

  std::string text_of(const Row& row) const {
    std::string text(row.bytes, '\0');
    const ssize_t count =
        pread(files_[row.part]->get(), text.data(), text.size(), static_cast<off_t>(row.offset));
    if (count != static_cast<ssize_t>(text.size())) {
      throw Error(fmt::format("cannot read {}: it has changed", options_.parts[row.part]));
    }
    return text;
  }

  void write(GrowingOutput& output) {
    if (options_.output.ends_with(".json")) return write_json(output);
    if (options_.output.ends_with(".csv")) return write_csv(output);
    output.write(json_line(header_));
    for (const Row& row : rows_) output.write(text_of(row) + "\n");
  }

  void write_json(GrowingOutput& output) {
    std::string head = json_line(header_);
    head.resize(head.size() - 2);  // "}\n"
    output.write(head + ", \"pairs\": [");
    for (const Row& row : rows_) {
      output.write(std::string(&row == &rows_.front() ? "\n" : ",\n") + text_of(row));
    }
    output.write("\n]}\n");
  }

  // The mean of each metric; the columns are those of all rows.
  void write_csv(GrowingOutput& output) {
    std::vector<std::string> names;
    for (const Row& row : rows_) {
      const Json json = Json::parse(text_of(row));
      for (const auto& metric : json["metrics"].items()) {
        if (std::find(names.begin(), names.end(), metric.key()) == names.end()) {
          names.push_back(metric.key());
        }
      }
    }
    std::string head = "id,reference,distorted";
    for (const std::string& name : names) head += ',' + csv_field(name);
    output.write(head + '\n');
    for (const Row& row : rows_) {
      const Json json = Json::parse(text_of(row));
      std::string line;
      for (const char* column : {"id", "reference", "distorted"}) {
        if (!line.empty()) line += ',';
        line += csv_field(json[column].get<std::string>());
      }
      for (const std::string& name : names) {
        line += ',';
        const auto metric = json["metrics"].find(name);
        if (metric == json["metrics"].end() || (*metric)["mean"].is_null()) continue;
        line += shortest((*metric)["mean"].get<double>());
      }
      output.write(line + '\n');
    }
  }

  const MergeOptions& options_;
  PairList list_;
  std::vector<Row> rows_;
  std::vector<std::unique_ptr<media::Descriptor>> files_;
  std::set<std::size_t> failed_;
  Json header_;
};

}  // namespace

int merge(const MergeOptions& options) {
  if (!is_standard_output(options.output)) {
    std::vector<std::string> inputs = options.parts;
    inputs.push_back(options.pairs);
    require_writable("-o", options.output, inputs);
    const bool is_known = std::any_of(kEndings.begin(), kEndings.end(),
        [&](const char* ending) { return options.output.ends_with(ending); });
    if (!is_known && !media::is_written_in_place(options.output)) {
      throw UsageError(
          fmt::format("-o {}: its ending must be .jsonl, .json or .csv", options.output));
    }
  }
  return Merge(options).run();
}

}  // namespace similis::cli
