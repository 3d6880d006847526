// Decimals, dates and times in Parquet: as dense values, labels, keys, and columns copied to the output.
#include <limits>

#include "formats/data/column_rules.h"
#include "support/paths.h"
#include "unit/formats/data/hashed_key.h"
#include "unit/formats/data/parquet_rig.h"

namespace hctr::data_test {
namespace {

/// Reads a file that pyarrow has written, since the plug-in writes no such types. Its rows:
///   price  decimal(10, 2)    12.50             -0.05             null              17.00
///   id     decimal(38, 0)    17                2^53 + 1          -3                -2^63
///   big    decimal(50, 4)    12345678901234567890123456789012345678901234.5678  0.0001  -1.1000  1.0000
///   label  decimal(3, 1)     1.0               0.0               1.0               0.0
///   day    date32            1970-01-01        2024-02-29        1969-12-31        null
///   s      timestamp[ms]     0                 -1                1709190000        null
///   us     timestamp[us]     250000            -1                1709190000123456  null
///   ns     timestamp[ns], with the zone UTC, of the same times, to the nanosecond
///   clock  time32[ms]        0                 1                 86399999          null
///   list   list of decimal   [1.50, 2.00]      []                [null, 3.00]      [1.50]
struct ParquetWarehouse : ParquetRig {
  DataSection with(const std::string& slot, std::optional<KeyRule> keys = {}) {
    DataSection section = one_slot();
    parquet_of(section).dense[0].columns = {"price"};
    parquet_of(section).default_dense = 0;
    parquet_of(section).slots[0].columns = {slot};
    parquet_of(section).slots[0].keys = keys;
    parquet_of(section).slots[0].fallback = "";
    return section;
  }
  ReadBatch rows_of(const DataSection& section) {
    Rig rig(section, stored, {.batch = 4, .repeat = false});
    return *rig.next();
  }
  std::vector<float> dense(const std::string& column) {
    DataSection section = with("id");
    parquet_of(section).dense[0].columns = {column};
    return rows_of(section).dense;
  }
  std::vector<int64_t> hashes(const std::vector<std::string>& texts) {
    std::vector<int64_t> keys;
    for (const std::string& text : texts) keys.push_back(csv_hashed_key(text, 0, 0, kAllKeys));
    return keys;
  }
  std::string error_of(const DataSection& section) {
    return message_of([&] { rows_of(section); });
  }

  const fs::path stored = test::source_dir() / "test/unit/formats/parquet/warehouse.parquet";
};

TEST_F(ParquetWarehouse, DenseValuesOfDecimalsAreTheNearestAndOfTimesSeconds) {
  EXPECT_EQ(dense("price"), (std::vector<float>{12.5f, -0.05f, 0, 17}));
  EXPECT_EQ(dense("id"), (std::vector<float>{17, 9007199254740993.0f, -3, -9223372036854775808.0f}));
  EXPECT_EQ(dense("day"), (std::vector<float>{0, 1709164800.0f, -86400, 0}));
  EXPECT_EQ(dense("s"), (std::vector<float>{0, -0.001f, 1709190.0f, 0}));
  EXPECT_EQ(dense("us"), (std::vector<float>{0.25f, -0.000001f, 1709190000.123456f, 0}));
  EXPECT_EQ(dense("ns"), (std::vector<float>{0.25f, -0.000000001f, 1709190000.123456f, 0}));
  EXPECT_EQ(dense("clock"), (std::vector<float>{0, 0.001f, 86399.999f, 0}));
  EXPECT_SAYS(message_of([&] { dense("big"); }), "the value 1.23457e+43 is not a finite float");
}

TEST_F(ParquetWarehouse, ALearnedMeanIsOfTheDoubles) {
  DataSection section = with("id");
  parquet_of(section).dense[0].columns = {"ns"};
  parquet_of(section).dense[0].transform = DenseTransform::standardise;
  section.statistics = {{.column = "ns", .log = false, .mean = 1709190000, .std = 1}};
  EXPECT_NEAR(rows_of(section).dense[2], 0.123456789f, 1e-6f);
}

TEST_F(ParquetWarehouse, ADecimalMayBeALabel) {
  DataSection section = with("id");
  parquet_of(section).labels = {"label"};
  EXPECT_EQ(rows_of(section).label, (std::vector<float>{1, 0, 1, 0}));
  parquet_of(section).labels[0].positive.texts = {"0"};
  EXPECT_EQ(rows_of(section).label, (std::vector<float>{0, 1, 0, 1}));
}

TEST_F(ParquetWarehouse, WholeDecimalsAreTheIntegersOfAnyOtherType) {
  EXPECT_EQ(rows_of(with("id")).keys[0],
            (std::vector<int64_t>{17, 9007199254740993, -3, std::numeric_limits<int64_t>::min()}));
  EXPECT_EQ(rows_of(with("id", KeyRule::hash)).keys[0],
            hashes({"17", "9007199254740993", "-3", "-9223372036854775808"}));
  EXPECT_SAYS(error_of(with("price")),
              "column 'price' (decimal128(10, 2)): expected an integer from -2^63 to 2^64 - 1, found '12.5'; "
              "\"keys\": \"hash\" accepts any decimal");
  EXPECT_EQ(rows_of(with("price", KeyRule::hash)).keys[0], hashes({"12.5", "-0.05", "17"}));
  EXPECT_EQ(rows_of(with("list", KeyRule::hash)).keys[0], hashes({"1.5", "2", "3", "1.5"}));
  EXPECT_EQ(rows_of(with("big", KeyRule::hash)).keys[0],
            hashes({"12345678901234567890123456789012345678901234.5678", "0.0001", "-1.1", "1"}));
}

TEST_F(ParquetWarehouse, DatesAndTimesAreTextsAsKeys) {
  EXPECT_EQ(rows_of(with("day")).keys[0], hashes({"1970-01-01", "2024-02-29", "1969-12-31"}));
  EXPECT_EQ(rows_of(with("ns")).keys[0],
            hashes({"1970-01-01 00:00:00.25", "1969-12-31 23:59:59.999999999", "2024-02-29 07:00:00.123456789"}));
  EXPECT_EQ(rows_of(with("clock")).keys[0], hashes({"00:00:00", "00:00:00.001", "23:59:59.999"}));
  EXPECT_SAYS(error_of(with("day", KeyRule::number)), "found '1970-01-01'; \"keys\": \"hash\" accepts any");
}

TEST_F(ParquetWarehouse, WordsOfMissingAreTextsAlone) {
  DataSection section = with("id");
  parquet_of(section).missing = {"17", "-3"};
  EXPECT_EQ(rows_of(section).keys[0].size(), 4u);
}

TEST_F(ParquetWarehouse, FilesWithOtherTypesGoTogetherWhereKeysAreEqual) {
  const auto both = [&](const Column& other, const std::string& slot, std::optional<KeyRule> keys) {
    const auto rows = static_cast<size_t>(other.rows());
    write_parquet(file, {numbers("y", ParquetType::f32, std::vector<float>(rows, 1)),
                         numbers("price", ParquetType::f64, std::vector<double>(rows, 12.5)), other});
    write_text(folder / "list", cat(stored.string(), "\n", file.string(), "\n"));
    Rig rig(with(slot, keys), folder / "list", {.batch = 8, .repeat = false});
    return rig.next()->keys[0];
  };
  EXPECT_EQ(both(numbers<int64_t>("id", ParquetType::i64, {17, -3}), "id", {}).at(4), 17);
  EXPECT_EQ(both(numbers<double>("id", ParquetType::f64, {17, -3}), "id", {}).at(5), -3);
  EXPECT_SAYS(message_of([&] { both(texts("id", {"17"}), "id", {}); }), "has the type string in '");
  EXPECT_EQ(both(texts("id", {"17"}), "id", KeyRule::number).at(4), 17);
  EXPECT_EQ(both(texts("day", {"2024-02-29"}), "day", KeyRule::hash).at(3), hashes({"2024-02-29"})[0]);
  EXPECT_SAYS(message_of([&] { both(numbers<int64_t>("day", ParquetType::i64, {17}), "day", {}); }),
              "but another type in '" + stored.string() + "' (date32[day])");
  EXPECT_SAYS(message_of([&] { both(texts("ns", {"2024-02-29 07:00:00"}), "ns", KeyRule::hash); }),
              "store 'ns' with one type");
}

TEST_F(ParquetWarehouse, KeptColumnsAreAsTheyStand) {
  Source source{stored.string()};
  source.keep = {"price", "id", "day", "us", "ns", "clock", "list"};
  Rig rig(with("id"), source, {.batch = 4, .repeat = false});
  ASSERT_TRUE(rig.next());
  const KeptCells kept = rig.reader->take_passed_on().kept;
  std::string all;
  for (size_t i = 0; i < 7 * 3; ++i) all += cat(kept.cell(i), i % 7 == 6 ? "\n" : ",");
  EXPECT_EQ(all,
            "12.50,17,1970-01-01,1970-01-01 00:00:00.25,1970-01-01 00:00:00.25Z,00:00:00,1.50|2.00\n"
            "-0.05,9007199254740993,2024-02-29,1969-12-31 23:59:59.999999,1969-12-31 23:59:59.999999999Z,"
            "00:00:00.001,\n"
            ",-3,1969-12-31,2024-02-29 07:00:00.123456,2024-02-29 07:00:00.123456789Z,23:59:59.999,|3.00\n");
}

}  // namespace
}  // namespace hctr::data_test
