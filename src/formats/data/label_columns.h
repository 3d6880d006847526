// The label columns of a Data layer, for texts and Parquet files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "formats/data/number_notation.h"

namespace hctr {

/// Which values of a column are the label 1; all others are 0.
struct Positive {
  std::vector<std::string> texts;  ///< one of these, to the letter
  std::optional<double> at_least;  ///< or a number of at least this

  bool given() const { return !texts.empty() || at_least.has_value(); }
};
Misfit read_value(const Json& value, const Range&, Positive& out);
Json to_json(const Positive&);
template <>
struct TypeWord<Positive> {
  static std::string text() { return "string, array of string, or {\"at_least\": number}"; }
};

/// One column that is a label.
struct LabelColumn {
  LabelColumn() = default;
  LabelColumn(std::string name) : column(std::move(name)) {}
  LabelColumn(const char* name) : column(name) {}

  std::string column;
  Positive positive;                            ///< empty: the label is the number in the column
  std::optional<NumberFormat> number_format{};  ///< format of texts; none: the section's
  std::string unit{};                           ///< unit in texts

  NumberNotation notation() const { return {number_format, unit}; }
};
Schema<LabelColumn> label_column_schema();

/// The label of a value that is not empty. False when it is not a number and has to be one.
bool label_of(const LabelColumn&, std::string_view value, double& label);
/// The same for a value that is a number.
double label_of(const LabelColumn&, double value);
/// "'>50K'", "'yes' or 'true'", "at least 4": what `positive` asks for, for messages.
std::string describe(const Positive&);

}  // namespace hctr
