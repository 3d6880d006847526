// The run folder: whole lines or none, and one owner.
#include "train/run_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>

#include "base/files.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "support/test_log.h"

namespace hctr::test {
namespace {

/// Limits the size of files that this process writes. A write beyond it fails, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(uint64_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(RunFolder, ALineThatDoesNotFitIsLeftOutWholeAndTheNextOnesFollow) {
  const TemporaryFolder folder;
  TestLog log;
  log.expect("metrics.jsonl': File too large; training goes on without its lines");
  log.expect("can be written again; 2 lines are missing");
  RunFolder run(folder / "run", "c.json", {}, log.log());
  run.add_metrics(Json(Json::Object{{"line", 1}}));
  {
    const FileSizeLimit limit(16);
    run.add_metrics(Json(Json::Object{{"line", 2}}));
    run.add_metrics(Json(Json::Object{{"line", 3}}));
    EXPECT_EQ(read_text(folder / "run/metrics.jsonl", ""), "{\"line\":1}\n");
  }
  run.add_metrics(Json(Json::Object{{"line", 4}}));
  EXPECT_EQ(read_text(folder / "run/metrics.jsonl", ""), "{\"line\":1}\n{\"line\":4}\n");
}

TEST(RunFolder, IsLockedWhileItsRunLives) {
  const TemporaryFolder folder;
  TestLog log;
  {
    const RunFolder first(folder / "run", "c.json", {}, log.log());
    EXPECT_EQ(message_of(Kind::io, [&] { RunFolder(folder / "run", "c.json", {}, log.log()); }),
              "the run folder '" + (folder / "run").string() +
                  "' belongs to a run that has not ended: give another --run-dir");
  }
  const RunFolder second(folder / "run", "c.json", {}, log.log());
  EXPECT_TRUE(fs::exists(folder / "run.1")) << "the first run is moved away once it has ended";
}

}  // namespace
}  // namespace hctr::test
