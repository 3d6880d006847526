// Terminal output of the programs.
#include "program/terminal.h"

#include <gtest/gtest.h>

#include <string>

#include "core/base/expect.h"
#include "core/base/progress.h"
#include "program/process_end.h"
#include "program/program_surroundings.h"
#include "program/progress_line_view.h"

namespace hctr::test {
namespace {

using testing::internal::CaptureStderr, testing::internal::CaptureStdout;
using testing::internal::GetCapturedStderr, testing::internal::GetCapturedStdout;

const std::string kName = "x\x1b[31m\xc2\x9b\x7f";
const std::string kShown = "x\\x1b[31m\\x9b\\x7f";

TEST(Terminal, GetsNoControlCharacterByTheStandardOutput) {
  CaptureStdout();
  print(kName + "\n");
  print_formatted("%s: %d\t%s\n", kName.c_str(), 3, std::string(1000, 'y').c_str());
  print_json("{\"" + kName.substr(5) + "\": 1}\n");
  EXPECT_TRUE(flush_output());
  EXPECT_EQ(GetCapturedStdout(),
            cat(kShown, "\n", kShown, ": 3\t", std::string(1000, 'y'), "\n", "{\"m\\u009b\\u007f\": 1}\n"));
}

TEST(Terminal, GetsNoControlCharacterByTheErrorStream) {
  CaptureStderr();
  print_note(kName + "\n");
  log_to_stderr().warning(kName);
  print_error(Error(Kind::io, kName));
  Progress(show_progress_line, kName, kName, 0).finish();
  const std::string shown = GetCapturedStderr();
  EXPECT_TRUE(shown.starts_with(
      cat(kShown, "\nwarning: ", kShown, "\nerror (io): ", kShown, "\n", kShown, ": 0 ", kShown, " in ")))
      << shown;
  EXPECT_EQ(shown.find('\x1b'), shown.npos);
}

TEST(Terminal, GetsRowsOfDataAsTheyAreWhereItIsNone) {
  CaptureStdout();
  EXPECT_TRUE(print_rows(kName));
  EXPECT_EQ(GetCapturedStdout(), kName);
}

}  // namespace
}  // namespace hctr::test
