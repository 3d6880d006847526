// huge_ctr store: tables in memory and on disk, from the command line.
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/files.h"
#include "support/mock_kafka.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

void write_table(const fs::path& path) {
  const std::string header =
      R"({"key":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},"vector":{"dtype":"F32","shape":[2,1],)"
      R"("data_offsets":[16,24]}})";
  const auto length = static_cast<uint64_t>(header.size());
  const int64_t keys[2] = {7, -8};
  const float values[2] = {1.5f, 2};
  write_text(path, std::string(reinterpret_cast<const char*>(&length), 8) + header +
                       std::string(reinterpret_cast<const char*>(keys), 16) +
                       std::string(reinterpret_cast<const char*>(values), 8));
}

TEST(StoreProgram, LoadsAnswersVerifiesAndCompacts) {
  const TemporaryFolder folder;
  write_table(folder / "t.safetensors");
  write_text(folder / "store.json", R"({"folder": "rows", "models": [{"name": "m", "tables":
    [{"name": "t", "dim": 1, "file": "t.safetensors"}]}]})");
  const auto store = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "store");
    return run_program("huge_ctr", arguments, folder.path());
  };
  const Outcome checked = run_program("huge_ctr", {"check", "store.json"}, folder.path());
  EXPECT_NE(checked.out.find("m/1    t         2    1"), std::string::npos) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("store.json: OK"), std::string::npos) << checked.out;
  EXPECT_FALSE(fs::exists(folder / "rows")) << "a check loads nothing";
  const Outcome loaded = store({"load", "store.json"});
  ASSERT_EQ(loaded.exit_code, 0) << loaded.err;
  EXPECT_NE(loaded.out.find("table 't': 2 rows"), std::string::npos) << loaded.out;
  fs::remove(folder / "t.safetensors");  // the rows are now in the store's file tier
  const Outcome got = store({"get", "store.json", "--keys", "7,9"});
  EXPECT_EQ(got.out, "7 1.5\n9 (no row) 0\n") << got.err;
  EXPECT_EQ(store({"verify", "store.json"}).out, "2 rows have correct checksums\n");
  EXPECT_EQ(store({"compact", "store.json"}).exit_code, 0);
  const Outcome wrong = store({"lod", "store.json"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("did you mean \"load\"?"), std::string::npos) << wrong.err;
}

/// A short run of test/trials/rolling_restarts.py.
TEST(StoreProgram, ServersScoreAsTheTrainerWhileEveryProcessRestarts) {
  HCTR_SKIP_WITHOUT_KAFKA();
  const char* given = std::getenv("HCTR_PYTHON");
  const std::string python = given ? given : "python3";
  const TemporaryFolder folder;
  const Outcome done = run_program("/usr/bin/env",
                                   {python, (source_dir() / "test/trials/rolling_restarts.py").string(),
                                    bin_dir().string(), "--minutes", "0.1", "--pause", "0.2", "--quiet", "0.6"},
                                   folder.path());
  if (done.exit_code == 127) GTEST_SKIP() << "no " << python << "; HCTR_PYTHON names a Python";
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_NE(done.out.find("restarts: 1 x "), std::string::npos) << done.out << done.err;
}

TEST(StoreProgram, WithoutAPluginTheMessageSaysWhatToInstall) {
  const TemporaryFolder folder;
  fs::copy_file(bin_dir() / "huge_ctr", folder / "huge_ctr");  // the plug-in libraries are missing in this folder
  write_text(folder / "store.json", R"({"redis": {}, "rocksdb": {"folder": "db"}})");
  const Outcome done = run_program((folder / "huge_ctr").string(), {"store", "stats", "store.json"}, folder.path());
  EXPECT_EQ(done.exit_code, 5);
  EXPECT_NE(done.err.find("needs libhuge_ctr_redis.so next to the program, and the file is missing"), std::string::npos)
      << done.err;
  EXPECT_NE(done.err.find("install libhiredis-dev and libssl-dev"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace hctr::test
