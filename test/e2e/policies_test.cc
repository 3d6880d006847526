// Training with full tables, delayed admission of keys and expiry of rows: reported counts and written files.
#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "core/device/device.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLimit = 200;

class TablePolicies : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "config.json", with_policy(""));
    make_data(folder_.path(), "config.json", 3000, 500);
  }
  /// Returns the config with `fields` added to the deep embedding. A batch of 16 samples has fewer keys than the row
  /// limit.
  static std::string with_policy(const std::string& fields) {
    const std::string config = with_change(small_config(), "\"batchsize\": 128", "\"batchsize\": 16");
    return with_change(config, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 5",
                       cat("\"max_vocabulary_size_per_gpu\": ", kLimit, fields, ", \"embedding_vec_size\": 5"));
  }
  Outcome train(const std::string& config, const std::string& run, const std::vector<std::string>& options) {
    write_file(folder_ / (run + ".json"), config);
    std::vector<std::string> arguments = {"--train", run + ".json", "--run-dir", run};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program("huge_ctr", arguments, folder_.path());
  }
  std::string model(const std::string& run) { return read_file(folder_ / run / "final_1_sparse_60.model"); }

  struct Result {
    std::map<std::string, int64_t> counts;
    std::string log;
  };
  /// Trains with the policy on each device, with one and with four threads. The model bytes must be equal on the same
  /// device, and the counts must be equal on all devices.
  Result train_everywhere(const std::string& fields) {
    Result first;
    std::vector<std::string> devices = {"cpu"};
    if (find_gpus().count > 0) devices.push_back("cuda");
    for (const std::string& device : devices) {
      for (const std::string threads : {"1", "4"}) {
        const std::string run = cat(device, threads);
        const Outcome done = train(with_policy(fields), run, {"--device", device, "--threads", threads});
        EXPECT_EQ(done.exit_code, 0) << done.err;
        Result result{{}, done.err};
        const Json summary = Json::parse(read_file(folder_ / run / "summary.json"), "summary.json");
        const Json* tables = summary.find("tables");
        EXPECT_TRUE(tables && tables->object()->size() == 1) << "the wide table has no policy: " << summary.text();
        if (!tables) return result;
        for (const auto& [name, value] : *tables->find("deep_emb")->object()) result.counts[name] = *value.integer();
        EXPECT_EQ(static_cast<int64_t>(model(run).size()), result.counts["rows"] * (8 + 8 + 5 * 4)) << run;
        EXPECT_NE(done.err.find(cat("Table 'deep_emb': ")), std::string::npos) << done.err;
        EXPECT_NE(read_file(folder_ / run / "metrics.jsonl").find("\"kind\":\"table\""), std::string::npos);
        if (first.log.empty()) first = result;
        EXPECT_EQ(result.counts, first.counts) << run;
      }
      EXPECT_TRUE(model(device + "1") == model(device + "4")) << device;
    }
    return first;
  }

  TemporaryFolder folder_;
};

TEST_F(TablePolicies, FullTablesEvict) {
  const Result lru = train_everywhere(R"(, "when_full": "evict_lru")"),
               lfu = train_everywhere(R"(, "when_full": "evict_lfu")");
  for (const Result& result : {lru, lfu}) {
    EXPECT_LE(result.counts.at("rows"), kLimit);
    EXPECT_GT(result.counts.at("rows"), kLimit - kLimit / 8);
    EXPECT_GT(result.counts.at("rows_evicted"), kLimit);
  }
  EXPECT_LT(lfu.counts.at("rows_evicted"), 2 * lru.counts.at("rows_evicted"));
}

TEST_F(TablePolicies, FullTablesShareARow) {
  const Result result = train_everywhere(R"(, "when_full": "ignore")");
  EXPECT_EQ(result.counts.at("rows"), kLimit);
  EXPECT_GT(result.counts.at("occurrences_ignored"), kLimit);
  EXPECT_NE(result.log.find("New keys of the full table 'deep_emb' share a row, which is not in the model file"),
            std::string::npos)
      << result.log;
}

TEST_F(TablePolicies, KeysWaitAreDrawnAndExpire) {
  const auto everything = train_everywhere(R"(, "expire_after": 1000000)").counts;
  EXPECT_EQ(everything.at("rows_expired"), 0);
  const auto counted = train_everywhere(R"(, "min_count": 3)").counts,
             drawn = train_everywhere(R"(, "admit_probability": 0.3)").counts,
             expiring = train_everywhere(R"(, "expire_after": 16)").counts;
  for (const auto& waiting : {counted, drawn}) {
    EXPECT_LT(waiting.at("rows"), everything.at("rows"));
    EXPECT_GT(waiting.at("rows"), 0);
    EXPECT_GT(waiting.at("occurrences_not_admitted"), everything.at("rows") / 2);
  }
  EXPECT_LT(expiring.at("rows"), everything.at("rows"));
  EXPECT_GT(expiring.at("rows_expired"), 0);
  const auto all =
      train_everywhere(R"(, "when_full": "evict_lru", "min_count": 2, "expire_after": 40, "max_candidates": 100)")
          .counts;
  EXPECT_LE(all.at("rows"), kLimit);
  EXPECT_GT(all.at("candidates_dropped"), 0);
}

TEST_F(TablePolicies, AFullTableIsAnErrorWhenThatIsAskedFor) {
  const Outcome full = train(with_policy(R"(, "when_full": "error")"), "full", {"--device", "cpu"});
  EXPECT_EQ(full.exit_code, 4) << full.err;
  for (const char* piece : {"table 'deep_emb' on rank 0", "the 200 rows", "\"max_vocabulary_size_per_gpu\"", "or more)",
                            "\"when_full\": \"evict_lru\"", "is saved as"})
    EXPECT_NE(full.err.find(piece), std::string::npos) << "no " << piece << " in: " << full.err;
  const std::string small = with_change(with_policy(R"(, "when_full": "evict_lfu")"), "_gpu\": 200", "_gpu\": 20");
  const Outcome batch = train(small, "batch", {"--device", "cpu"});
  EXPECT_EQ(batch.exit_code, 4) << batch.err;
  for (const char* piece : {"table 'deep_emb' on rank 0: one batch holds ", "more than the 20 rows",
                            "\"max_vocabulary_size_per_gpu\"", "\"batchsize\""})
    EXPECT_NE(batch.err.find(piece), std::string::npos) << "no " << piece << " in: " << batch.err;
}

TEST_F(TablePolicies, WrongValuesAreNamed) {
  const auto expect = [&](const std::string& fields, const std::vector<std::string>& pieces) {
    write_file(folder_ / "wrong.json", with_policy(fields));
    const Outcome outcome = run_program("huge_ctr", {"--check", "wrong.json"}, folder_.path());
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    for (const std::string& piece : pieces)
      EXPECT_NE(outcome.err.find(piece), std::string::npos) << "no " << piece << " in: " << outcome.err;
  };
  const std::string place = "/layers/2/sparse_embedding_hparam/";
  expect(R"(, "min_count": 0)", {place + "min_count", "at least 1", "found the integer 0"});
  expect(R"(, "admit_probability": 0)", {place + "admit_probability", "more than 0 and at most 1"});
  expect(R"(, "admit_probability": 1.5)", {place + "admit_probability", "1.5"});
  expect(R"(, "expire_after": 0)", {place + "expire_after", "at least 1"});
  expect(R"(, "when_full": "evict_lur")", {place + "when_full", "did you mean \"evict_lru\"?"});
  expect(R"(, "min_count": 3, "admit_probability": 0.5)", {place + "admit_probability", "\"min_count\" is also set"});
}

}  // namespace
}  // namespace hctr::test
