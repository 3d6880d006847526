// Chunks of uniform records have their own, faster parser. It must return the same samples as the general parser.
#include "formats/norm/norm_pattern.h"

#include <gtest/gtest.h>

#include <limits>

#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

constexpr int64_t kBig = int64_t{1} << 40;

/// Returns the rows of a block. The block may be packed.
std::vector<Row> rows_in(const SampleBlock& block, const DataSection& section) {
  std::vector<Row> rows;
  for (int64_t r = 0; r < block.rows; ++r) {
    Row row;
    const auto floats = [r](const std::vector<float>& from, int64_t width) {
      return std::vector<float>(from.begin() + r * width, from.begin() + (r + 1) * width);
    };
    row.label = floats(block.label, section.label.label_dim);
    row.dense = floats(block.dense, section.dense.dense_dim);
    for (int64_t s = 0; s < section.slots(); ++s) {
      const auto bag = static_cast<size_t>(s * block.rows + r);
      int64_t begin = s * block.rows + r, end = begin + 1;
      if (!block.one_hot && block.has_ones(s)) {
        begin = block.offsets[static_cast<size_t>(s * block.rows)] + r;
        end = begin + 1;
      } else if (!block.one_hot) {
        begin = block.offsets[bag];
        end = block.offsets[bag + 1];
      }
      row.slots.emplace_back();
      for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k)
        row.slots.back().push_back(block.narrow ? int64_t{block.keys_32[k]} : block.keys[k]);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void expect_rows(const std::vector<Row>& seen, const std::vector<Row>& rows) {
  ASSERT_EQ(seen.size(), rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    ASSERT_EQ(seen[r].label, rows[r].label) << r;
    ASSERT_EQ(seen[r].dense, rows[r].dense) << r;
    ASSERT_EQ(seen[r].slots, rows[r].slots) << r;
  }
}

class NormPatterns : public testing::TestWithParam<NormVariant> {
 protected:
  /// Writes the rows, reads them with both parsers, and compares the results. Returns the block of the packing parser.
  SampleBlock read(const std::vector<Row>& rows) {
    const fs::path file = folder_ / "rows.data";
    write_rows(file, style_of(section_, GetParam().check, GetParam().key_bytes), rows);
    const NormDemands demands = norm_demands(section_, GetParam().key_bytes == 4 ? KeyWidth::u32 : KeyWidth::i64);
    expect_rows(rows_in(read_norm_file(file, demands), section_), rows);
    SampleBlock packed = read_norm_file(file, demands, nullptr, true);
    expect_rows(rows_in(packed, section_), rows);
    return packed;
  }
  std::vector<Row> some_rows(int64_t count, bool bags) { return random_rows(section_, count, 7, 1000, bags); }

  Folder folder_;
  DataSection section_ = wide_and_deep_section();
};

TEST_P(NormPatterns, GiveTheRowsOfAnyNumberAndAreUsed) {
  for (const int64_t count : {1, 3, 4, 15, 16, 17, 500}) {
    const SampleBlock block = read(some_rows(count, GetParam().bags));
    EXPECT_TRUE(block.narrow) << count;
    EXPECT_TRUE(block.one_hot || GetParam().bags) << count;
  }
}

TEST_P(NormPatterns, ASlotWithOtherCountsInTheMiddleLeavesOtherInputsAsTheyAre) {
  for (const size_t at : {size_t{0}, size_t{1}, size_t{250}, size_t{498}, size_t{499}}) {
    std::vector<Row> rows = some_rows(500, false);
    rows[at].slots[0] = {5, 6, 7};
    SampleBlock block = read(rows);
    EXPECT_TRUE(block.narrow);
    EXPECT_EQ(block.ones, (std::vector<uint8_t>{0, 1, 1, 1, 1, 1})) << at;
    // A record with the same length as a record with one key per slot. One slot has no key, and the next slot has two.
    rows = some_rows(500, false);
    rows[at].slots[2] = {};
    rows[at].slots[3] = {8, 9};
    block = read(rows);
    EXPECT_EQ(block.ones, (std::vector<uint8_t>{1, 0, 0, 0, 0, 0})) << at;
  }
}

TEST_P(NormPatterns, AKeyThatNeeds64BitsWidensAll) {
  if (GetParam().key_bytes == 4) GTEST_SKIP() << "keys of 32 bits";
  for (const int64_t key : {kBig, int64_t{-1}, int64_t{1} << 32, std::numeric_limits<int64_t>::min()}) {
    std::vector<Row> rows = some_rows(500, GetParam().bags);
    rows[251].slots[4] = {key};
    // keeps the number of keys in slots 4 and 5 within the limit
    rows[251].slots[5] = std::vector<int64_t>(GetParam().bags ? 0 : 1);
    const SampleBlock block = read(rows);
    EXPECT_FALSE(block.narrow);
    EXPECT_FALSE(block.fits_32);
  }
  std::vector<Row> rows = some_rows(500, GetParam().bags);
  rows[251].slots[4] = {(int64_t{1} << 32) - 1};
  rows[251].slots[5] = std::vector<int64_t>(GetParam().bags ? 0 : 1);
  EXPECT_TRUE(read(rows).narrow);
}

TEST_P(NormPatterns, ABadRecordInTheMiddleIsFoundWithItsPlace) {
  std::vector<Row> rows = some_rows(500, GetParam().bags);
  rows[300].dense[1] = std::numeric_limits<float>::infinity();
  const fs::path file = folder_ / "rows.data";
  write_rows(file, style_of(section_, GetParam().check, GetParam().key_bytes), rows);
  const NormDemands demands = norm_demands(section_, GetParam().key_bytes == 4 ? KeyWidth::u32 : KeyWidth::i64);
  EXPECT_SAYS(message_of([&] { read_norm_file(file, demands, nullptr, true); }), "dense value 1 is inf");
  EXPECT_EQ(message_of([&] { read_norm_file(file, demands, nullptr, true); }),
            message_of([&] { read_norm_file(file, demands); }));
  int64_t skipped = 0;
  rows.erase(rows.begin() + 300);
  expect_rows(rows_in(read_norm_file(file, demands, &skipped, true, BadRecordPolicy::skip), section_), rows);
  EXPECT_EQ(skipped, 1);
}

TEST_P(NormPatterns, ARecordThatFailsItsCheckSumIsLeftOut) {
  if (GetParam().check == Check::none) GTEST_SKIP() << "no check sums";
  std::vector<Row> rows = some_rows(500, GetParam().bags);
  const fs::path file = folder_ / "rows.data";
  write_rows(file, style_of(section_, GetParam().check, GetParam().key_bytes), rows);
  std::vector<std::byte> bytes = bytes_of(file);
  bytes[bytes.size() - 2] ^= std::byte{1};  // changes the last key
  put_bytes(file, bytes);
  const NormDemands demands = norm_demands(section_, GetParam().key_bytes == 4 ? KeyWidth::u32 : KeyWidth::i64);
  int64_t skipped = 0;
  rows.pop_back();
  const auto seen = rows_in(read_norm_file(file, demands, &skipped, true), section_);
  EXPECT_EQ(skipped, 1);
  expect_rows(seen, rows);
}

INSTANTIATE_TEST_SUITE_P(EachVariant, NormPatterns, testing::ValuesIn(kNormVariants));

TEST(NormPattern, BatchesOfUnlikeFilesHoldTheRows) {
  const DataSection section = wide_and_deep_section();
  const Folder folder;
  std::vector<Row> rows;
  std::vector<fs::path> list;
  // Files with odd numbers have bags. File 2 has keys that need 64 bits, and file 4 has one such key.
  for (int file = 0; file < 6; ++file) {
    std::vector<Row> more =
        random_rows(section, 90, static_cast<uint64_t>(file), file == 2 ? kBig : 1000, file % 2 == 1);
    if (file == 4) more[40].slots[3] = {kBig};
    const fs::path path = folder / cat("part", file, ".data");
    write_rows(path, style_of(section, Check::sum, 8), more);
    list.push_back(path);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  write_file_list(folder / "list.txt", list, true);
  expect_reads(section, folder / "list.txt", rows, 100);
  expect_reads(section, folder / "list.txt", rows, 7);
  Rig rig(section, folder / "list.txt", {.batch = 40, .workers = 2, .repeat = false});
  const std::vector<ReadBatch> batches = rig.all();
  EXPECT_EQ(batches[0].packed[1].offsets, PackedKeys::kOnes);
  EXPECT_EQ(batches[0].packed[1].key_bytes, 4);
  EXPECT_NE(batches[3].packed[1].offsets, PackedKeys::kOnes);
  EXPECT_EQ(batches[3].packed[1].key_bytes, 4);
  EXPECT_EQ(batches[5].packed[1].key_bytes, 8);
}

}  // namespace
}  // namespace hctr::data_test
