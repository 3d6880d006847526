// Missing values in Parquet files: null, NaN, empty texts and columns without values are equivalent.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/catalog/first_rows.h"
#include "formats/data/text_values.h"
#include "unit/formats/data/parquet_rig.h"

namespace hctr::data_test {
namespace {

struct ParquetMissing : ParquetRig {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Column keys = numbers<int64_t>("s0", ParquetType::i64, {7, 8, 9});
  /// A column without values.
  static Column nothing(const std::string& name) {
    return numbers<uint8_t>(name, ParquetType::null, {0, 0, 0}, {0, 1, 2});
  }
  std::vector<std::string> kept(const DataSection& section, const std::string& column) {
    Rig rig(section, Source{.path = file.string(), .labels_optional = true, .keep = {column}},
            {.batch = 3, .repeat = false});
    rig.next();
    const KeptCells cells = rig.reader->take_passed_on().kept;
    std::vector<std::string> texts;
    for (size_t i = 0; i < cells.ends.size(); ++i) texts.emplace_back(cells.cell(i));
    return texts;
  }
};

TEST_F(ParquetMissing, NanInADenseColumnIsWhatANullIs) {
  const auto column = [&]<class T>(ParquetType type, T) { return numbers<T>("d0", type, {T(4), T(nan), T(6)}); };
  for (const Column& dense : {column(ParquetType::f64, double{}), column(ParquetType::f32, float{}),
                              numbers<Half>("d0", ParquetType::f16, {Half(4), Half(nan), Half(6)})}) {
    write(keys, dense);
    EXPECT_SAYS(error(one_slot()), "is NaN, which counts as missing; set \"default\" or \"default_dense\"");
    DataSection section = one_slot();
    parquet_of(section).default_dense = -3;
    EXPECT_EQ(read(section, 3).dense, (std::vector<float>{4, -3, 6}));
    parquet_of(section).dense[0].fallback = 11;
    EXPECT_EQ(read(section, 3).dense, (std::vector<float>{4, 11, 6}));
    EXPECT_EQ(kept(section, "d0"), (std::vector<std::string>{"4", "", "6"}));
  }
}

TEST_F(ParquetMissing, InfinityStaysABadRecordWhateverTheDefault) {
  const double infinity = std::numeric_limits<double>::infinity();
  write(keys, numbers<double>("d0", ParquetType::f64, {1, -infinity, 3}));
  DataSection section = one_slot();
  parquet_of(section).default_dense = 0;
  EXPECT_SAYS(error(section), "the value -inf is not a finite float");
}

TEST_F(ParquetMissing, NanDoesNotPoisonALearnedMean) {
  write(keys, numbers<double>("d0", ParquetType::f64, {10, std::nan(""), 30}));
  DataSection section = one_slot();
  section.source = file.string();
  parquet_of(section).dense[0].transform = DenseTransform::standardise;
  section.statistics = learn_statistics(section, KeyWidth::detect, Log::silent());
  ASSERT_EQ(section.statistics.size(), 1u);
  EXPECT_EQ(section.statistics[0].mean, 20);
  EXPECT_EQ(section.statistics[0].values, 2);
  EXPECT_EQ(read(section, 3).dense, (std::vector<float>{-1, 0, 1}));
}

TEST_F(ParquetMissing, ANanLabelIsNoneInPredictions) {
  write_parquet(file, {numbers<float>("y", ParquetType::f32, {1, nan, 0}),
                       numbers<float>("d0", ParquetType::f32, {1, 2, 3}), keys});
  EXPECT_SAYS(error(one_slot()), "column 'y' (float): is NaN");
  Rig rig(one_slot(), Source{.path = file.string(), .labels_optional = true}, {.batch = 3, .repeat = false});
  EXPECT_EQ(rig.next()->label, (std::vector<float>{1, kNoLabel, 0}));
}

TEST_F(ParquetMissing, AColumnOfTypeNullHasTheDefaultEverywhere) {
  DataSection section = one_slot();
  write(nothing("s0"), nothing("d0"));
  EXPECT_SAYS(error(section), "column 'd0' (null): is null");
  parquet_of(section).default_dense = 2;
  EXPECT_SAYS(error(section), "column 's0' (null): is null");
  parquet_of(section).slots[0].fallback = "17";
  EXPECT_EQ(read(section, 3).keys[0], (std::vector<int64_t>{17, 17, 17}));
  EXPECT_EQ(read(section, 3).dense, (std::vector<float>{2, 2, 2}));
  parquet_of(section).slots[0].fallback = "";
  EXPECT_EQ(read(section, 3).offsets[0], (std::vector<int32_t>{0, 0, 0, 0}));
  EXPECT_EQ(kept(section, "s0"), (std::vector<std::string>{"", "", ""}));
}

TEST_F(ParquetMissing, ItemsOfAListOfTypeNullHaveTheDefaultEach) {
  write(lists<uint8_t>("s0", ParquetType::null, {{}, {}, {}}));
  DataSection section = one_slot();
  EXPECT_EQ(read(section, 3).offsets[0], (std::vector<int32_t>{0, 0, 0, 0})) << "empty lists have no items";
  Column items = lists<uint8_t>("s0", ParquetType::null, {{}, {}, {}});
  items.items = {1, 0, 2};
  write(items);
  EXPECT_SAYS(error(section), "is null; set \"default\"");
  parquet_of(section).slots[0].fallback = "5";
  EXPECT_EQ(read(section, 3).offsets[0], (std::vector<int32_t>{0, 1, 1, 3}));
}

TEST_F(ParquetMissing, StatedTextsAndBlanksAreMissingInTextOfAnyRole) {
  DataSection section = one_slot();
  parquet_of(section).missing = {"?", "NA"};
  parquet_of(section).default_dense = 9;
  parquet_of(section).slots[0].keys = KeyRule::number;
  parquet_of(section).slots[0].fallback = "3";
  write(texts("s0", {"NA", "4", "?"}), texts("d0", {"?", "1.5", " NA "}));
  EXPECT_SAYS(error(section), "expected a number, found ' NA '");
  parquet_of(section).trim = true;
  EXPECT_EQ(read(section, 3).dense, (std::vector<float>{9, 1.5, 9}));
  EXPECT_EQ(read(section, 3).keys[0], (std::vector<int64_t>{3, 4, 3}));
  write(texts("s0", {" 6", "  ", "7\t"}));
  EXPECT_EQ(read(section, 3).keys[0], (std::vector<int64_t>{6, 3, 7}));
  parquet_of(section).slots[0].fallback.reset();
  EXPECT_SAYS(error(section), "is an empty text, or one of \"missing\"");
}

}  // namespace
}  // namespace hctr::data_test
