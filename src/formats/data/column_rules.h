// How the values of a column become dense values or keys, for columns of texts and of Parquet files.
#pragma once

#include <memory>
#include <string_view>

#include "formats/data/column_section.h"
#include "formats/data/column_statistics.h"
#include "formats/data/text_grammar.h"

namespace hctr {

/// One column that becomes a dense value.
struct DenseRule {
  std::string column;
  DenseTransforms transform{};
  double mean = 0, std = 1;
  std::optional<float> fallback{};           ///< the value of a missing one
  std::optional<NumberNotation> notation{};  ///< notation of texts; none: plain numbers
};
/// `statistics`: for the columns whose mean and standard deviation are learned. `format`: the notation of numbers if a
/// column states none. Errors: Error(config) naming a column that is not among them.
std::vector<DenseRule> dense_rules(const std::vector<DenseColumns>&, const std::vector<ColumnStatistics>& statistics,
                                   const std::optional<NumberFormat>& format = {});
/// The dense value before it is rounded to float. A number is never rounded to float before its mean is subtracted.
double transformed(const DenseRule&, double number);
/// The dense value. False when it is not a finite float.
bool transformed(const DenseRule&, double number, float& value);

class VocabularyFile;

/// The identity of a vocabulary: its values, and their order.
struct VocabularyFacts {
  int64_t values = 0;
  uint64_t hash = 0;
};
VocabularyFacts facts_of(const VocabularyFile&);

/// One column that becomes a slot.
struct SlotRule {
  std::string column;
  std::optional<KeyRule> keys;  ///< none: the format decides
  uint64_t seed = 0;
  int64_t base = 0, buckets = 0;  ///< keys of the slot: [base, base + buckets)
  int64_t first = 0;              ///< the first slot of the key space, which shares seed, base and vocabulary
  char separator = '\0';
  bool brackets = false;
  std::optional<std::string> fallback;
  std::shared_ptr<const VocabularyFile> vocabulary;

  /// Whether a text may hold several values.
  bool several_values() const { return brackets || separator != '\0'; }
};
/// `seed`: the section's; a slot's own depends on the number of the first slot of its key space. Reads vocabularies,
/// whose values are written as `grammar` says. Errors: Error(io), Error(data) for those.
std::vector<SlotRule> slot_rules(const std::vector<SlotColumns>&, int64_t seed, const TextGrammar& grammar);
/// The seed and all keys of slot `slot` by default.
SlotRule slot_rule(const std::string& column, int64_t slot, int64_t seed);
/// The key of a value by the rule `keys`. False when there is none.
bool key_of(const SlotRule&, KeyRule keys, std::string_view value, int64_t& key);
/// The values that have a key by a rule, for messages: "an integer from -2^63 to 2^64 - 1".
const char* values_with_keys(KeyRule);

/// The key of the value `text` in slot `slot`, of `buckets` keys: floor(h * buckets / 2^64) with h = text_hash(text,
/// mix64(seed + slot)).
int64_t csv_hashed_key(std::string_view text, uint64_t seed, int64_t slot, int64_t buckets);
/// Keys that a hash without buckets gives: all of [0, 2^63 - 1).
inline constexpr int64_t kAllKeys = 0x7fffffffffffffff;

}  // namespace hctr
