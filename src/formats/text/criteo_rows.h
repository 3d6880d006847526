// Parses a line of Criteo's click logs: label, 13 integers and 26 categories, separated by tabs. A field may be empty.
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

/// Reads a label, 0 or 1.
bool read_click(std::string_view text, float& label);
/// Reads an integer, also in notations such as "17.0", "+1" or " 3 ".
bool read_whole_number(std::string_view text, int64_t& value);

/// Parses the fields of a line. Returns the problem, such as "column I3: expected an integer or nothing, found 'x'";
/// empty if the line is valid.
std::string parse_criteo_cells(std::span<const std::string_view> cells, CriteoRow& row);

}  // namespace hctr
