// SPDX-License-Identifier: Apache-2.0
// A feature with its options, by the names that libvmaf gives features, options and columns.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/vmaf/adm/adm.h"
#include "src/vmaf/cambi/cambi.h"

namespace similis::vmaf_internal {

enum class FeatureKind : std::uint8_t { adm, cambi, motion, vif };

/// An option of a feature. All values are held as doubles.
struct FeatureOption {
  enum class Type : std::uint8_t { flag, integer, real, eotf };
  const char* name;
  const char* alias;  ///< in names of columns; empty: it does not change them
  Type type;
  double preset, least, most;
  const char* description;
};
/// The values that it takes, as refusals say it.
std::string takes(const FeatureOption& option);
/// A value as it is typed.
std::string typed(const FeatureOption& option, double value);

class FeatureRequest {
 public:
  explicit FeatureRequest(FeatureKind kind);
  /// The feature of this name; empty if it is another.
  static std::optional<FeatureRequest> named(std::string_view name);

  FeatureKind kind() const { return kind_; }
  const char* name() const;
  std::span<const FeatureOption> options() const;
  bool has_option(std::string_view option) const;
  /// Sets an option. Throws InvalidArgument, in one line, if there is none of this name or if it
  /// does not take this value.
  void set(std::string_view option, std::string_view text);
  /// Sets options as "NAME=VALUE:NAME=VALUE" has them, the last of a name counts.
  void set_all(std::string_view text);
  double value(std::string_view option) const;
  bool is_set(std::string_view option) const { return value(option) != 0; }

  /// True if both have the same columns but for those of debug.
  bool has_columns_of(const FeatureRequest& other) const;
  /// Takes what the other, which has the same columns, asks for beyond this.
  void merge(const FeatureRequest& other);

  /// Throws InvalidArgument if the options do not fit one another.
  void require_valid() const;
  /// Throws InvalidArgument if frames of this size are too small.
  void require_size(std::int64_t width, std::int64_t height) const;

  /// The names of a frame's numbers, and of those that wait for the next frame.
  std::vector<std::string> columns() const;
  std::vector<std::string> late_columns() const;

  AdmSetting adm_setting() const;
  AdmWeights adm_weights() const;
  CambiSetting cambi_setting() const;

  friend bool operator==(const FeatureRequest&, const FeatureRequest&) = default;

 private:
  std::size_t index_of(std::string_view option) const;
  std::string suffix() const;
  FeatureKind kind_;
  std::vector<double> values_;
};

/// Adds a request, or merges it with the one that has its columns.
void add_request(std::vector<FeatureRequest>& requests, const FeatureRequest& request);

}  // namespace similis::vmaf_internal
