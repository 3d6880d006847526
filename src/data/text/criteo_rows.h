// One line of Criteo's click logs: label, 13 integers, 26 categories, separated by tabs; a field may be empty.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hctr {

inline constexpr int kCriteoIntegers = 13, kCriteoCategories = 26;

struct CriteoRow {
  float label = 0;
  std::array<std::optional<int64_t>, kCriteoIntegers> integers;
  std::array<std::optional<uint32_t>, kCriteoCategories> categories;
};

/// Reads the fields of a line; returns what is wrong with them, "column I3: expected an integer or nothing, found 'x'",
/// or nothing.
std::string parse_criteo_cells(std::span<const std::string_view> cells, CriteoRow& row);

}  // namespace hctr
