// The "dense" and "slots" columns of a Data layer and their settings. Text columns and Parquet columns have the same
// settings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "formats/data/label_columns.h"
#include "formats/data/number_notation.h"

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

/// The transforms of a dense column, applied in the order log, standardize.
struct DenseTransforms {
  DenseTransforms() = default;
  DenseTransforms(DenseTransform one)
      : log(one == DenseTransform::log), standardise(one == DenseTransform::standardise) {}

  bool log = false, standardise = false;

  bool any() const { return log || standardise; }
};
/// Reads a word, or an array of words in the order of application.
Misfit read_value(const Json& value, const Range&, DenseTransforms& out);
Json to_json(const DenseTransforms&);
template <>
struct TypeWord<DenseTransforms> {
  static std::string text() { return "word or array of word"; }
  static std::vector<std::string> words() { return words_of<DenseTransform>(); }
};

/// A group of columns; each column becomes one dense value.
struct DenseColumns {
  std::vector<std::string> columns;
  DenseTransforms transform;
  std::vector<double> mean, std;  ///< one value for all columns, or one per column
  /// Replaces a missing value. If empty: 0 for columns of text files and for learned columns; in other columns of
  /// Parquet files, a missing value is an error.
  std::optional<double> fallback;
  std::optional<NumberFormat> number_format{};  ///< of text columns; empty: the section's format
  std::string unit{};                           ///< unit of the numbers in a text column

  NumberNotation notation() const { return {number_format, unit}; }
  /// Whether mean and standard deviation are learned from the training data.
  bool learned() const { return transform.standardise && mean.empty() && std.empty(); }
};

/// A group of columns; each column becomes one slot.
struct SlotColumns {
  std::vector<std::string> columns;
  std::optional<KeyRule> keys;  ///< empty: hash, but Parquet columns of integers contain the keys
  int64_t buckets = 0;
  std::string vocabulary, separator;
  std::optional<std::string> fallback;
  /// slots with the same name map equal values to equal keys; empty: a separate key space per slot
  std::string key_space{};
  bool brackets = false;  ///< cells are lists in brackets (BracketedList)
};

/// `fallback`: the manual's text on "default".
Schema<DenseColumns> dense_columns_schema(const char* fallback);
/// The schema of slots in text files, whose cells may contain several values.
Schema<SlotColumns> slot_columns_schema();
/// The schema of slots in Parquet files, which have list columns instead of such cells.
Schema<SlotColumns> parquet_slot_columns_schema();

/// Number of columns in all groups.
int64_t columns_of(const std::vector<DenseColumns>&);
int64_t columns_of(const std::vector<SlotColumns>&);
/// Maximum keys of each slot: 1, or 0 (unlimited) if a text may contain several values.
std::vector<int64_t> nnz_of(const std::vector<SlotColumns>&);

/// The key space name of each slot; empty for a slot with a separate key space.
std::vector<std::string> key_spaces_of(const std::vector<SlotColumns>&);
/// For each slot, the first slot of its key space, which determines seed and base. A slot with a separate key space
/// maps to itself.
std::vector<int64_t> first_of_key_spaces(const std::vector<std::string>& key_spaces);
/// Reports slots of one key space that convert values to keys by different rules. `by_type`: whether a column's type
/// determines the rule of a slot without "keys".
void check_key_spaces(const std::vector<SlotColumns>&, bool by_type, const std::string& pointer, Problems&);

/// Pointers to the column lists of a format's object.
struct StatedColumns {
  std::vector<LabelColumn>* labels;
  std::vector<DenseColumns>* dense;
  std::vector<SlotColumns>* slots;
};

/// Reports each text of "missing" that is empty or is also a positive label.
void check_missing(const std::vector<std::string>& missing, const std::vector<LabelColumn>& labels,
                   const std::string& pointer, Problems&);

/// Reports a value that is not a single character. `may_be_empty`: an empty value is allowed.
void check_one_character(const std::string& value, bool may_be_empty, const std::string& pointer, Problems&);

}  // namespace hctr
