// The progress line of the programs.
#include "program/progress_line_view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/progress.h"

namespace hctr::test {
namespace {

TEST(ProgressLine, PrintsALastLineWithoutATerminal) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress(show_progress_line, "reading", "rows", 2000);
    progress.update(1000);
    progress.update(2000);
    progress.finish();
    progress.finish();
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("reading: 2.00 k rows in "), 0u) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
}

}  // namespace
}  // namespace hctr::test
