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

/// Facts about the values of a column after conversion to numbers.
struct NumberFacts {
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  int64_t values = 0, integers = 0, negative = 0;
  Moments moments;

  void add(double number);
  /// Whether the distribution is so skewed that logarithms are more suitable.
  bool skewed() const;
};

/// Finds the notations in which all values of a column can be read.
class NotationFacts {
 public:
  /// Adds a number in plain notation.
  void add_plain(std::string_view text, double number, bool held_out);
  /// Adds any other value.
  void add_other(std::string_view text, bool held_out);

  struct Choice {
    enum class Kind {
      none,       ///< no notation reads all values
      ambiguous,  ///< two notations read the values as different numbers
      one,
    };
    Kind kind = Kind::none;
    NumberNotation notation{};
    std::string question{};  ///< a question for the user: "'1,234' is 1234 as 1,234.5 and 1.234 as 1234,5"
  };
  /// `stated`: the format of all numbers in the table, if the user states one.
  Choice choose(const std::optional<NumberFormat>& stated) const;
  /// Whether the column has values that are not plain numbers.
  bool any_other() const { return others_ > 0; }
  /// Whether at least one value is certainly a number, although it is not in plain notation.
  bool sure() const { return sure_; }
  /// Whether the column has plain numbers whose points may be thousands separators.
  bool any_point_of_thousands() const { return thousands_ > 0; }
  /// Facts about the numbers of the training rows, read in a format that can read all values of the column. `plain`:
  /// facts about the plain numbers.
  NumberFacts numbers_in(NumberFormat, const NumberFacts& plain) const;

 private:
  bool reads(size_t format) const { return (viable_ >> format & 1) != 0; }
  bool differ(size_t format, size_t other) const;
  std::string question(size_t format, size_t other) const;

  uint32_t viable_ = (1u << kNumberFormats) - 1;  // bit mask of the formats that can read all values so far
  std::string unit_;                              // unit of all values that are not plain numbers
  std::string doubtful_;                          // the first value that two formats read differently
  int64_t plains_ = 0, others_ = 0, thousands_ = 0;
  bool sure_ = false;
  std::array<NumberFacts, kNumberFormats> numbers_;  // [format] facts about values that are not plain numbers
  // [format] hash of all values that are not plain numbers, as read in this format; includes held-out rows
  std::array<uint64_t, kNumberFormats> hashes_{};
  NumberFacts by_thousands_;  // facts about plain numbers whose point may be a thousands separator
};

}  // namespace hctr
