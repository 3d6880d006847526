#include "export/onnx_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/base/random.h"
#include "support/onnx_reader.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

constexpr int64_t kTableDim = 3, kTableSlots = 2;

/// A table with rows for random keys, including the smallest and the largest key.
struct TestTable {
  TestTable(int64_t rows, bool by_slot) {
    table = {.name = "t", .dim = kTableDim, .slots = kTableSlots, .by_slot = by_slot};
    for (int64_t i = 0; i < rows; ++i) {
      const uint64_t mixed = mix64(static_cast<uint64_t>(i));
      const int64_t key = i == 0   ? std::numeric_limits<int64_t>::max()
                          : i == 1 ? std::numeric_limits<int64_t>::min() + 1
                                   : static_cast<int64_t>(mixed);
      std::vector<float>& row = vectors[{by_slot && mixed % 3 == 0 ? 1 : 0, key}];
      for (int64_t k = 0; k < kTableDim; ++k) row.push_back(static_cast<float>(i) + 0.25f * static_cast<float>(k));
    }
    for (const auto& [owner, vector] : vectors) {
      if (by_slot) table.slot_of.push_back(owner.first);
      table.keys.push_back(owner.second);
    }
    table.each_block = [this](const auto& sink) {
      for (const auto& [owner, vector] : vectors) sink(vector);
    };
  }
  /// Returns the vector of a key; nullptr if the key has no row.
  const std::vector<float>* find(int64_t slot, int64_t key) const {
    const auto at = vectors.find({table.by_slot ? slot : 0, key});
    return at == vectors.end() ? nullptr : &at->second;
  }

  std::map<std::pair<int64_t, int64_t>, std::vector<float>> vectors;  // by slot and key
  TableArrays table;
};

SparseInput input_of(std::vector<int64_t> nnz) {
  SparseInput input;
  input.top = "keys";
  input.slot_num = kTableSlots;
  input.nnz_per_slot = PerSlot{std::move(nnz)};
  return input;
}

EmbeddingSection section_with(const std::string& combiner) {
  Problems problems;
  EmbeddingSection section = parse_embedding(
      Json::parse(R"({"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": ["t", "lengths"],
                      "sparse_embedding_hparam": {"embedding_vec_size": 3, "combiner": ")" +
                      combiner + "\"}}",
                  "section"),
      "/layers/1", problems);
  problems.throw_if_any("section");
  return section;
}

OnnxArrays looked_up(const TestTable& table, const std::string& combiner, const std::vector<int64_t>& nnz,
                     const OnnxArray& keys, int64_t most_inline = 1 << 20, int64_t no_key = kNoKey) {
  const SparseInput input = input_of(nnz);
  const EmbeddingSection section = section_with(combiner);
  OnnxModel model;
  add_lookup(model, {table.table, section, input, {.most = input.longest_kept(), .fixed = !section.pooled()}, no_key},
             "y", "lengths");
  const TemporaryFolder folder;
  FileSet files;
  write_onnx(files, folder / "t.onnx", model, most_inline);
  files.commit();
  const OnnxFile file = read_onnx(folder / "t.onnx");
  EXPECT_EQ(file.external.contains("t/vectors"), most_inline == 0);
  return evaluate(file, {{"keys", keys}});
}

/// Returns keys [samples, slots, most]: keys with a row, keys without a row, and positions without a key.
OnnxArray keys_for(const TestTable& table, int64_t samples, int64_t most) {
  std::vector<int64_t> dims = {samples, kTableSlots}, keys;
  if (most > 1) dims.push_back(most);
  for (int64_t i = 0; i < samples * kTableSlots * most; ++i) {
    const uint64_t mixed = mix64(static_cast<uint64_t>(i) + 99);
    const auto row = static_cast<size_t>(mixed % (table.table.keys.size() + 1));
    const bool known = row < table.table.keys.size() && mixed % 5 != 0;
    // A key of one slot also occurs in the other slot, where it has no row.
    keys.push_back(mixed % 7 == 0 ? kNoKey : known ? table.table.keys[row] : static_cast<int64_t>(mixed));
  }
  return OnnxArray::of(std::move(dims), std::move(keys));
}

/// Expects vectors pooled as in an embedding: the sum of the keys' vectors, divided according to the combiner.
void expect_pooled(const TestTable& table, const std::string& combiner, int64_t most) {
  constexpr int64_t kSamples = 40;
  const OnnxArray keys = keys_for(table, kSamples, most);
  const OnnxArrays computed = looked_up(table, combiner, {most, most}, keys);
  const OnnxArray &y = computed.at("y"), &lengths = computed.at("lengths");
  ASSERT_EQ(y.dims, (std::vector<int64_t>{kSamples, kTableSlots, kTableDim}));
  ASSERT_EQ(lengths.dims, (std::vector<int64_t>{kSamples, kTableSlots}));
  size_t at = 0;
  for (int64_t bag = 0; bag < kSamples * kTableSlots; ++bag) {
    std::vector<double> sum(kTableDim, 0);
    double count = 0;
    for (int64_t k = 0; k < most; ++k) {
      const int64_t key = keys.integers[at++];
      if (key == kNoKey) continue;
      ++count;
      if (const std::vector<float>* vector = table.find(bag % kTableSlots, key))
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>((*vector)[i]);
    }
    const double divisor = combiner == "mean"    ? std::max(count, 1.0)
                           : combiner == "sqrtn" ? std::sqrt(std::max(count, 1.0))
                                                 : 1;
    EXPECT_EQ(lengths.reals[static_cast<size_t>(bag)], count);
    for (size_t i = 0; i < sum.size(); ++i)
      ASSERT_NEAR(y.reals[static_cast<size_t>(bag) * sum.size() + i], sum[i] / divisor, 1e-9) << "bag " << bag;
  }
}

TEST(OnnxTable, FindsTheRowOfEveryKeyAndNoOther) {
  for (const int64_t rows : {0, 1, 2, 3, 7, 8, 9, 200})
    for (const bool by_slot : {false, true}) {
      SCOPED_TRACE(cat(rows, " rows", by_slot ? " of slots and keys" : ""));
      expect_pooled(TestTable(rows, by_slot), "sum", 1);
    }
}

TEST(OnnxTable, PoolsSeveralKeysAsTheCombinerSays) {
  for (const char* combiner : {"sum", "mean", "sqrtn"})
    for (const bool by_slot : {false, true}) {
      SCOPED_TRACE(cat(combiner, by_slot ? ", of slots and keys" : ""));
      expect_pooled(TestTable(50, by_slot), combiner, 4);
    }
}

TEST(OnnxTable, GivesEveryKeyItsPlaceWithoutPooling) {
  const TestTable table(50, false);
  const OnnxArray keys = keys_for(table, 10, 4);
  // the second slot has four positions, but only one output column
  const OnnxArray y = looked_up(table, "none", {4, 1}, keys).at("y");
  ASSERT_EQ(y.dims, (std::vector<int64_t>{10, 5, kTableDim}));
  for (size_t sample = 0; sample < 10; ++sample)
    for (size_t place = 0; place < 5; ++place) {
      const int64_t key = keys.integers[sample * 8 + place];
      const std::vector<float>* vector = key == kNoKey ? nullptr : table.find(0, key);
      for (size_t i = 0; i < kTableDim; ++i)
        EXPECT_EQ(y.reals[(sample * 5 + place) * kTableDim + i], vector ? static_cast<double>((*vector)[i]) : 0)
            << sample << " " << place;
    }
}

TEST(OnnxTable, LargeOnesAreInAFileOfTheirOwn) {
  const TestTable table(500, false);
  const OnnxArray keys = keys_for(table, 10, 1);
  EXPECT_EQ(looked_up(table, "sum", {1, 1}, keys).at("y").reals,
            looked_up(table, "sum", {1, 1}, keys, 0).at("y").reals);
}

TEST(OnnxTable, ARowOfTheLeastKeyIsFoundAndTheNextKeyMeansNone) {
  TestTable table(3, false);
  table.vectors[{0, kNoKey}] = {7, 8, 9};
  table.table.keys.insert(table.table.keys.begin(), kNoKey);
  ModelArrays arrays;
  arrays.tables.push_back(table.table);
  EXPECT_EQ(no_key_of(arrays), kNoKey + 2) << "the table has a row of kNoKey + 1";
  const OnnxArray keys = OnnxArray::of({1, kTableSlots}, std::vector<int64_t>{kNoKey, kNoKey + 2});
  const OnnxArrays found = looked_up(table, "sum", {1, 1}, keys, 1 << 20, no_key_of(arrays));
  EXPECT_EQ(found.at("lengths").reals, (std::vector<double>{1, 0}));
  EXPECT_EQ(found.at("y").reals[0], (*table.find(0, kNoKey))[0]);
  EXPECT_EQ(found.at("y").reals[1], (*table.find(0, kNoKey))[1]);
}

}  // namespace
}  // namespace hctr::test
