#include "core/base/progress.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/expect.h"

namespace hctr::test {
namespace {

TEST(Progress, ReadableTime) {
  EXPECT_EQ(readable_time(0), "0.00 s");
  EXPECT_EQ(readable_time(0.416), "0.42 s");
  EXPECT_EQ(readable_time(9.99), "9.99 s");
  EXPECT_EQ(readable_time(9.999), "10 s");
  EXPECT_EQ(readable_time(59.4), "59 s");
  EXPECT_EQ(readable_time(59.6), "1 min 00 s");
  EXPECT_EQ(readable_time(125), "2 min 05 s");
  EXPECT_EQ(readable_time(3599.7), "1 h 00 min");
  EXPECT_EQ(readable_time(3 * 3600 + 12 * 60 + 9), "3 h 12 min");
}

TEST(Progress, UnitPrefixes) {
  EXPECT_EQ(with_unit_prefix(0), "0");
  EXPECT_EQ(with_unit_prefix(0.5), "0.50");
  EXPECT_EQ(with_unit_prefix(950), "950");
  EXPECT_EQ(with_unit_prefix(999.6), "1.00 k");
  EXPECT_EQ(with_unit_prefix(12345), "12.3 k");
  EXPECT_EQ(with_unit_prefix(123456), "123 k");
  EXPECT_EQ(with_unit_prefix(999999), "1.00 M");
  EXPECT_EQ(with_unit_prefix(4.2e6), "4.20 M");
  EXPECT_EQ(with_unit_prefix(7e12), "7.00 T");
}

/// Records the calls.
class NotedProgress : public ProgressView {
 public:
  explicit NotedProgress(std::string& notes) : notes_(notes) {}
  ~NotedProgress() override { notes_ += " end"; }
  void update(int64_t done, std::string_view remark) override { notes_ += cat(" ", done, remark); }
  void finish() override { notes_ += " whole"; }
  void clear() override { notes_ += " clear"; }
  bool in_place() const override { return true; }

 private:
  std::string& notes_;
};

TEST(Progress, IsShownByWhoeverLooks) {
  std::string notes;
  {
    Progress progress(
        [&](const std::string& what, const std::string& unit, int64_t total) {
          notes = cat(what, " ", total, " ", unit);
          return std::make_unique<NotedProgress>(notes);
        },
        "reading", "rows", 2000);
    EXPECT_TRUE(progress.in_place());
    progress.update(1000);
    progress.clear();
    progress.update(2000, "!");
    progress.finish();
    progress.finish();
  }
  EXPECT_EQ(notes, "reading 2000 rows 1000 clear 2000! whole end");
}

TEST(Progress, IsNothingWhereNobodyLooks) {
  Progress progress({}, "reading", "rows", 2000);
  EXPECT_FALSE(progress.in_place());
  progress.update(1);
  progress.clear();
  progress.finish();
}

}  // namespace
}  // namespace hctr::test
