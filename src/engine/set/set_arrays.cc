#include "engine/set/set_arrays.h"

#include <algorithm>
#include <set>

#include "core/base/expect.h"

namespace hctr {

void refuse_call(const std::string& what) { throw Error(Kind::usage, what); }

void check_options(const EmbeddingOptions& options) {
  if (options.tables.empty() || options.features.empty())
    refuse_call(
        "an embedding set needs at least one table "
        "and one feature");
  if (options.threads < 1) refuse_call(cat("threads of an embedding set: ", options.threads, ", expected at least 1"));
  if (options.batches < 1 || options.batches > 64)
    refuse_call(cat("batches of an embedding set: ", options.batches, ", expected 1 to 64"));
  if (options.most_keys < 1 || options.most_keys > int64_t{1} << 30)
    refuse_call(cat("most_keys of an embedding set: ", options.most_keys, ", expected 1 to 2^30"));
  if (options.host_bytes < 0 || options.disk_bytes < 0 || options.device_bytes.value_or(0) < 0)
    refuse_call("host_bytes, disk_bytes and device_bytes of an embedding set must not be negative");
  std::set<std::string> tables, features;
  for (const EmbeddingTableOptions& table : options.tables)
    if (!tables.insert(table.name).second) refuse_call(cat("two embedding tables are named '", table.name, "'"));
  for (const EmbeddingFeature& feature : options.features) {
    if (!features.insert(feature.name).second) refuse_call(cat("two features are named '", feature.name, "'"));
    if (!tables.contains(feature.table))
      refuse_call(cat("feature '", feature.name, "' is of table '", feature.table, "', which does not exist"));
    if (feature.weighted && (feature.pooling == Pooling::max || feature.pooling == Pooling::none))
      refuse_call(cat("feature '", feature.name, "' has weights, which pooling ",
                      feature.pooling == Pooling::max ? "max" : "none", " does not support"));
  }
  for (const std::string& table : tables)
    if (std::none_of(options.features.begin(), options.features.end(),
                     [&](const EmbeddingFeature& feature) { return feature.table == table; }))
      refuse_call(cat("embedding table '", table, "' has no feature"));
}

std::vector<size_t> tables_of_features(const EmbeddingOptions& options) {
  std::vector<size_t> table_of;
  for (const EmbeddingFeature& feature : options.features)
    for (size_t t = 0; t < options.tables.size(); ++t)
      if (options.tables[t].name == feature.table) table_of.push_back(t);
  return table_of;
}

namespace {

ops::KeyType key_type(const EmbeddingFeature& feature, ElementType type) {
  switch (type) {
    case ElementType::i32:
      return ops::KeyType::i32;
    case ElementType::u32:
      return ops::KeyType::u32;
    case ElementType::i64:
      return ops::KeyType::i64;
    case ElementType::u64:
      return ops::KeyType::u64;
    case ElementType::f32:
      break;
  }
  refuse_call(cat("keys of feature '", feature.name, "' are f32, expected i32, u32, i64 or u64"));
}

/// Called only on a CPU, where reading offsets is cheap.
void check_offsets(const EmbeddingFeature& feature, const ops::FeatureBags& bags) {
  const auto at = [&](int64_t b) {
    return bags.wide ? static_cast<const int64_t*>(bags.offsets)[b] : static_cast<const int32_t*>(bags.offsets)[b];
  };
  for (int64_t b = 0; b < bags.bags; ++b)
    if (at(b + 1) < at(b))
      refuse_call(
          cat("offsets of feature '", feature.name, "' decrease at sample ", b, ": ", at(b), ", then ", at(b + 1)));
  if (const int64_t keys = at(bags.bags) - at(0); keys != bags.most)
    refuse_call(cat("offsets of feature '", feature.name, "' cover ", keys, " keys, but the feature has ", bags.most));
}

int64_t key_at(const ops::FeatureBags& bags, int64_t i) {
  switch (bags.type) {
    case ops::KeyType::i32:
      return static_cast<const int32_t*>(bags.keys)[i];
    case ops::KeyType::u32:
      return static_cast<const uint32_t*>(bags.keys)[i];
    default:
      return static_cast<const int64_t*>(bags.keys)[i];
  }
}

void check_row_numbers(const EmbeddingFeature& feature, const EmbeddingTableOptions& table,
                       const ops::FeatureBags& bags) {
  for (int64_t i = 0; i < bags.most; ++i)
    if (const int64_t key = key_at(bags, i); key < 0 || key >= table.rows)
      throw Error(Kind::data, cat("feature '", feature.name, "' has key ", key, " at position ", i, "; table '",
                                  table.name, "' has rows 0 to ", table.rows - 1));
}

}  // namespace

std::vector<ops::FeatureBags> checked_bags(const EmbeddingOptions& options, std::span<const size_t> table_of,
                                           int64_t samples, std::span<const FeatureKeys> keys) {
  if (samples < 0) refuse_call(cat("the batch has ", samples, " samples, expected at least 0"));
  if (keys.size() != options.features.size())
    refuse_call(cat("keys of ", keys.size(), " features, but the set has ", options.features.size()));
  std::vector<ops::FeatureBags> all;
  std::vector<int64_t> of_table(options.tables.size());
  for (size_t f = 0; f < keys.size(); ++f) {
    const FeatureKeys& of = keys[f];
    const EmbeddingFeature& feature = options.features[f];
    if (of.count < 0 || (of.count > 0 && !of.keys))
      refuse_call(cat("feature '", feature.name, "' has ", of.count, " keys",
                      of.count < 0 ? ", expected at least 0" : ", but the pointer to its keys is null"));
    if (!of.offsets && of.count != samples)
      refuse_call(
          cat("feature '", feature.name, "' has ", of.count, " keys without offsets, but ", samples, " samples"));
    if (of.offsets && of.offsets_type != ElementType::i32 && of.offsets_type != ElementType::i64)
      refuse_call(cat("offsets of feature '", feature.name, "': expected i32 or i64"));
    if (of.weights && !feature.weighted)
      refuse_call(cat("feature '", feature.name,
                      "' has weights in this batch, but the feature's option `weighted` is "
                      "false"));
    of_table[table_of[f]] += of.count;
    if (of_table[table_of[f]] > options.most_keys)
      refuse_call(cat("a batch has ", of_table[table_of[f]], " keys of table '", feature.table, "', but most_keys is ",
                      options.most_keys));
    all.push_back({of.keys, key_type(feature, of.type), of.count, of.offsets, of.offsets_type == ElementType::i64,
                   samples, of.weights});
    if (options.gpu >= 0) continue;
    if (of.offsets) check_offsets(feature, all.back());
    if (const EmbeddingTableOptions& table = options.tables[table_of[f]]; table.rows > 0)
      check_row_numbers(feature, table, all.back());
  }
  return all;
}

void check_vectors(const EmbeddingOptions& options, std::span<const size_t> table_of, int64_t samples,
                   std::span<const int64_t> counts, std::span<const PlacedVectors> vectors) {
  if (vectors.size() != options.features.size())
    refuse_call(cat("vectors of ", vectors.size(), " features, but the set has ", options.features.size()));
  for (size_t f = 0; f < vectors.size(); ++f) {
    const EmbeddingFeature& feature = options.features[f];
    const int64_t dim = options.tables[table_of[f]].dim;
    const int64_t rows = feature.pooling == Pooling::none ? counts[f] : samples;
    if (rows > 0 && !vectors[f].data) refuse_call(cat("feature '", feature.name, "' has no memory for its vectors"));
    if (vectors[f].stride != 0 && vectors[f].stride < dim)
      refuse_call(cat("vectors of feature '", feature.name, "' are ", vectors[f].stride,
                      " elements apart, less than the "
                      "vector length ",
                      dim));
  }
}

}  // namespace hctr
