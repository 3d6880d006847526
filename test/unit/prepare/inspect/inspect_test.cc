#include "prepare/inspect/inspect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "formats/raw/raw_set.h"
#include "formats/text/csv_set.h"
#include "prepare/inspect/inspect_judge.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

CsvOptions& csv_of(DataSection& section) { return section.options.edit<CsvOptions>(); }

TEST(DistinctCount, IsExactForFewAndWithinThreePercentForMany) {
  for (const int64_t different : {int64_t{0}, int64_t{5}, int64_t{1000}, int64_t{40000}, int64_t{300000}}) {
    DistinctCount one(1000), parts[2] = {DistinctCount(1000), DistinctCount(1000)};
    for (int64_t i = 0; i < different; ++i)
      for (int64_t times = 0; times < 2; ++times) {
        one.add(i * 12345678901);
        parts[(i + times) % 2].add(i * 12345678901);
      }
    parts[0].merge(parts[1]);
    EXPECT_EQ(one.exact(), different <= 1000);
    EXPECT_EQ(parts[0].exact(), one.exact());
    EXPECT_EQ(parts[0].value(), one.value()) << "shared out or not";
    EXPECT_NEAR(static_cast<double>(one.value()), static_cast<double>(different),
                one.exact() ? 0 : 0.03 * static_cast<double>(different));
  }
}

struct Inspect : ::testing::Test {
  void SetUp() override {
    section = section_of(1, 2, {input_of("a", 2, 3, 4), input_of("b", 1, 1, 1)});
    for (Row& row : rows) row.label[0] = static_cast<float>(static_cast<int>(row.label[0]) % 2);
  }
  Inspection look(Check check, int key_bytes) {
    write_rows(folder / "a.data", style_of(section, check, key_bytes), rows);
    options.section = section;
    return inspect({folder / "a.data"}, options);
  }
  Folder folder;
  DataSection section;
  std::vector<Row> rows =
      random_rows(section_of(1, 2, {input_of("a", 2, 3, 4), input_of("b", 1, 1, 1)}), 5000, 3, 50, true);
  InspectOptions options;
};

TEST_F(Inspect, FiguresAreThoseOfThePlainRows) {
  for (const int threads : {1, 3}) {
    options.threads = threads;
    options.head = 2;
    const Inspection found = look(Check::sum, 8);
    EXPECT_EQ(found.problem_count, 0) << found.problems[0];
    EXPECT_EQ(found.samples, 5000);
    EXPECT_EQ(found.head.size(), 2u);
    EXPECT_EQ(found.labels[0].zeros_and_ones, 5000);
    for (size_t s = 0; s < 3; ++s) {
      std::set<int64_t> keys;
      int64_t count = 0, most = 0;
      for (const Row& row : rows) {
        keys.insert(row.slots[s].begin(), row.slots[s].end());
        count += static_cast<int64_t>(row.slots[s].size());
        most = std::max(most, static_cast<int64_t>(row.slots[s].size()));
      }
      EXPECT_EQ(found.slots[s].keys, count);
      EXPECT_EQ(found.slots[s].most_nnz, most);
      EXPECT_EQ(found.slots[s].least_nnz, 0);
      EXPECT_EQ(found.slots[s].distinct.value(), static_cast<int64_t>(keys.size()));
      EXPECT_EQ(found.slots[s].most_key, *keys.rbegin());
    }
    double sum = 0;
    for (const Row& row : rows) sum += static_cast<double>(row.dense[1]);
    EXPECT_NEAR(found.dense[1].finite.moments.mean(), sum / static_cast<double>(rows.size()), 1e-9);
  }
}

TEST_F(Inspect, WithoutASectionTheHeaderTells) {
  write_rows(folder / "a.data", style_of(section, Check::none, 4), rows);
  const Inspection found = inspect({folder / "a.data"}, options);
  EXPECT_EQ(found.samples, 5000);
  EXPECT_EQ(found.slots.size(), 3u);
  EXPECT_SAYS(found.files[0].facts, "Norm, no check sums, label_dim 1, dense_dim 2, slot_num 3, keys of 32 bits");
}

TEST_F(Inspect, EveryRecordThatBreaksARuleIsNamed) {
  rows[7].slots[0] = {1, 2, 3, 4};
  rows[9].slots = {{1, 2, 3}, {1, 2}, {1}};
  rows[11].label[0] = 0.5f;
  rows[13].dense[1] = std::nanf("");
  rows[15].slots[2] = {260};
  section.slot_size_array = {50, 60, 90};
  options.binary_labels = true;
  for (const Check check : {Check::sum, Check::none}) {
    const Inspection found = look(check, 8);
    ASSERT_EQ(found.problem_count, 5) << found.problems[0];
    EXPECT_SAYS(found.problems[0], "a.data': record 8 of 5000, at byte ");
    EXPECT_SAYS(found.problems[0], "slot 0 (of sparse input \"a\") has 4 keys, more than its max_nnz of 3");
    EXPECT_SAYS(
        found.problems[1],
        "sparse input \"a\" has 5 keys in this sample up to slot 1, more than its max_feature_num_per_sample of 4");
    EXPECT_SAYS(found.problems[2], "record 12 of 5000");
    EXPECT_SAYS(found.problems[2], "label 0 is 0.5; BinaryCrossEntropyLoss expects 0 or 1");
    EXPECT_SAYS(found.problems[3], "dense value 1 is nan");
    EXPECT_SAYS(
        found.problems[4],
        "slot 2 (of sparse input \"b\") has the key 260; slot_size_array allows keys from 110 to 199, or below 90");
  }
}

TEST_F(Inspect, DamageIsNamedAndReadingGoesOn) {
  look(Check::sum, 8);
  auto bytes = bytes_of(folder / "a.data");
  bytes[69 + 6] ^= std::byte{1};  // a byte in the label of the first record
  put_bytes(folder / "a.data", bytes);
  cut_bytes(folder / "a.data", 3);
  write_rows(folder / "b.data", style_of(section, Check::sum, 8), rows);
  put_bytes(folder / "c.data", std::vector<std::byte>(10));
  options.section = section;
  const Inspection found = inspect({folder / "a.data", folder / "c.data", folder / "b.data"}, options);
  ASSERT_EQ(found.problem_count, 3) << found.problems[0];
  EXPECT_SAYS(found.problems[0], "record 1 of 5000, at byte 69: fails its check sum");
  EXPECT_SAYS(found.problems[1], "record 5000 of 5000");
  EXPECT_SAYS(found.problems[2], "c.data'");
  EXPECT_EQ(found.samples, 4998 + 5000);
  EXPECT_EQ(found.files[0].bad_records, 1);
}

TEST_F(Inspect, EveryRecordOfTextThatIsWrongIsNamed) {
  DataSection csv = section_of(1, 1, {input_of("s", 1, 2, 2)});
  csv.format = kCsvFormat;
  csv_of(csv).labels = {"y"};
  csv_of(csv).dense.resize(1);
  csv_of(csv).dense[0].columns = {"x"};
  csv_of(csv).slots.resize(1);
  csv_of(csv).slots[0].columns = {"s"};
  csv_of(csv).slots[0].keys = KeyRule::number;
  csv_of(csv).slots[0].separator = "|";
  const std::string good = "1,0.5,\"1|2\"\n",
                    text = "y,x,s\n" + good + "\n0,much,3\n" + good + "0,0.5\n1,1,\"1|\n2\"\n0,0.5,1|2|3\n" + good;
  for (const std::string quote : {"\"", ""}) {
    csv_of(csv).quote = quote;
    std::string now = text;
    if (quote.empty()) now.erase(std::remove(now.begin(), now.end(), '"'), now.end());
    write_text(folder / "a.csv", now);
    options.section = csv;
    const Inspection found = inspect({folder / "a.csv"}, options);
    const auto at = [&](const char* record) { return cat("a.csv': the record at byte ", now.find(record), ": "); };
    ASSERT_EQ(found.problem_count, 4) << found.problems[0];
    EXPECT_SAYS(found.problems[0], at("0,much") + "column 'x': expected a number or nothing, found 'much'");
    EXPECT_SAYS(found.problems[1], at("0,0.5\n") + "expected 3 values, found 2");
    EXPECT_SAYS(found.problems[3], at("0,0.5,1|2|3") + "slot 0 (of sparse input \"s\") has 3 keys");
    EXPECT_SAYS(found.problems[2], quote.empty() ? at("2\n0,0.5,1|2|3") + "expected 3 values, found 1" : at("1,1,"));
    EXPECT_EQ(found.samples, quote.empty() ? 5 : 4);
    EXPECT_EQ(found.files[0].records, found.samples + found.files[0].bad_records) << "counted, no estimate";
  }
}

TEST_F(Inspect, RawRecordsAreReadWithASection) {
  DataSection raw = section_of(1, 1, {input_of("s", 2, 1, 2)});
  raw.format = kRawFormat;
  raw.float_label_dense = true;
  raw.slot_size_array = {10, 20};
  std::vector<std::byte> bytes;
  const auto put = [&](auto value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + 4);
  };
  for (int i = 0; i < 100; ++i) {
    put(static_cast<float>(i % 2));
    put(i == 40 ? std::nanf("") : 0.5f);
    put(i % 10);
    put(i == 60 ? -1 : i == 70 ? 33 : i % 20);
  }
  put_bytes(folder / "a.bin", bytes);
  options.section = raw;
  const Inspection found = inspect({folder / "a.bin"}, options);
  EXPECT_EQ(found.samples, 98);
  ASSERT_EQ(found.problem_count, 3);
  EXPECT_SAYS(found.problems[0], "record 41 of 100, at byte 640: dense value 0 is nan");
  EXPECT_SAYS(found.problems[1], "record 61 of 100, at byte 960: slot 1 has the key -1");
  EXPECT_SAYS(found.problems[2], "record 71 of 100, at byte 1120: slot 1 (of sparse input \"s\") has the key 43");
}

}  // namespace
}  // namespace hctr::data_test
