// Guesses a table's label and which of its values are positive.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "config/json.h"
#include "prepare/init/notation_facts.h"

namespace hctr {

/// A text quoted for a shell, if necessary.
std::string quoted_word(const std::string& text);

/// Values of a label column, one after the other.
class LabelFacts {
 public:
  void add(std::string_view text);

  int64_t rows = 0, numbers = 0;
  double sum = 0;                         ///< sum of the numbers
  NotationFacts notation;                 ///< notation in which they are written
  std::map<std::string, int64_t> counts;  ///< counts of the first different values, at most kMostLabels + 1
  static constexpr size_t kMostLabels = 1000;
};

/// A row without a label: an empty one, or a mark of a missing value, unless that is the positive label itself.
bool is_missing_label(std::string_view text, const std::optional<std::string>& positive);

struct LabelChoice {
  std::string column;
  std::optional<std::string> text;  ///< the positive label
  std::optional<double> at_least;   ///< the minimum of a positive; without it and `text`, 0 and 1 are the labels
  std::string why;
  NumberNotation notation{};  ///< notation of numbers that are not plain

  bool is_positive(const std::string& text) const;
  /// As in "labels" of csv and parquet.
  Json json() const;
};

/// `command`: what the user typed so far, for messages that complete it. `format`: the notation of all numbers, if
/// stated. Errors: Error(usage) for a column whose positive value is unclear, or for a `positive` that does not fit,
/// with the command to type; Error(data) for a single value.
LabelChoice choose_label(const std::string& column, const LabelFacts&, const std::optional<std::string>& positive,
                         const std::string& command, const std::optional<NumberFormat>& format = {});

}  // namespace hctr
