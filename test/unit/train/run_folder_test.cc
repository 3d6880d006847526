// The run folder contains only complete lines, and has one owner process.
#include "train/run_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdint>

#include "core/base/files.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "support/test_log.h"

namespace hctr::test {
namespace {

/// Limits the size of files that this process writes. Writes beyond the limit fail, as on a full disk.
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
  log.expect("metrics.jsonl': File too large; training continues without lines in this file");
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
                  "' is in use by a running job: name another "
                  "--run-dir");
  }
  const RunFolder second(folder / "run", "c.json", {}, log.log());
  EXPECT_TRUE(fs::exists(folder / "run.1")) << "the first run is moved away once it has ended";
}

/// Writes a run folder with run.json and a line of metrics. Returns the run id.
std::string write_run(const fs::path& folder, const Log& log, std::vector<int64_t> unasked = {}) {
  RunFolder run(folder, "c.json", {}, log);
  run.add_metrics(Json(Json::Object{{"kind", "start"}, {"run", run.run()}}));
  run.write_start({}, {}, Json(Json::Object{{"started", "now"}}));
  run.set_unasked_models(std::move(unasked));
  return run.run();
}

TEST(RunFolder, IsThatOfARunWhereItsOwnFilesSaySo) {
  const TemporaryFolder folder;
  TestLog log;
  const std::string run = write_run(folder / "run", log.log());
  EXPECT_TRUE(RunFolder::belongs_to(folder / "run", run));
  EXPECT_FALSE(RunFolder::belongs_to(folder / "run", "another"));
  EXPECT_FALSE(RunFolder::belongs_to(folder.path(), run));
  EXPECT_FALSE(RunFolder::belongs_to("", run));
  EXPECT_FALSE(RunFolder::belongs_to(folder / "run", ""));
  write_text(folder / "run/metrics.jsonl", "garbage");
  EXPECT_TRUE(RunFolder::belongs_to(folder / "run", run));
}

TEST(RunFolder, KeepsAMetricsFileThatIsNotOfTheRunThatGoesOn) {
  const TemporaryFolder folder;
  TestLog log;
  const std::string run = write_run(folder / "run", log.log());
  const std::string line = read_text(folder / "run/metrics.jsonl", "");
  const auto go_on = [&](int64_t bytes) {
    const RunFolder again = RunFolder::go_on(folder / "run", run, bytes, log.log());
    EXPECT_EQ(again.metrics_bytes(), fs::file_size(folder / "run/metrics.jsonl"));
  };
  go_on(static_cast<int64_t>(line.size()));
  EXPECT_EQ(read_text(folder / "run/metrics.jsonl", ""), line);
  log.expect("metrics.jsonl' is damaged or belongs to another run: the file was renamed to '");
  log.expect("lines of the run are missing");
  go_on(static_cast<int64_t>(line.size()) - 2);  // the offset is within a line, so the file must belong to another run
  EXPECT_EQ(read_text(folder / "run/metrics.jsonl.1", ""), line);
  EXPECT_EQ(read_text(folder / "run/metrics.jsonl", ""), "");
  write_text(folder / "run/metrics.jsonl", "garbage");
  go_on(3);
  EXPECT_EQ(read_text(folder / "run/metrics.jsonl.2", ""), "garbage");
  log.expect("run.json' is damaged or belongs to another run");
  write_text(folder / "run/run.json", "{");
  go_on(0);
  EXPECT_EQ(read_text(folder / "run/run.json.1", ""), "{");
}

TEST(RunFolder, RemembersModelsThatNobodyAskedFor) {
  const TemporaryFolder folder;
  TestLog log;
  const std::string run = write_run(folder / "run", log.log(), {20, 40});
  const int64_t bytes = static_cast<int64_t>(fs::file_size(folder / "run/metrics.jsonl"));
  {
    RunFolder again = RunFolder::go_on(folder / "run", run, bytes, log.log());
    EXPECT_EQ(again.unasked_models(), (std::vector<int64_t>{20, 40}));
    again.write_start({}, {}, Json(Json::Object{{"started", "later"}}));
    again.set_unasked_models({60});
    again.write_end("stopped");
  }
  EXPECT_EQ(RunFolder::go_on(folder / "run", run, bytes, log.log()).unasked_models(), (std::vector<int64_t>{60}));
  EXPECT_EQ(Json::read_file(folder / "run/run.json").find("starts")->array()->size(), 2u);
}

TEST(RunFolder, LosesPartsOfDeadProcessesAndNotOfLivingOnes) {
  const TemporaryFolder folder;
  TestLog log;
  const std::string run = write_run(folder / "run", log.log());
  constexpr int kNoProcess = 0x7ffffffe, kFirst = 1;  // a process with number 1 always exists
  for (const int process : {kNoProcess, kFirst}) write_text(folder / cat("run/run.json.", process, ".part"), "x");
  const RunFolder again = RunFolder::go_on(folder / "run", run, 0, log.log());
  EXPECT_FALSE(fs::exists(folder / cat("run/run.json.", kNoProcess, ".part")));
  EXPECT_TRUE(fs::exists(folder / cat("run/run.json.", kFirst, ".part")));
}

TEST(RunFolder, ReplacesNoInput) {
  const TemporaryFolder folder;
  TestLog log;
  write_text(folder / "mine/config.json", "{}");
  EXPECT_NE(
      message_of(Kind::usage, [&] { RunFolder(folder / "mine", "c.json", {folder / "mine/config.json"}, log.log()); })
          .find("config.json' is a file that this command reads"),
      std::string::npos);
}

}  // namespace
}  // namespace hctr::test
