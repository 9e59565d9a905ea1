// SPDX-License-Identifier: Apache-2.0
// Rows of options that stand in two members of similis_warp_options: a shape and its rank, a value
// and the flag that it is given. warp and fields share them. Nothing but C and Python reads them,
// so that they have no text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "similis/c/warp.h"
#include "similis/coordinates.hpp"
#include "src/core/operation.h"
#include "src/core/option_value.h"
#include "src/core/require.h"

namespace similis::warp_internal {

using C = similis_warp_options;
inline constexpr C kCDefaults = SIMILIS_WARP_DEFAULTS;

inline constexpr Bounds kExtents{.words = "2 or 3 whole numbers of 1 or more", .least = 1};
inline constexpr Bounds kPoint{.words = "2 or 3 numbers", .finite = false};

namespace option_rows {

/// True if C's flag has_… says that there is a value.
inline bool is_given(const Option& row, const char* operation, std::int32_t has) {
  require(has == 0 || has == 1, "{}: has_{} is {}; it must be 0 or 1", operation, row.name, has);
  return has == 1;
}

template <auto c_member>
constexpr Option row(
    const char* name, OptionType type, CType c_type, int c_count, const Bounds& bounds) {
  return {.name = name,
      .description = nullptr,
      .type = type,
      .c_type = c_type,
      .c_count = c_count,
      .may_be_empty = true,
      .bounds = bounds,
      .c_offset = option_internal::offset_in_c<c_member>,
      .from_c = nullptr,
      .check = [](const Option&, const char*, const void*) {},
      .parse = [](const Option&, std::string_view, void*) { return false; },
      .json = [](const Option&, const void*) { return std::string("null"); }};
}

}  // namespace option_rows

/// The shape of the output; its rank is 0 if it is left out.
template <auto member, auto c_member, auto c_rank>
constexpr Option extents_option(const char* name) {
  using namespace option_internal;
  Option row = option_rows::row<c_member>(name, OptionType::extents, CType::i64, 3, kExtents);
  row.c_count_offset = offset_in_c<c_rank>;
  row.from_c = [](const Option&, const char* operation, const void* c_struct, int, void* into) {
    const C& given = *static_cast<const C*>(c_struct);
    const std::int32_t rank = given.*c_rank;
    require(rank >= 0 && rank <= 3, "{}: out_rank is {}; it must be from 0 to 3", operation, rank);
    static_cast<Holder<member>*>(into)->*member =
        Extents(std::span<const std::int64_t>(given.*c_member, static_cast<std::size_t>(rank)));
  };
  return row;
}

/// Coordinates (x, y, z), if C's flag says that they are given.
template <auto member, auto c_member, auto c_has>
constexpr Option coordinates_option(const char* name) {
  using namespace option_internal;
  Option row = option_rows::row<c_member>(name, OptionType::coordinates, CType::f64, 3, kPoint);
  row.c_count_offset = offset_in_c<c_has>;
  row.from_c = [](const Option& option, const char* operation, const void* c_struct, int,
                   void* into) {
    const C& given = *static_cast<const C*>(c_struct);
    if (!option_rows::is_given(option, operation, given.*c_has)) return;
    const auto& xyz = given.*c_member;
    static_cast<Holder<member>*>(into)->*member = Coordinates{xyz[0], xyz[1], xyz[2]};
  };
  return row;
}

/// A number, if C's flag says that it is given.
template <auto member, auto c_member, auto c_has> constexpr Option given_option(const char* name) {
  using namespace option_internal;
  Option row = option_rows::row<c_member>(name, OptionType::number, CType::f64, 1, kAnyFloat);
  row.c_count_offset = offset_in_c<c_has>;
  row.from_c = [](const Option& option, const char* operation, const void* c_struct, int,
                   void* into) {
    const C& given = *static_cast<const C*>(c_struct);
    if (!option_rows::is_given(option, operation, given.*c_has)) return;
    static_cast<Holder<member>*>(into)->*member = given.*c_member;
  };
  return row;
}

}  // namespace similis::warp_internal
