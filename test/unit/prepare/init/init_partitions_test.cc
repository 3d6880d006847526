// --init for partitioned text files: partition values are columns, also in the files that --init writes.
#include <gtest/gtest.h>

#include <algorithm>

#include "config/json.h"
#include "core/base/expect.h"
#include "core/base/files.h"
#include "prepare/init/init.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

class InitPartitions : public testing::Test {
 protected:
  /// Writes rows to the partitions shop=0 to shop=2 of the town "a, b".
  void write_rows(const std::string& header) {
    for (int shop = 0; shop < 3; ++shop) {
      const fs::path path = folder_ / "rows" / "town=a%2C b" / cat("shop=", shop);
      fs::create_directories(path);
      std::string text = header;
      for (int r = 0; r < 200; ++r) text += cat((r + shop) % 2, ",k", r * 7 % 13, "\n");
      write_text(path / "part.csv", text);
    }
  }
  InitResult run(const std::string& label, const std::string& eval = "") {
    InitOptions options;
    options.data = (folder_ / "rows").string();
    options.label = label;
    options.eval = eval;
    options.out = (folder_ / "c.json").string();
    return init(options);
  }
  static bool says(const InitResult& result, const std::string& part) {
    return std::any_of(result.report.begin(), result.report.end(),
                       [&](const std::string& line) { return line.find(part) != line.npos; });
  }
  TemporaryFolder folder_;
};

TEST_F(InitPartitions, AreColumnsOfTheRowsThatAreSplit) {
  write_rows("y,c\n");
  const InitResult result = run("y");
  EXPECT_TRUE(says(result, "partitions: town, shop are columns too"));
  EXPECT_TRUE(says(result, "  shop: number and category: 3 different values"));
  EXPECT_TRUE(says(result, "  town: omitted: all rows have the same value"));
  const std::string written = read_text(folder_ / "c.train.csv", "rows");
  EXPECT_TRUE(written.starts_with("y,c,town,shop\n")) << written.substr(0, 80);
  EXPECT_NE(written.find(",\"a, b\",2\n"), written.npos) << written.substr(0, 200);
}

TEST_F(InitPartitions, GoByNumbersWhereThereIsNoHeader) {
  write_rows("");
  const InitResult result = run("1");
  EXPECT_TRUE(says(result, "  4: number and category: 3 different values"));
}

TEST_F(InitPartitions, OfRowsToEvaluateOnAreReadToo) {
  write_rows("y,c\n");
  const InitResult result = run("y", (folder_ / "rows").string());
  EXPECT_NE(result.config.find("\"shop\""), std::string::npos);
  write_text(folder_ / "plain.csv", "y,c\n1,k1\n0,k2\n");
  fs::remove(folder_ / "c.json");
  EXPECT_NE(message_of(Kind::data, [&] { run("y", (folder_ / "plain.csv").string()); }).find("lacks the column 'shop'"),
            std::string::npos);
}

TEST_F(InitPartitions, AFileThatLacksOneIsRefused) {
  write_rows("y,c\n");
  fs::create_directories(folder_ / "rows" / "town=z");
  write_text(folder_ / "rows" / "town=z" / "part.csv", "y,c\n1,k1\n");
  EXPECT_NE(message_of(Kind::data, [&] { run("y"); }).find("lacks the partition 'shop' that other files have"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
