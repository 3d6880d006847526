// The file with bad records: one line for each record, written once, up to a limit.
#include "formats/catalog/bad_records_file.h"

#include <gtest/gtest.h>
#include <sys/file.h>

#include <chrono>
#include <future>
#include <set>
#include <sstream>

#include "core/base/expect.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

class SetAside : public testing::Test {
 protected:
  std::string text() const { return read_text(folder_ / "bad/b.jsonl", ""); }
  BadRecordsSection section(int64_t most = 100) const { return {(folder_ / "bad/b.jsonl").string(), most}; }
  std::vector<std::string> warnings_;
  const Log log_ = Log([this](Level level, std::string_view line) {
    if (level == Level::warning) warnings_.emplace_back(line);
  });
  TemporaryFolder folder_;
};

TEST_F(SetAside, ARecordIsAJsonLine) {
  BadRecordsFile file(section());
  EXPECT_EQ(text(), "");
  file.add({{"a.data", 3, 64, "label 0 is nan"}, {.file = "b.parquet", .record = 1, .cause = "\"quoted\"\n"}}, log_);
  EXPECT_EQ(text(), R"({"file":"a.data","record":3,"offset":64,"cause":"label 0 is nan"})"
                    "\n"
                    R"({"file":"b.parquet","record":1,"cause":"\"quoted\"\n"})"
                    "\n");
}

TEST_F(SetAside, ARecordOfATextHasItsLine) {
  write_text(folder_ / "t.csv", "x,y\n1,2\nbad\n3,4\nworse\n");
  const std::string path = (folder_ / "t.csv").string();
  BadRecordsFile file(section());
  file.add({{.file = path, .offset = 16, .cause = "c"}, {.file = path, .offset = 8, .cause = "b"}}, log_);
  EXPECT_NE(text().find(R"("record":5,"offset":16)"), std::string::npos) << text();
  EXPECT_NE(text().find(R"("record":3,"offset":8)"), std::string::npos) << text();
}

TEST_F(SetAside, NoLineIsThereTwice) {
  for (int run = 0; run < 2; ++run) {
    BadRecordsFile file(section());
    for (int pass = 0; pass < 2; ++pass) file.add({{"a", 1, 0, "x"}, {"a", 2, 9, "x"}}, log_);
  }
  EXPECT_EQ(std::ranges::count(text(), '\n'), 2);
}

TEST_F(SetAside, TwoReadersOfOneFileWriteEachLineOnceAndShareItsLimit) {
  BadRecordsFile training(section(30)), evaluation(section(30));
  for (int64_t i = 1; i <= 20; ++i)
    for (BadRecordsFile* const reader : {&training, &evaluation})
      reader->add({{"a", i, 0, "x"}, {"b", i, 0, "y"}}, log_);
  std::set<std::string> lines;
  std::istringstream written(text());
  for (std::string line; std::getline(written, line);) EXPECT_TRUE(lines.insert(line).second) << line;
  EXPECT_EQ(lines.size(), 30u);
}

TEST_F(SetAside, ALineThatAnotherProcessIsWritingIsNotRepeated) {
  BadRecordsFile file(section());
  File other(std::fopen(section().path.c_str(), "ab"));
  ASSERT_EQ(::flock(::fileno(other.get()), LOCK_EX), 0);
  const std::future<void> added = std::async(std::launch::async, [&] { file.add({{"a", 1, 0, "x"}}, log_); });
  EXPECT_EQ(added.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  std::fputs("{\"file\":\"a\",\"record\":1,\"offset\":0,\"cause\":\"x\"}\n", other.get());
  other.reset();  // closes the file, which ends its lock
  added.wait();
  EXPECT_EQ(std::ranges::count(text(), '\n'), 1);
}

TEST_F(SetAside, ALimitIsSaidOnce) {
  BadRecordsFile file(section(2));
  for (int64_t i = 1; i < 5; ++i) file.add({{"a", i, 0, "x"}}, log_);
  EXPECT_EQ(std::ranges::count(text(), '\n'), 2);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("has 2 lines, the limit"), std::string::npos) << warnings_[0];
}

}  // namespace
}  // namespace hctr::test
