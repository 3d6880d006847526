// Rules that convert the values of a column to dense values or keys, for text and Parquet columns.
#pragma once

#include <memory>
#include <string_view>

#include "formats/data/column_section.h"
#include "formats/data/column_statistics.h"
#include "formats/data/text_grammar.h"

namespace hctr {

/// Converts one column to a dense value.
struct DenseRule {
  std::string column;
  DenseTransforms transform{};
  double mean = 0, std = 1;
  std::optional<float> fallback{};           ///< replaces a missing value
  std::optional<NumberNotation> notation{};  ///< number notation in text columns; empty: plain numbers
};
/// One rule per dense column. `statistics`: learned mean and standard deviation of columns. `format`: default number
/// notation. Errors: Error(config) naming a column whose learned statistics are missing.
std::vector<DenseRule> dense_rules(const std::vector<DenseColumns>&, const std::vector<ColumnStatistics>& statistics,
                                   const std::optional<NumberFormat>& format = {});
/// The transformed value as double. The mean is subtracted before any rounding to float.
double transformed(const DenseRule&, double number);
/// Sets the transformed value as float. Returns false if the result is not finite.
bool transformed(const DenseRule&, double number, float& value);

class VocabularyFile;

/// Identifies a vocabulary by its values and their order.
struct VocabularyFacts {
  int64_t values = 0;
  uint64_t hash = 0;
};
VocabularyFacts facts_of(const VocabularyFile&);

/// Converts one column to the keys of a slot.
struct SlotRule {
  std::string column;
  std::optional<KeyRule> keys;  ///< empty: depends on the format
  uint64_t seed = 0;
  int64_t base = 0, buckets = 0;  ///< the slot's keys are [base, base + buckets)
  int64_t first = 0;              ///< first slot of its key space, whose slots share seed, base and vocabulary
  char separator = '\0';
  bool brackets = false;
  std::optional<std::string> fallback;
  std::shared_ptr<const VocabularyFile> vocabulary;

  /// Whether a text may contain several values.
  bool several_values() const { return brackets || separator != '\0'; }
};
/// One rule per slot. `seed`: the section's hash seed; a slot's seed also depends on the index of the first slot in its
/// key space. `grammar`: notation of values in vocabulary files, which this function reads. Errors: Error(io),
/// Error(data) for vocabulary files.
std::vector<SlotRule> slot_rules(const std::vector<SlotColumns>&, int64_t seed, const TextGrammar& grammar);
/// A slot's default rule: a separate hash seed, and no "buckets".
SlotRule slot_rule(const std::string& column, int64_t slot, int64_t seed);
/// Converts a value to its key by the rule `keys`. Returns false if the value has no key.
bool key_of(const SlotRule&, KeyRule keys, std::string_view value, int64_t& key);
/// Describes for messages which values have a key under a rule: "an integer from -2^63 to 2^64 - 1".
const char* values_with_keys(KeyRule);

/// Number of keys if "buckets" is 0, because hashes are in [0, 2^63 - 1).
inline constexpr int64_t kAllKeys = 0x7fffffffffffffff;

}  // namespace hctr
