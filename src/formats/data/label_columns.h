// The label columns of a Data layer, for text and Parquet files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "formats/data/number_notation.h"

namespace hctr {

/// The column values with label 1. All other values have label 0.
struct Positive {
  std::vector<std::string> texts;  ///< any of these exact texts
  std::optional<double> at_least;  ///< or a number of at least this value

  bool given() const { return !texts.empty() || at_least.has_value(); }
};
Misfit read_value(const Json& value, const Range&, Positive& out);
Json to_json(const Positive&);
template <>
struct TypeWord<Positive> {
  static std::string text() { return "string, array of string, or {\"at_least\": number}"; }
};

/// A column that becomes a label.
struct LabelColumn {
  LabelColumn() = default;
  LabelColumn(std::string name) : column(std::move(name)) {}
  LabelColumn(const char* name) : column(name) {}

  std::string column;
  Positive positive;                            ///< empty: the label is the number in the column
  std::optional<NumberFormat> number_format{};  ///< for text columns; empty: the section's format
  std::string unit{};                           ///< unit of the numbers in a text column

  NumberNotation notation() const { return {number_format, unit}; }
};
Schema<LabelColumn> label_column_schema();

/// Sets the label of a non-empty text. Returns false if the text must be a number but is not.
bool label_of(const LabelColumn&, std::string_view value, double& label);
/// The label of a number.
double label_of(const LabelColumn&, double value);
/// Describes `positive` for messages: "'>50K'", "'yes' or 'true'", "at least 4".
std::string describe(const Positive&);

}  // namespace hctr
