// Texts from pipes are read to the end, unless a stop signal arrives.
#include "core/base/passed_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "core/base/expect.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

TEST(PassedText, IsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::atomic<int> stop = 0;
  ASSERT_EQ(::write(ends[1], "first ", 6), 6);
  ASSERT_EQ(::write(ends[1], "second", 6), 6);
  ::close(ends[1]);
  EXPECT_EQ(read_text_until(cat("/dev/fd/", ends[0]), "config", &stop), "first second");
  ::close(ends[0]);
  const TemporaryFolder folder;
  write_text(folder / "file", "text");
  EXPECT_EQ(read_text_until(folder / "file", "config", &stop), "text");
  EXPECT_EQ(read_text_until(folder / "file", "config", nullptr), "text");
}

TEST(PassedText, IsLeftOnceAStopIsRequested) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "half", 4), 4);  // the write end stays open
  const std::atomic<int> stop = SIGTERM;
  EXPECT_NE(message_of(Kind::interrupted, [&] { read_text_until(cat("/dev/fd/", ends[0]), "config", &stop); })
                .find("stopped while config '/dev/fd/"),
            std::string::npos);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace hctr::test
