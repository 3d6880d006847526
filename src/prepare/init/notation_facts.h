// Detects the notation of a column's numbers.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/moments.h"
#include "formats/data/number_notation.h"

namespace hctr {

/// Facts about the values of a column, read as numbers.
struct NumberFacts {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  int64_t values = 0, integers = 0, negative = 0;
  Moments moments;

  void add(double number);
  /// Whether the logarithm suits the numbers better.
  bool skewed() const;
};

/// The notations that all values of a column can be read in.
class NotationFacts {
 public:
  /// A number that is read without a notation.
  void add_plain(std::string_view text, double number, bool held_out);
  /// Any other value.
  void add_other(std::string_view text, bool held_out);

  struct Choice {
    enum class Kind {
      none,       ///< no notation reads all values
      ambiguous,  ///< two of them read them as different numbers
      one,
    };
    Kind kind = Kind::none;
    NumberNotation notation{};
    std::string question{};  ///< "'1,234' is 1234 as 1,234.5 and 1.234 as 1234,5"
  };
  /// `stated`: the format of all numbers in the table.
  Choice choose(const std::optional<NumberFormat>& stated) const;
  /// Whether the column has values that need a notation to be read.
  bool any_other() const { return others_ > 0; }
  /// Whether one of these can only be a number.
  bool sure() const { return sure_; }
  /// Numbers without a notation whose points may be thousands separators.
  bool any_point_of_thousands() const { return thousands_ > 0; }
  /// The values to train on in a format that reads all of them. `plain`: without one.
  NumberFacts numbers_in(NumberFormat, const NumberFacts& plain) const;

 private:
  bool reads(size_t format) const { return (viable_ >> format & 1) != 0; }
  bool differ(size_t format, size_t other) const;
  std::string question(size_t format, size_t other) const;

  uint32_t viable_ = (1u << kNumberFormats) - 1;  // formats that have read all values so far
  std::string unit_;                              // unit of all other values
  std::string doubtful_;                          // the first value that two formats read differently
  int64_t plains_ = 0, others_ = 0, thousands_ = 0;
  bool sure_ = false;
  std::array<NumberFacts, kNumberFormats> numbers_;  // facts about the other values
  std::array<uint64_t, kNumberFormats> hashes_{};    // hashes of the same numbers, including held-out rows
  NumberFacts by_thousands_;  // facts about plain numbers whose point may be a thousands separator
};

}  // namespace hctr
