#include "formats/parquet/parquet_columns.h"

#include <limits>

#include "core/base/expect.h"
#include "formats/parquet/parquet_values.h"

namespace hctr {

const std::string& ParquetPlan::name(size_t column) const {
  if (column < labels.size()) return labels[column].rule.column;
  column -= labels.size();
  if (column < dense.size()) return dense[column].rule.column;
  column -= dense.size();
  return column < slots.size() ? slots[column].rule.column : kept[column - slots.size()];
}

int64_t ParquetPlan::index(size_t column) const {
  if (column < labels.size()) return labels[column].index;
  column -= labels.size();
  if (column < dense.size()) return dense[column].index;
  column -= dense.size();
  return column < slots.size() ? slots[column].index : -1;
}

bool ParquetPlan::optional(size_t column) const {
  if (column < labels.size()) return labels[column].without_column.has_value();
  const size_t numbers = labels.size() + dense.size();
  return column >= numbers && column < numbers + slots.size() && slots[column - numbers].optional;
}

ParquetForm ParquetPlan::form(size_t column) const {
  if (column < labels.size())
    return labels[column].label.positive.texts.empty() ? ParquetForm::number : ParquetForm::value;
  column -= labels.size();
  if (column < dense.size()) return ParquetForm::number;
  return column - dense.size() < slots.size() ? ParquetForm::value : ParquetForm::text;
}

std::string ParquetPlan::type_problem(size_t column, const ParquetField& field) const {
  const size_t numbers = labels.size() + dense.size();
  if (column >= numbers + slots.size())
    return field.type != ParquetType::other
               ? ""
               : cat("is of type ", field.said,
                     ", which cannot be copied to the output: expected numbers, text, dates, times or lists of them");
  const char* what = column < labels.size() ? "a label" : column < numbers ? "a dense value" : "a slot";
  const char* wants = column < numbers ? "one number in each row" : "integers, text, or lists of them";
  // the column has no values in this file
  if (field.type == ParquetType::null && (!field.list || column >= numbers)) return "";
  bool right = field.type != ParquetType::other;
  if (column >= numbers && field.list && slots[column - numbers].rule.several_values())
    return cat("is of type ", field.said, ", but \"brackets\" and \"separator\" split texts, not lists");
  if (column < numbers) {
    const ParquetNumber& number = column < labels.size() ? labels[column] : dense[column - labels.size()];
    const bool texts = !number.label.positive.texts.empty();
    right =
        right && !field.list && (field.type != ParquetType::text || number.text) && !(texts && is_float(field.type));
    if (right && field.type != ParquetType::text && !number.label.unit.empty())
      return cat("is of type ", field.said, ", which has no unit, but \"unit\" is \"", number.label.unit,
                 "\": a unit needs text values");
    if (texts)
      wants = "one text or integer in each row, which is compared with the values in \"positive\"";
    else if (field.type == ParquetType::text && !field.list)
      wants = "one number in each row; to read its text as numbers, name the column in \"parquet\" of the Data layer";
  }
  return right ? "" : cat("is of type ", field.said, ", but ", what, " expects ", wants);
}

bool ParquetPlan::keys_fit_u32(const ParquetFile& file, const std::vector<int64_t>& fields) const {
  const size_t first = labels.size() + dense.size();
  for (size_t s = 0; s < slots.size(); ++s) {
    const ParquetSlot& slot = slots[s];
    const int64_t field = fields[first + s];
    if (field == kNoField) continue;
    const ParquetType type = file.info().fields[field].type;
    // a column of nulls has no keys
    if (type == ParquetType::null && slot.rule.fallback.value_or("").empty()) continue;
    int64_t largest = 0;
    if (type == ParquetType::i8 || type == ParquetType::i16 || type == ParquetType::i32)
      largest = file.may_be_negative(field) ? 0 : std::numeric_limits<int32_t>::max();
    else if (type == ParquetType::u8 || type == ParquetType::u16 || type == ParquetType::u32)
      largest = std::numeric_limits<uint32_t>::max();
    const bool plain = largest > 0 && slot.rule.keys.value_or(KeyRule::number) == KeyRule::number &&
                       slot.rule.fallback.value_or("").empty();
    if (!plain || slot.offset > std::numeric_limits<uint32_t>::max() - largest) return false;
  }
  return true;
}

}  // namespace hctr
