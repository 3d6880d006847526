#include "data/column_section.h"

#include "base/error.h"

namespace hctr {
namespace {

void check_dense(DenseColumns& dense, const std::string& pointer, Problems& problems) {
  const bool standardise = dense.transform == DenseTransform::standardise;
  for (const auto& [name, values] : {std::pair{"/mean", &dense.mean}, {"/std", &dense.std}}) {
    if (!standardise && !values->empty())
      problems.error(pointer + name, "only \"transform\": \"standardise\" has a use for it");
    if (standardise && values->size() != 1 && values->size() != dense.columns.size())
      problems.error(pointer + name, cat("expected one number for all columns or ", dense.columns.size(),
                                         ", one for each; found ", values->size()));
  }
  for (const double std : dense.std)
    if (!(std > 0)) problems.error(pointer + "/std", cat("expected numbers more than 0, found ", std));
}

void check_slots(SlotColumns& slots, const std::string& pointer, Problems& problems) {
  check_one_character(slots.separator, true, pointer + "/separator", problems);
  if (slots.buckets != 0 && slots.keys.value_or(KeyRule::hash) != KeyRule::hash)
    problems.error(pointer + "/buckets", "only \"keys\": \"hash\" has a use for it");
  if (slots.vocabulary.empty() == (slots.keys == KeyRule::vocabulary))
    problems.error(pointer + "/vocabulary",
                   slots.vocabulary.empty()
                       ? "\"keys\": \"vocabulary\" needs the file that holds the values, one a line"
                       : "only \"keys\": \"vocabulary\" has a use for it");
}

template <class Group>
int64_t count_columns(const std::vector<Group>& groups) {
  size_t count = 0;
  for (const Group& group : groups) count += group.columns.size();
  return static_cast<int64_t>(count);
}

}  // namespace

void check_one_character(const std::string& value, bool may_be_empty, const std::string& pointer, Problems& problems) {
  if (value.size() == 1 ? value != "\n" && value != "\r" : value.empty() && may_be_empty) return;
  problems.error(pointer, cat("expected one character", may_be_empty ? ", or an empty string for none" : "",
                              ", found \"", value, "\""));
}

Schema<DenseColumns> dense_columns_schema(const char* fallback) {
  return Schema<DenseColumns>("dense columns")
      .need("columns", &DenseColumns::columns, "columns that become dense values, one each, in this order")
      .opt("transform", &DenseColumns::transform,
           "what is done to the numbers: nothing, ln(1 + max(x, 0)), or (x - mean) / std")
      .opt("mean", &DenseColumns::mean, "for standardise: one number, or one for each column")
      .opt("std", &DenseColumns::std, "for standardise: one number, or one for each column")
      .opt("default", &DenseColumns::fallback, fallback)
      .together(check_dense);
}

namespace {

/// The fields that slots of every format have. `keys`: how a value becomes a key.
Schema<SlotColumns> common_slot_columns(const std::string& keys) {
  return Schema<SlotColumns>("slot columns")
      .need("columns", &SlotColumns::columns, "columns that become slots, one each, in this order")
      .opt("keys", &SlotColumns::keys, keys)
      .opt("buckets", &SlotColumns::buckets, "for hash: keys of each column; 0: 63-bit keys", between(0, 1LL << 48))
      .opt("vocabulary", &SlotColumns::vocabulary, "for vocabulary: a text file with one value a line")
      .together(check_slots);
}

}  // namespace

Schema<SlotColumns> slot_columns_schema() {
  return common_slot_columns(
             "how a value becomes a key: hashed; its line in a file; a decimal or hexadecimal number that is the key; "
             "left out: hashed")
      .opt("separator", &SlotColumns::separator,
           "a cell holds several values with this character between them; empty: one")
      .opt("default", &SlotColumns::fallback, "the value that an empty cell counts as; left out: a slot without keys");
}

Schema<SlotColumns> parquet_slot_columns_schema() {
  return common_slot_columns(
             "how a value becomes a key, as for Csv; numbers are hashed and looked up as their decimal digits; left "
             "out: integers are the keys, text is hashed")
      .opt("default", &SlotColumns::fallback,
           "the value that a null counts as, \"\" for none, so that it gives no key; left out: default_key");
}

int64_t columns_of(const std::vector<DenseColumns>& groups) { return count_columns(groups); }
int64_t columns_of(const std::vector<SlotColumns>& groups) { return count_columns(groups); }

const std::vector<std::pair<std::string, DenseTransform>>& EnumWords<DenseTransform>::table() {
  static const std::vector<std::pair<std::string, DenseTransform>> words = {
      {"none", DenseTransform::none},
      {"log", DenseTransform::log},
      {"standardise", DenseTransform::standardise},
      {"standardize", DenseTransform::standardise}};
  return words;
}

const std::vector<std::pair<std::string, KeyRule>>& EnumWords<KeyRule>::table() {
  static const std::vector<std::pair<std::string, KeyRule>> words = {
      {"hash", KeyRule::hash}, {"vocabulary", KeyRule::vocabulary}, {"number", KeyRule::number}, {"hex", KeyRule::hex}};
  return words;
}

}  // namespace hctr
