// The columns of a Data layer: which become dense values and which become slots, and how. The same for text columns and
// Parquet columns.
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

/// Transforms of a dense column's numbers, in this order.
struct DenseTransforms {
  DenseTransforms() = default;
  DenseTransforms(DenseTransform one)
      : log(one == DenseTransform::log), standardise(one == DenseTransform::standardise) {}

  bool log = false, standardise = false;

  bool any() const { return log || standardise; }
};
/// A word, or an array of words in the order of the transforms.
Misfit read_value(const Json& value, const Range&, DenseTransforms& out);
Json to_json(const DenseTransforms&);
template <>
struct TypeWord<DenseTransforms> {
  static std::string text() { return "word or array of word"; }
  static std::vector<std::string> words() { return words_of<DenseTransform>(); }
};

/// Columns that become dense values, one each.
struct DenseColumns {
  std::vector<std::string> columns;
  DenseTransforms transform;
  std::vector<double> mean, std;   ///< one for all of the columns, or one for each
  std::optional<double> fallback;  ///< none: 0 in a text and where mean and std are learned, else in Parquet an error
  std::optional<NumberFormat> number_format{};  ///< format of texts; none: the section's
  std::string unit{};                           ///< unit in texts

  NumberNotation notation() const { return {number_format, unit}; }
  /// Whether mean and standard deviation are learned from the training data.
  bool learned() const { return transform.standardise && mean.empty() && std.empty(); }
};

/// Columns that become slots, one each.
struct SlotColumns {
  std::vector<std::string> columns;
  std::optional<KeyRule> keys;  ///< none: hashed, but numbers of Parquet are keys themselves
  int64_t buckets = 0;
  std::string vocabulary, separator;
  std::optional<std::string> fallback;
  std::string key_space{};  ///< slots of one name give equal values equal keys; empty: each slot has its own
  bool brackets = false;    ///< cells are lists in brackets, as BracketedList reads them
};

/// `fallback`: the manual's sentence on "default".
Schema<DenseColumns> dense_columns_schema(const char* fallback);
/// Columns of a text, whose cells may hold several values; and of Parquet files, which have lists.
Schema<SlotColumns> slot_columns_schema();
Schema<SlotColumns> parquet_slot_columns_schema();

/// Columns that the groups name.
int64_t columns_of(const std::vector<DenseColumns>&);
int64_t columns_of(const std::vector<SlotColumns>&);
/// Keys of each slot: 1, or 0 where a text holds several values.
std::vector<int64_t> nnz_of(const std::vector<SlotColumns>&);

/// The name of the key space of each slot, in order; empty where a slot has its own.
std::vector<std::string> key_spaces_of(const std::vector<SlotColumns>&);
/// The slot whose seed and base each slot has: the first of its key space, itself where it has its own.
std::vector<int64_t> first_of_key_spaces(const std::vector<std::string>& key_spaces);
/// Reports slots of one key space whose values become keys in different ways. `by_type`: without "keys" the type of a
/// column decides.
void check_key_spaces(const std::vector<SlotColumns>&, bool by_type, const std::string& pointer, Problems&);

/// Column settings of a format's object. Pointers to its lists.
struct StatedColumns {
  std::vector<LabelColumn>* labels;
  std::vector<DenseColumns>* dense;
  std::vector<SlotColumns>* slots;
};

/// Reports texts of "missing" that are empty, and those that are a positive label too.
void check_missing(const std::vector<std::string>& missing, const std::vector<LabelColumn>& labels,
                   const std::string& pointer, Problems&);

/// Reports a value that is not a single character, or, where that is allowed, not empty.
void check_one_character(const std::string& value, bool may_be_empty, const std::string& pointer, Problems&);

}  // namespace hctr
