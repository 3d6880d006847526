// A trainer publishes changed rows, and stores consume them. After broker outages and killed processes, the stores'
// tables equal the trainer's tables.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include "core/base/files.h"
#include "formats/model/model_manifest.h"
#include "hctr/formats.h"
#include "hctr/store.h"
#include "ranks_fixture.h"
#include "store/table_sources.h"
#include "stream/hps_message.h"
#include "support/mock_kafka.h"

namespace hctr::test {
namespace {

class Publish : public RanksTest {
 protected:
  void SetUp() override {
    config_ = with_change(small_config(), "\"eval_interval\": 30", "\"eval_interval\": 0");
    write_file(folder_ / "data.json", config_);
    make_data(folder_.path(), "data.json", 1500, 300, {"--vocabulary", "300"});
  }

  std::string published(const std::string& stream, const std::string& more = "") const {
    return with_change(config_, "\"snapshot\": 1000000",
                       cat(R"("snapshot_delta": 5, "snapshot": 1000000, "publish": {)", stream, "}", more));
  }
  static std::string stream_of(const MockKafka& kafka) {
    return cat(R"("brokers": ")", kafka.brokers(),
               R"(", "topic": "deltas", "librdkafka": ["reconnect.backoff.max.ms=200"])");
  }
  Outcome train(const std::string& config, const std::vector<std::string>& more = {}) {
    write_file(folder_ / "train.json", config);
    std::vector<std::string> words = {"--train", "train.json", "--run-dir", "run", "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program("huge_ctr", words, folder_.path());
  }
  /// The tables of the model saved at `iteration`, with their rows.
  std::vector<StoreTableSource> tables_of_model(int64_t iteration) const {
    const auto manifest = manifest_of(formats::dense_model_name((folder_ / "out/").string(), iteration));
    std::vector<StoreTableSource> tables;
    for (size_t t = 0; t < manifest->tables.size(); ++t)
      tables.push_back(
          {.name = manifest->tables[t].name,
           .dim = manifest->tables[t].dim,
           .by_slot = manifest->tables[t].by_slot,
           .model_file = formats::sparse_model_name(manifest->prefix, static_cast<int64_t>(t), iteration)});
    return tables;
  }
  void write_store(const std::string& name, const std::string& stream) {
    std::string tables;
    for (const StoreTableSource& table : tables_of_model(60))
      tables += cat(tables.empty() ? "" : ", ", R"({"name": ")", table.name, R"(", "dim": )", table.dim,
                    R"(, "by_slot": )", table.by_slot ? "true" : "false", "}");
    write_file(folder_ / (name + ".json"), cat(R"({"folder": ")", name, R"(", "models": [{"name": "m", "tables": [)",
                                               tables, R"(], "stream": {)", stream, "}}]}"));
  }
  void expect_rows_of_model(const std::string& store_name, int64_t iteration) {
    Store store({.levels = {{.kind = StoreLevelOptions::Kind::file, .folder = folder_ / store_name}}});
    const StoreView view = store.view("m");
    EXPECT_EQ(store.models().at(0).iteration, iteration);
    std::map<std::string, int64_t> rows;
    for (const StoreTableSource& table : tables_of_model(iteration)) {
      const size_t number = view.table(table.name);
      read_table(
          table, [&](std::span<const int32_t> slots, std::span<const int64_t> keys, std::span<const float> values) {
            rows[table.name] += static_cast<int64_t>(keys.size());
            std::vector<float> row(static_cast<size_t>(table.dim));
            for (size_t i = 0; i < keys.size(); ++i) {
              ASSERT_EQ(view.get(number, {&keys[i], 1}, row.data(), 0, nullptr, slots.empty() ? 0 : slots[i]), 0);
              ASSERT_TRUE(std::equal(row.begin(), row.end(), values.begin() + static_cast<ptrdiff_t>(i) * table.dim));
            }
          });
    }
    for (const StoreTableStatistics& table : store.tables()) {
      EXPECT_EQ(table.rows, rows[table.table]) << table.table;
      EXPECT_GT(table.rows, 0);
    }
  }
  std::string config_;
};

TEST_F(Publish, AStoreThatIsKilledAgainAndAgainHasTheTrainersRows) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"deltas:2"});
  const Outcome trained = train(published(stream_of(kafka)));
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("Published the full model of iteration 5."), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("Published the delta of iteration 60."), std::string::npos) << trained.err;
  write_store("store", stream_of(kafka));
  std::mt19937 random(1);
  for (int kills = 0; kills < 4; ++kills)
    run_and_kill("huge_ctr", {"store", "follow", "store.json"}, folder_.path(),
                 std::chrono::milliseconds(30 + random() % 200));
  const Outcome loaded = run_program("huge_ctr", {"store", "load", "store.json"}, folder_.path());
  ASSERT_EQ(loaded.exit_code, 0) << loaded.err;
  expect_rows_of_model("store", 60);
}

TEST_F(Publish, ABrokerThatIsAwayCostsNothingButAge) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"deltas:1"});
  kafka.command("down 1");
  const std::string config =
      published(cat(stream_of(kafka), R"(, "wait_at_end": 0)"), R"(, "checkpoint": {"every": 30})");
  const Outcome away = train(config);
  ASSERT_EQ(away.exit_code, 0) << away.err;
  EXPECT_NE(away.err.find("12 deltas are not published"), std::string::npos) << away.err;
  kafka.command("up 1");
  // A resumed run publishes the remaining deltas. The first run's full model was not published either, so the resumed
  // run saves and publishes a new full model.
  const Outcome later = train(with_change(with_change(config, "\"max_iter\": 60", "\"max_iter\": 70"),
                                          "\"wait_at_end\": 0", "\"wait_at_end\": 60"),
                              {"--resume", "latest"});
  ASSERT_EQ(later.exit_code, 0) << later.err;
  EXPECT_NE(later.err.find("Publishing 11 deltas that an earlier process did not publish."), std::string::npos)
      << later.err;
  EXPECT_NE(later.err.find("Published the delta of iteration 70."), std::string::npos) << later.err;
  write_store("store", stream_of(kafka));
  ASSERT_EQ(run_program("huge_ctr", {"store", "load", "store.json"}, folder_.path()).exit_code, 0);
  expect_rows_of_model("store", 70);
}

TEST_F(Publish, ADeltaIsSentWhileTrainingWaitsForAFile) {
  HCTR_SKIP_WITHOUT_KAFKA();
  MockKafka kafka({"deltas:1"});
  std::string config = with_change(published(stream_of(kafka)), "\"snapshot_delta\": 5", "\"snapshot_delta\": 1");
  config = with_change(config, R"("source": "train.txt")", R"("source": "list.txt", "follow": true)");
  write_file(folder_ / "follow.json", with_change(config, "\"max_iter\": 60", "\"num_epochs\": 1"));
  write_file(folder_ / "list.txt", read_file(folder_ / "train.txt"));
  const Started run = start_program("huge_ctr", {"--train", "follow.json", "--run-dir", "run", "--device", "cpu"},
                                    folder_.path(), {}, "run");
  wait_for_text(run.err, "Published the delta of iteration 11.");  // 1500 samples: 11 batches of 128, and 92 samples
  std::ofstream(folder_ / "list.txt", std::ios::app) << "_END\n";
  const Outcome done = finish_program(run);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("Published the delta of iteration 12."), std::string::npos) << done.err;
}

TEST_F(Publish, IsNamedWhereItCannotBe) {
  const Outcome without = train(with_change(published(R"("brokers": "127.0.0.1:1", "topic": "t")"),
                                            "\"snapshot_delta\": 5", "\"snapshot_delta\": 0"));
  EXPECT_NE(without.exit_code, 0);
  EXPECT_NE(without.err.find("snapshot_delta"), std::string::npos) << without.err;
}

}  // namespace
}  // namespace hctr::test
