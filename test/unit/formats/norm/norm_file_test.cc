// Norm files written by the writer are read back by training's cutter and parser.
#include <gtest/gtest.h>

#include <cstring>

#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

NormDemands demands_of(const DataSection& section, KeyWidth width = KeyWidth::detect) {
  return norm_demands(section, width);
}

void expect_rows(const SampleBlock& block, const std::vector<Row>& rows) {
  ASSERT_EQ(block.rows, static_cast<int64_t>(rows.size()));
  const size_t n = rows.size();
  for (size_t r = 0; r < n; ++r) {
    for (size_t k = 0; k < rows[r].label.size(); ++k)
      EXPECT_EQ(block.label[r * rows[r].label.size() + k], rows[r].label[k]);
    for (size_t k = 0; k < rows[r].dense.size(); ++k)
      EXPECT_EQ(block.dense[r * rows[r].dense.size() + k], rows[r].dense[k]);
    for (size_t s = 0; s < rows[r].slots.size(); ++s) {
      const std::vector<int64_t> keys(block.keys.begin() + block.offsets[s * n + r],
                                      block.keys.begin() + block.offsets[s * n + r + 1]);
      EXPECT_EQ(keys, rows[r].slots[s]) << "row " << r << " slot " << s;
    }
  }
}

class NormRoundTrip : public ::testing::TestWithParam<NormVariant> {};

TEST_P(NormRoundTrip, ReadsBackWhatWasWrittenAndFindsTheKeyWidth) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  const auto [check, key_bytes, bags] = GetParam();
  for (const int64_t count : {1, 2, 100, 20000}) {
    for (const uint64_t key_limit : {uint64_t{2}, uint64_t{100}, uint64_t{1} << 32}) {
      const auto rows = random_rows(section, count, 7 + key_limit, key_limit, bags);
      write_rows(folder / "a.data", style_of(section, check, key_bytes), rows);
      NormDemands demands = demands_of(section);
      const NormInfo info = read_norm_info(folder / "a.data", demands);
      EXPECT_EQ(info.key_bytes, key_bytes) << count << " rows, keys below " << key_limit;
      EXPECT_EQ(info.check, check);
      expect_rows(read_norm_file(folder / "a.data", demands), rows);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, NormRoundTrip, ::testing::ValuesIn(kNormVariants));

TEST(NormFile, WidensKeysOf32BitsAsUnsigned) {
  const Folder folder;
  const DataSection section = section_of(1, 0, {input_of("x", 2, 1, 2)});
  write_rows(folder / "a", style_of(section, Check::sum, 4), {{{1}, {}, {{4294967295}, {2147483648}}}});
  const SampleBlock block = read_norm_file(folder / "a", demands_of(section));
  EXPECT_EQ(block.keys[0], 4294967295);
  EXPECT_EQ(block.keys[1], 2147483648);
}

TEST(NormFile, KeepsNegativeKeysOf64Bits) {
  const Folder folder;
  const DataSection section = section_of(1, 0, {input_of("x", 2, 1, 2)});
  write_rows(folder / "a", style_of(section, Check::none, 8),
             {{{1}, {}, {{-5}, {7}}}, {{0}, {}, {{-1}, {int64_t{1} << 60}}}});
  const SampleBlock block = read_norm_file(folder / "a", demands_of(section));
  EXPECT_EQ(block.keys[0], -5);
  EXPECT_EQ(block.keys[3], int64_t{1} << 60);
}

// Two slots, each with one 64-bit key (lo, hi), are the words [1, lo, hi] [1, lo, hi]. With 32-bit keys they can also
// be read as [1, lo] [hi, ...] if hi is 3: a slot with one key and a slot with three keys. Both readings end at the end
// of the record.
TEST(NormKeyWidth, OneRecordThatFitsBothWidthsIsSettledByTheNext) {
  const Folder folder;
  const DataSection section = section_of(1, 0, {input_of("x", 2, 4, 8)});
  const int64_t three = int64_t{3} << 32;
  for (const Check check : {Check::sum, Check::none}) {
    write_rows(folder / "a", style_of(section, check, 8), {{{1}, {}, {{three + 9}, {5}}}, {{0}, {}, {{9}, {5}}}});
    EXPECT_EQ(read_norm_info(folder / "a", demands_of(section)).key_bytes, 8);
  }
}

TEST(NormKeyWidth, AFileThatFitsBothWidthsAsksForInputKeyTypeAndObeysIt) {
  const Folder folder;
  const DataSection section = section_of(1, 0, {input_of("x", 2, 4, 8)});
  const int64_t three = int64_t{3} << 32;
  for (const Check check : {Check::sum, Check::none}) {
    write_rows(folder / "a", style_of(section, check, 8), {{{1}, {}, {{three + 9}, {5}}}});
    EXPECT_SAYS(message_of([&] { read_norm_info(folder / "a", demands_of(section)); }), "input_key_type");
    EXPECT_EQ(read_norm_info(folder / "a", demands_of(section, KeyWidth::u32)).key_bytes, 4);
    EXPECT_EQ(read_norm_info(folder / "a", demands_of(section, KeyWidth::i64)).key_bytes, 8);
  }
}

TEST(NormKeyWidth, AskingForTheWrongWidthSaysSo) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  write_rows(folder / "a", style_of(section, Check::sum, 8), random_rows(section, 10, 1, 1 << 20, true));
  const std::string message = message_of([&] { read_norm_info(folder / "a", demands_of(section, KeyWidth::u32)); });
  EXPECT_SAYS(message, "holds 64-bit keys, but 32-bit keys were requested");
}

TEST(NormKeyWidth, RecordsWithoutAnyKeyNeedNoWidth) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  const std::vector<Row> rows(50, Row{{1}, {1, 2, 3}, {{}, {}, {}, {}, {}, {}}});
  for (const Check check : {Check::sum, Check::none}) {
    write_rows(folder / "a", style_of(section, check, 4), rows);
    expect_rows(read_norm_file(folder / "a", demands_of(section)), rows);
  }
}

TEST(NormKeyWidth, IsFoundWhenOnlyTheLastRecordHasKeys) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  std::vector<Row> rows(20000, Row{{1}, {1, 2, 3}, {{}, {}, {}, {}, {}, {}}});
  rows.back().slots[3] = {17};
  for (const Check check : {Check::sum, Check::none})
    for (const int key_bytes : {4, 8}) {
      write_rows(folder / "a", style_of(section, check, key_bytes), rows);
      EXPECT_EQ(read_norm_info(folder / "a", demands_of(section)).key_bytes, key_bytes);
    }
}

TEST(NormFile, SkipsAndCountsRecordsThatFailTheirCheckSum) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  const NormStyle style = style_of(section, Check::sum, 8);
  auto rows = random_rows(section, 30, 3, 1000, true);
  write_rows(folder / "a", style, rows);
  std::vector<std::byte> bytes = bytes_of(folder / "a"), before;
  for (int i = 0; i < 4; ++i) append_row(style, rows[static_cast<size_t>(i)], before);
  bytes[69 + before.size() + 4 + 1] ^= std::byte{1};  // a byte in the label of record 5
  put_bytes(folder / "a", bytes);
  int64_t skipped = 0;
  const SampleBlock block = read_norm_file(folder / "a", demands_of(section), &skipped);
  rows.erase(rows.begin() + 4);
  EXPECT_EQ(skipped, 1);
  expect_rows(block, rows);
}

class NormTruncation : public ::testing::TestWithParam<Check> {};
TEST_P(NormTruncation, EveryCutOffFileIsAnErrorNamingTheFile) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  write_rows(folder / "a", style_of(section, GetParam(), 4), random_rows(section, 6, 3, 1000, true));
  const std::vector<std::byte> bytes = bytes_of(folder / "a");
  for (size_t keep = 0; keep < bytes.size(); ++keep) {
    put_bytes(folder / "b", {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(keep)});
    const std::string message = message_of([&] { read_norm_file(folder / "b", demands_of(section)); });
    EXPECT_SAYS(message, (folder / "b").string()) << keep;
    EXPECT_SAYS(message, "data: ");
  }
}
INSTANTIATE_TEST_SUITE_P(Checks, NormTruncation, ::testing::Values(Check::none, Check::sum));

TEST(NormFile, ACutOffLastRecordIsNamedWithItsPlace) {
  const Folder folder;
  const DataSection section = section_of(1, 0, {input_of("x", 1, 1, 1)});
  const std::vector<Row> rows(5, Row{{1}, {}, {{3}}});
  write_rows(folder / "a", style_of(section, Check::none, 8), rows);
  cut_bytes(folder / "a", 3);
  const std::string message = message_of([&] { read_norm_file(folder / "a", demands_of(section)); });
  EXPECT_SAYS(message, "record 5 of 5, at byte 128: is truncated: only 13 of its bytes are in the file");
}

TEST(NormFile, BytesPastTheLastRecordAreAnError) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  write_rows(folder / "a", style_of(section, Check::sum, 4), random_rows(section, 6, 3, 1000, true));
  auto bytes = bytes_of(folder / "a");
  bytes.resize(bytes.size() + 9);
  put_bytes(folder / "a", bytes);
  EXPECT_SAYS(message_of([&] { read_norm_file(folder / "a", demands_of(section)); }),
              "its header promises 6 records, which end at byte");
}

TEST(NormFile, AHeaderThatDisagreesWithTheConfigSaysBothValues) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  write_rows(folder / "a", style_of(section, Check::sum, 4), random_rows(section, 6, 3, 1000, true));
  const auto message = [&](auto change) {
    DataSection other = section;
    change(other);
    return message_of([&] { read_norm_header(folder / "a", demands_of(other)); });
  };
  EXPECT_SAYS(message([](DataSection& c) { c.label.label_dim = 2; }), "label_dim 1, but the Data layer expects 2");
  EXPECT_SAYS(message([](DataSection& c) { c.dense.dense_dim = 13; }), "dense_dim 3, but the Data layer expects 13");
  EXPECT_SAYS(message([](DataSection& c) { c.sparse[0].slot_num = 3; }), "slot_num 6, but the Data layer expects 8");
  EXPECT_SAYS(message([](DataSection& c) { c.check = Check::none; }),
              "\"check\" is \"None\" in the Data layer, but this file was written with \"Sum\"");
  EXPECT_EQ(message([](DataSection& c) { c.check = Check::sum; }), "");
}

TEST(NormFile, GarbageIsNoNormFile) {
  const Folder folder;
  std::vector<std::byte> bytes(500);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(mix64(i));
  put_bytes(folder / "a", bytes);
  EXPECT_SAYS(message_of([&] { read_norm_info(folder / "a", demands_of(wide_and_deep_section())); }),
              "is not a Norm file: its header says error_check");
  EXPECT_SAYS(message_of([&] { read_norm_info(folder / "none", demands_of(wide_and_deep_section())); }),
              "io: cannot open data file");
}

TEST(NormFile, AHeaderWhoseCheckSumFailsSaysSo) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  write_rows(folder / "a", style_of(section, Check::sum, 4), random_rows(section, 6, 3, 1000, true));
  auto bytes = bytes_of(folder / "a");
  bytes[13] ^= std::byte{64};
  put_bytes(folder / "a", bytes);
  EXPECT_SAYS(message_of([&] { read_norm_info(folder / "a", demands_of(section)); }),
              "the check sum of the header does not "
              "match");
}

class NormLimits : public ::testing::TestWithParam<NormVariant> {};
TEST_P(NormLimits, MoreKeysThanDeclaredNameSlotInputAndLimit) {
  const Folder folder;
  DataSection section = wide_and_deep_section();
  const NormStyle style = style_of(section, GetParam().check, GetParam().key_bytes);
  const auto message = [&](size_t slot, size_t keys, size_t other_slots_keys) {
    auto rows = random_rows(section, 50, 3, 100000, true);
    for (size_t s = 1; s < 6; ++s) rows[20].slots[s].assign(other_slots_keys, 77);
    rows[20].slots[slot].assign(keys, 99);
    write_rows(folder / "a", style, rows);
    return message_of([&] { read_norm_file(folder / "a", demands_of(section)); });
  };
  EXPECT_SAYS(message(3, 3, 0), "slot 3 (of sparse input \"deep\") has 3 keys, more than its max_nnz of 2");
  EXPECT_SAYS(message(0, 500, 0), "slot 0 (of sparse input \"wide\") has 500 keys, more than its max_nnz of 4");
  EXPECT_SAYS(message(5, 2, 2),
              "sparse input \"deep\" has 8 keys in this sample up to slot 4, more than its "
              "max_feature_num_per_sample of 7");
  EXPECT_SAYS(message(3, 3, 0), "record 21 of 50, at byte ");
  section.sparse[1].nnz_per_slot = PerSlot{{2, 2, 3, 2, 2}};
  EXPECT_EQ(message(3, 3, 0), "");
  section.sparse[1].nnz_per_slot = PerSlot{{2, 2, 3, 2, 1}};
  EXPECT_SAYS(message(5, 2, 0), "slot 5 (of sparse input \"deep\") has 2 keys, more than its max_nnz of 1");
}
INSTANTIATE_TEST_SUITE_P(Styles, NormLimits,
                         ::testing::Values(NormVariant{Check::none, 4, true}, NormVariant{Check::none, 8, true},
                                           NormVariant{Check::sum, 4, true}, NormVariant{Check::sum, 8, true}));

TEST(NormFile, ANegativeCountOfKeysIsAnError) {
  const Folder folder;
  const DataSection section = section_of(1, 0, {input_of("x", 1, 1, 1)});
  write_rows(folder / "a", style_of(section, Check::none, 8), std::vector<Row>(5, Row{{1}, {}, {{3}}}));
  auto bytes = bytes_of(folder / "a");
  const int32_t minus = -2;
  std::memcpy(bytes.data() + 64 + 3 * 16 + 4, &minus, 4);
  put_bytes(folder / "a", bytes);
  EXPECT_SAYS(message_of([&] { read_norm_file(folder / "a", demands_of(section)); }),
              "record 4 of 5, at byte 112: slot 0 (of sparse input \"x\") states a number of -2 keys");
}

TEST(NormFile, ABrokenFrameLengthIsAnError) {
  const Folder folder;
  const DataSection section = section_of(1, 0, {input_of("x", 1, 1, 1)});
  write_rows(folder / "a", style_of(section, Check::sum, 8), std::vector<Row>(5, Row{{1}, {}, {{3}}}));
  auto bytes = bytes_of(folder / "a");
  bytes[69 + 2 * 21 + 2] = std::byte{1};
  put_bytes(folder / "a", bytes);
  EXPECT_SAYS(message_of([&] { read_norm_file(folder / "a", demands_of(section)); }),
              "record 3 of 5, at byte 111: has a stated length of 65552 bytes; the Data layer allows 8 to 16");
}

}  // namespace
}  // namespace hctr::data_test
