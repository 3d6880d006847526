// Guesses which values of a table's label column are positive.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "config/json.h"
#include "prepare/init/notation_facts.h"

namespace hctr {

/// The text, quoted for a shell if necessary.
std::string quoted_word(const std::string& text);

/// Collects facts about the values of a label column, one value at a time.
class LabelFacts {
 public:
  void add(std::string_view text);

  int64_t rows = 0, numbers = 0;
  double sum = 0;                         ///< sum of the numbers
  NotationFacts notation;                 ///< notations of the numbers
  std::map<std::string, int64_t> counts;  ///< counts of the first distinct values, at most kMostLabels + 1
  static constexpr size_t kMostLabels = 1000;
};

/// Whether a row has no label: the text is empty, or it is a mark for a missing value and not the positive label.
bool is_missing_label(std::string_view text, const std::optional<std::string>& positive);

struct LabelChoice {
  std::string column;
  std::optional<std::string> text;  ///< the positive label
  /// numbers of at least this value are positive. If neither `at_least` nor `text` is set, the labels are 0 and 1
  std::optional<double> at_least;
  std::string why;
  NumberNotation notation{};  ///< notation of the numbers, if not plain

  bool is_positive(const std::string& text) const;
  /// The label's entry in "labels" of the csv or parquet section.
  Json json() const;
};

/// `command`: the user's command so far; messages show it with the missing option added. `format`: the notation of all
/// numbers, if stated. Errors: Error(usage) with the command to type, if the positive value is unclear or `positive`
/// does not fit; Error(data) if there is only one value.
LabelChoice choose_label(const std::string& column, const LabelFacts&, const std::optional<std::string>& positive,
                         const std::string& command, const std::optional<NumberFormat>& format = {});

}  // namespace hctr
