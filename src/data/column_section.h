// What a Data layer says of columns: which become dense values and which become slots, and how. The same for columns of
// texts and of Parquet files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"

namespace hctr {

enum class DenseTransform { none, log, standardise };
enum class KeyRule { hash, vocabulary, number, hex };

template <>
struct EnumWords<DenseTransform> {
  static const std::vector<std::pair<std::string, DenseTransform>>& table();
};
template <>
struct EnumWords<KeyRule> {
  static const std::vector<std::pair<std::string, KeyRule>>& table();
};

/// Columns that become dense values, one each.
struct DenseColumns {
  std::vector<std::string> columns;
  DenseTransform transform = DenseTransform::none;
  std::vector<double> mean, std;   ///< one for all of the columns, or one for each
  std::optional<double> fallback;  ///< none: 0 in a text, in Parquet an error
};

/// Columns that become slots, one each.
struct SlotColumns {
  std::vector<std::string> columns;
  std::optional<KeyRule> keys;  ///< none: hashed, but numbers of Parquet are keys themselves
  int64_t buckets = 0;
  std::string vocabulary, separator;
  std::optional<std::string> fallback;
};

/// `fallback`: the manual's sentence on "default".
Schema<DenseColumns> dense_columns_schema(const char* fallback);
/// Columns of a text, whose cells may hold several values; and of Parquet files, which have lists.
Schema<SlotColumns> slot_columns_schema();
Schema<SlotColumns> parquet_slot_columns_schema();

/// Columns that the groups name.
int64_t columns_of(const std::vector<DenseColumns>&);
int64_t columns_of(const std::vector<SlotColumns>&);

/// Reports a value that is no single character, or, where that is allowed, not empty.
void check_one_character(const std::string& value, bool may_be_empty, const std::string& pointer, Problems&);

}  // namespace hctr
