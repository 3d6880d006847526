// Raw data: written rows are read back unchanged, and every mismatch has its own error message.
#include "formats/raw/raw_set.h"

#include <gtest/gtest.h>

#include <cmath>

#include "formats/catalog/bad_records_file.h"
#include "formats/catalog/data_schema.h"
#include "unit/formats/data/raw_test_files.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

DataSection raw_section(bool floats) {
  DataSection section = section_of(2, 3, {input_of("wide", 1, 1, 1), input_of("deep", 4, 1, 4)});
  section.format = kRawFormat;
  section.float_label_dense = floats;
  return section;
}

std::vector<Row> rows_of(const DataSection& section, int64_t count) {
  auto rows = random_rows(section, count, 7, 1 << 30, false);
  for (Row& row : rows) row.label = {row.label[0] > 3 ? 1.0f : 0.0f, 1.0f};
  return rows;
}

/// Applies the reader's transform of integers: dense values become ln(x + 1).
void take_logarithms(std::vector<Row>& rows) {
  for (Row& row : rows)
    for (float& value : row.dense) value = static_cast<float>(std::log1p(std::trunc(static_cast<double>(value))));
}

TEST(RawSet, RowsComeBackFromOneFileOrAList) {
  const Folder folder;
  for (const bool floats : {true, false}) {
    DataSection section = raw_section(floats);
    auto rows = rows_of(section, 20000);  // 20000 rows are several chunks
    if (!floats) rows[0].dense = {0, 2e9f, 70000};
    const std::vector<Row> one(rows.begin(), rows.begin() + 1), others(rows.begin() + 1, rows.end());
    put_bytes(folder / "all", raw_bytes(rows, floats));
    put_bytes(folder / "a", raw_bytes(one, floats));
    put_bytes(folder / "b", raw_bytes(others, floats));
    write_file_list(folder / "list.txt", {folder / "a", folder / "b"}, true);
    if (!floats) take_logarithms(rows);
    expect_reads(section, folder / "all", rows, 777);
    expect_reads(section, folder / "list.txt", rows, 777);
  }
}

TEST(RawSet, SlotSizesAreAddedToTheKeysOfLaterSlots) {
  const Folder folder;
  DataSection section = raw_section(true);
  section.slot_size_array = {10, 0, 3000000000, 5, 7};
  auto rows = rows_of(section, 50);
  put_bytes(folder / "all", raw_bytes(rows, true));
  const int64_t offsets[] = {0, 10, 10, 3000000010, 3000000015};
  for (Row& row : rows)
    for (size_t s = 0; s < 5; ++s) row.slots[s][0] += offsets[s];
  expect_reads(section, folder / "all", rows);
}

TEST(RawSet, WiderKeysAreReadWhereTheyWereAskedForAndFit) {
  const Folder folder;
  const DataSection section = raw_section(true);
  auto rows = rows_of(section, 50);
  rows[3].slots[2] = {int64_t{1} << 40};
  put_bytes(folder / "all", raw_bytes<int64_t>(rows, true));
  BatchLayout layout(batch_shape(section, 50));
  std::vector<std::byte> memory(layout.bytes);
  Reader reader(section, {(folder / "all").string(), 50}, layout, {memory.data()},
                {.batch = 50, .repeat = false, .key_width = KeyWidth::i64}, Log::silent());
  ASSERT_EQ(reader.next(), 0);
  EXPECT_EQ(BatchView(layout, memory.data()).tables[1].key(1 * 50 + 3), int64_t{1} << 40);
}

TEST(RawSet, KeysFitFourBytesUnlessSlotSizesAreTooLarge) {
  const Folder folder;
  DataSection section = raw_section(true);
  put_bytes(folder / "all", raw_bytes(rows_of(section, 50), true));
  const auto key_bytes = [&](const std::vector<int64_t>& sizes) {
    section.slot_size_array = sizes;
    return open_raw_set(section, {(folder / "all").string(), 0}, KeyWidth::detect, Log::silent())->key_bytes();
  };
  EXPECT_EQ(key_bytes({}), 4);
  EXPECT_EQ(key_bytes({10, 0, (int64_t{1} << 31) - 10, 0, 1 << 30}), 4);
  EXPECT_EQ(key_bytes({10, 0, (int64_t{1} << 31) - 9, 0, 1 << 30}), 8);
}

TEST(RawSet, NoMoreThanNumSamplesAreRead) {
  const Folder folder;
  const DataSection section = raw_section(true);
  put_bytes(folder / "all", raw_bytes(rows_of(section, 50), true));
  const auto set = [&](int64_t samples) {
    return open_raw_set(section, {(folder / "all").string(), samples}, KeyWidth::detect, Log::silent());
  };
  EXPECT_EQ(set(0)->samples(), 50);
  EXPECT_EQ(set(30)->samples(), 30);
  EXPECT_SAYS(message_of([&] { set(51); }), "holds 50 records of 40 bytes, but the Data layer expects 51");
}

TEST(RawSet, ASizeThatIsNoMultipleOfTheRecordSaysTheNumbers) {
  const Folder folder;
  const DataSection section = raw_section(true);
  const auto bytes = raw_bytes(rows_of(section, 3), true);
  for (size_t keep = 1; keep < bytes.size(); ++keep) {
    if (keep % 40 == 0) continue;
    put_bytes(folder / "all", {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(keep)});
    EXPECT_SAYS(
        message_of([&] { open_raw_set(section, {(folder / "all").string(), 0}, KeyWidth::detect, Log::silent()); }),
        cat("' has ", keep, " bytes: ", keep / 40, " records of 40 bytes (2 label, 3 dense and 5 keys) and ", keep % 40,
            " more bytes"));
  }
  put_bytes(folder / "all", {});
  EXPECT_SAYS(
      message_of([&] { open_raw_set(section, {(folder / "all").string(), 0}, KeyWidth::detect, Log::silent()); }),
      "the data set is empty");
}

TEST(RawSet, IntegersReadAsFloatsAndFloatsReadAsIntegersAreNoticed) {
  const Folder folder;
  for (const bool floats : {true, false}) {
    const DataSection right = raw_section(floats), wrong = raw_section(!floats);
    put_bytes(folder / "all", raw_bytes(rows_of(right, 50), floats));
    open_raw_set(right, {(folder / "all").string(), 0}, KeyWidth::detect, Log::silent());
    EXPECT_SAYS(
        message_of([&] { open_raw_set(wrong, {(folder / "all").string(), 0}, KeyWidth::detect, Log::silent()); }),
        cat("is \"float_label_dense\": ", floats ? "false" : "true", " right?"));
  }
}

TEST(RawSet, BadRecordsAreErrorsOrLeftOut) {
  const Folder folder;
  for (const bool floats : {true, false}) {
    DataSection section = raw_section(floats);
    auto rows = rows_of(section, 20000);
    auto good = rows;
    good.erase(good.begin() + 15000);
    rows[15000].slots[3] = {-4};
    put_bytes(folder / "key", raw_bytes(rows, floats));
    EXPECT_SAYS(message_of([&] { expect_reads(section, folder / "key", rows); }),
                "key': record 15001 of 20000, at byte 600000: slot 3 has the key -4; expected a key of at least 0");
    rows = good;
    rows.insert(rows.begin() + 15000, good[0]);
    rows[15000].dense[1] = floats ? NAN : -1;
    put_bytes(folder / "dense", raw_bytes(rows, floats));
    EXPECT_SAYS(message_of([&] { expect_reads(section, folder / "dense", rows); }),
                cat("record 15001 of 20000, at byte 600000: dense value 1 is ",
                    floats ? "nan" : "-1, but ln(x + 1) is applied"));
    section.bad_records = BadRecordPolicy::skip;
    if (!floats) take_logarithms(good);
    for (const char* file : {"key", "dense"}) {
      const fs::path aside = folder / cat(file, ".bad");
      section.options.edit<BadRecordsSection>() = {aside.string()};
      expect_reads(section, folder / file, good);
      const std::string lines = read_text(aside, "");
      EXPECT_EQ(std::ranges::count(lines, '\n'), 1);
      EXPECT_NE(lines.find(R"("record":15001,"offset":600000,"cause":")"), std::string::npos) << lines;
      fs::remove(aside);
    }
  }
}

TEST(RawSet, RulesOfTheSection) {
  const auto errors = [](const std::string& more, const std::string& limits) {
    return message_of([&] {
      Problems problems;
      data_section_of(
          Json::parse(
              cat(R"({"layers": [{"type": "Data", "format": "Raw", "source": "a", "label": {"top": "l", "label_dim": 1},
                                     "dense": {"top": "d", "dense_dim": 0}, )",
                  more, R"("sparse": [{"top": "x", "slot_num": 3, )", limits, "}]}]}"),
              "x"),
          problems);
      problems.throw_if_any("x");
    });
  };
  EXPECT_EQ(errors("", R"("max_feature_num_per_sample": 3)"), "");
  EXPECT_SAYS(errors("", R"("max_feature_num_per_sample": 2)"),
              "/layers/0/sparse/0: Raw data has one key in each slot, 3 in total; the limits allow only 2");
  EXPECT_SAYS(errors(R"("slot_size_array": [1, 2], )", R"("max_feature_num_per_sample": 3)"),
              "/layers/0/slot_size_array: has 2 numbers for 3 slots");
}

}  // namespace
}  // namespace hctr::data_test
