// A folder or prefix has one owner process at a time.
#include "core/base/file_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "core/base/expect.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

TEST(FileLock, IsHeldOnceAndLeavesNothing) {
  const TemporaryFolder folder;
  const fs::path prefix = folder / "new/folder/m";
  {
    const FileLock mine(prefix, "the place"), neighbour(folder / "new/folder/n", "the place"),
        whole(folder / "new/folder/", "the place");
    const std::string said = message_of(Kind::io, [&] { const FileLock other(prefix, "the place"); });
    EXPECT_EQ(said.find(cat("another process is writing to the place '", prefix.string(), "' now (process ", ::getpid(),
                            " on ")),
              0u)
        << said;
    EXPECT_TRUE(fs::exists(folder / "new/folder/.m.lock"));
    EXPECT_TRUE(fs::exists(folder / "new/folder/.lock"));
  }
  EXPECT_FALSE(fs::exists(folder / "new")) << "the folders that it made hold nothing";
  const FileLock after(prefix, "the place");
}

TEST(FileLock, EndsWithAProcessThatIsKilled) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FileLock lock(folder / "m", "the place");
    (void)!::write(ready[1], "x", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_NE(message_of(Kind::io, [&] { const FileLock lock(folder / "m", "the place"); })
                .find(cat("(process ", child, " on ")),
            std::string::npos);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(folder / ".m.lock"));
  const FileLock lock(folder / "m", "the place");
}

TEST(FileLock, DoesNotMatterWhereNothingCanBeWritten) { const FileLock lock("/proc/nowhere/m", "the place"); }

}  // namespace
}  // namespace hctr::test
