// Numbers in Parquet texts in other notations.
#include <gtest/gtest.h>

#include "formats/catalog/first_rows.h"
#include "unit/formats/data/parquet_rig.h"

namespace hctr::data_test {
namespace {

struct ParquetNotation : ParquetRig {
  const Column keys = numbers<int64_t>("s0", ParquetType::i64, {7, 8, 9});
};

TEST_F(ParquetNotation, TextsAreReadInTheNotationOfTheSectionOrOfTheirColumn) {
  DataSection section = one_slot();
  parquet_of(section).number_format = NumberFormat::points_comma;
  write(keys, texts("d0", {"1.234", "0,5", "(12)"}));
  EXPECT_EQ(read(section, 3).dense, (std::vector<float>{1234, 0.5, -12}));
  parquet_of(section).dense[0].number_format = NumberFormat::plain;
  write(keys, texts("d0", {"1.234", "0.5", "12"}));
  EXPECT_EQ(read(section, 3).dense, (std::vector<float>{1.234f, 0.5, 12}));
  parquet_of(section).dense[0].unit = "%";
  EXPECT_SAYS(error(section), "expected a number as 1234.5 with '%', found '1.234'");
  write(keys, texts("d0", {"12.5%", "-50 %", "100%"}));
  EXPECT_EQ(read(section, 3).dense, (std::vector<float>{0.125, -0.5, 1}));
}

TEST_F(ParquetNotation, LabelsAreReadInTheirNotation) {
  DataSection section = one_slot();
  parquet_of(section).labels[0].number_format = NumberFormat::comma;
  parquet_of(section).labels[0].positive.at_least = 4;
  write_parquet(file, {texts("y", {"3,5", "4,5", "4"}), numbers<float>("d0", ParquetType::f32, {1, 2, 3}), keys});
  EXPECT_EQ(read(section, 3).label, (std::vector<float>{0, 1, 1}));
}

TEST_F(ParquetNotation, NumbersAreWhatTheyAreAndHaveNoUnit) {
  DataSection section = one_slot();
  parquet_of(section).number_format = NumberFormat::points_comma;
  write(keys, numbers<double>("d0", ParquetType::f64, {1.234, 0.5, -12}));
  EXPECT_EQ(read(section, 3).dense, (std::vector<float>{1.234f, 0.5, -12}));
  parquet_of(section).dense[0].unit = "%";
  EXPECT_SAYS(error(section), "which has no unit, but \"unit\" is \"%\"");
}

TEST_F(ParquetNotation, StatisticsAreThoseOfTheNumbers) {
  DataSection section = one_slot();
  section.source = file.string();
  parquet_of(section).dense[0].transform = DenseTransform::standardise;
  parquet_of(section).dense[0].number_format = NumberFormat::commas_point;
  write(keys, texts("d0", {"1,000", "2,000", "3,000"}));
  section.statistics = learn_statistics(section, KeyWidth::detect, Log::silent());
  ASSERT_EQ(section.statistics.size(), 1u);
  EXPECT_EQ(section.statistics[0].mean, 2000);
}

}  // namespace
}  // namespace hctr::data_test
