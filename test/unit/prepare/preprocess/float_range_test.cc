// In preprocess, numbers beyond the range of float or int32 make a row invalid. They never become infinite or other
// values in records.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/expect.h"
#include "formats/raw/raw_set.h"
#include "prepare/preprocess/dense_statistics.h"
#include "prepare/preprocess/preprocess.h"
#include "prepare/preprocess/table_parser.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

struct FloatRange : ::testing::Test {
  FloatRange() {
    options.table = named_table("label,d,c", ',', {.labels = {"label"}, .numbers = {"d"}, .categories = {"c"}});
    options.table.header = "label,d,c";
    options.folder = folder / "out";
    options.force = true;
    options.inputs = {(folder / "train.csv").string()};
  }
  PreprocessSummary run(const std::string& rows, const std::string& eval_rows = "") {
    write_text(folder / "train.csv", "label,d,c\n" + rows);
    if (!eval_rows.empty()) {
      write_text(folder / "eval.csv", "label,d,c\n" + eval_rows);
      options.eval_inputs = {(folder / "eval.csv").string()};
    }
    return preprocess(options, Log::silent());
  }
  std::string bad_row(const std::string& rows) {
    return message_of([&] { run(rows); });
  }

  Folder folder;
  PreprocessOptions options;
};

TEST_F(FloatRange, ACellBeyondFloatsIsABadRow) {
  EXPECT_SAYS(bad_row("1,2,x\n1,1e39,x\n"), "line 3, at byte 16: column d: expected a number or nothing, found '1e39'");
  EXPECT_SAYS(bad_row("1e39,2,x\n"), "line 2, at byte 10: column label: expected a number, found '1e39'");
  options.bad_rows.skip = true;
  EXPECT_EQ(run("1,2,x\n1,-1e39,x\n1," + std::string(40, '9') + ",x\n1,3.4e38,y\n").train.rows, 2);
}

TEST_F(FloatRange, AValueThatScalingMakesInfiniteIsABadRow) {
  for (const DataFormat format : {kNormFormat, kRawFormat})
    for (const Normalize normalize : {Normalize::minmax, Normalize::standard}) {
      options.format = format;
      options.dense.normalize = normalize;
      options.bad_rows.skip = false;
      const std::string rows = "0,1,x\n1,1.0001,y\n", eval = "0,1,x\n\n1,1e38,y\n0,1,z\n";
      EXPECT_SAYS(
          message_of([&] { run(rows, eval); }),
          "eval.csv' line 4, at byte 17: column d: 1e+38 is not a finite float after scaling by the statistics");
      options.bad_rows.skip = true;
      const PreprocessSummary summary = run(rows, eval);
      EXPECT_EQ(summary.eval.rows, 2);
      EXPECT_EQ(summary.eval.bad_rows, 1);
    }
}

TEST_F(FloatRange, AColumnWithoutWidthAmongFloatsBecomesZero) {
  DenseColumn column;
  column.add(std::vector<double>{1e-310, 3e-310}, false);
  for (const Normalize normalize : {Normalize::minmax, Normalize::standard})
    EXPECT_EQ(DenseScaling({.normalize = normalize}, column)(3e-310), 0);
}

TEST_F(FloatRange, IntegersOfRawAreWhatInt32Holds) {
  options.format = kRawFormat;
  options.float_label_dense = false;
  EXPECT_SAYS(bad_row("1,2,x\n1,2147483648,x\n"),
              "line 3, at byte 16: column d: --integers writes numbers below 2^31, found '2147483648'");
  EXPECT_SAYS(bad_row("2147483647,2,x\n"), "column label: --integers writes integer labels below 2^31");
  EXPECT_SAYS(bad_row("0.5,2,x\n"), "column label: --integers writes integer labels below 2^31, found '0.5'");
  EXPECT_EQ(run("1,2147483647,x\n0,,y\n-1,-5,y\n").train.rows, 3);
  options.dense.fill = 3e9;
  EXPECT_SAYS(bad_row("1,2,x\n"), "--fill 3e+09: --integers needs a number below 2^31");
}

}  // namespace
}  // namespace hctr::data_test
