// Training on rows of a Kafka topic gives the same model as training on the same rows in a file. This also holds after
// an interruption, and after the files in which the run stores rows of the topic were deleted.
#include <gtest/gtest.h>
#include <signal.h>

#include "ranks_fixture.h"
#include "stream/kafka_library.h"
#include "support/mock_kafka.h"

namespace hctr::test {
namespace {

class FollowTopic : public RanksTest {
 protected:
  void SetUp() override {
    const std::string small = with_change(with_change(small_config(), "\"display\": 20", "\"display\": 1"),
                                          "\"eval_interval\": 30", "\"eval_interval\": 10");
    const std::string one_key =
        with_change(with_change(small, "\"max_feature_num_per_sample\": 2", "\"max_feature_num_per_sample\": 1"),
                    "\"max_feature_num_per_sample\": 6, \"max_nnz\": 2", "\"max_feature_num_per_sample\": 3");
    const std::string epochs = with_change(one_key, "\"max_iter\": 60", "\"num_epochs\": 1");
    config_ = with_change(epochs, "\"check\": \"Sum\"",
                          R"("format": "Csv", "csv": {"header": false,
                            "columns": ["y", "x0", "x1", "x2", "x3", "c0", "c1", "c2", "c3"], "labels": ["y"],
                            "dense": [{"columns": ["x0", "x1", "x2", "x3"]}],
                            "slots": [{"columns": ["c0", "c1", "c2", "c3"], "keys": "number"}]})");
    std::string all;
    for (int r = 0; r < 1500; ++r) all += row(r) + "\n";
    write_file(folder_ / "rows.csv", all);
    write_file(folder_ / "eval.csv", all.substr(0, all.size() / 4 + all.substr(all.size() / 4).find('\n') + 1));
    config_ = with_change(config_, "\"eval.txt\"", "\"eval.csv\"");
  }

  static std::string row(int r) {
    std::string text = cat(static_cast<int>(r * 7919 % 5 == 0));
    for (int d = 1; d <= 4; ++d) text += cat(",", static_cast<float>(r * d % 8) / 4);
    for (int s = 0; s < 4; ++s) text += cat(",", 300 * s + r * 104729 % (97 + s));
    return text;
  }
  static void send(KafkaWriter& writer, int first, int last, bool end = false) {
    for (int r = first; r < last + end; ++r) {
      const std::string text = r == last ? "_END" : row(r);
      bool full = true;
      while (full) {
        ASSERT_EQ(writer.send("rows", 0, text.data(), static_cast<int64_t>(text.size()), full), nullptr);
        if (full) writer.serve(10);
      }
    }
    while (writer.serve(10) > 0) continue;
  }
  void write_config(const std::string& source, const std::string& name, const std::string& gpu) {
    const std::string from = with_change(config_, "\"source\": \"train.txt\"", source);
    const std::string out = with_change(
        from, "\"out/\"", cat("\"", name, R"(/", "checkpoint": {"every": 3, "folder": ")", name, R"(-ckpt"})"));
    write_file(folder_ / (name + ".json"), with_change(out, "\"gpu\": [0]", "\"gpu\": " + gpu));
  }
  static std::vector<std::string> words(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"--train", name + ".json", "--run-dir", name + "-run", "--device", "cpu"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void expect_equal_models() {
    int compared = 0;
    for (const auto& entry : fs::directory_iterator(folder_ / "file-run")) {
      const std::string file = entry.path().filename();
      // The manifest is not compared, because it contains the run name.
      if (!file.starts_with("final_") || file.starts_with("final__model_")) continue;
      ++compared;
      EXPECT_TRUE(read_file(entry) == read_file(folder_ / "topic-run" / file)) << file << " differs";
    }
    EXPECT_GE(compared, 3);
  }
  std::string config_;
};

TEST_F(FollowTopic, GivesTheModelOfTheSameRowsInAFile) {
  HCTR_SKIP_WITHOUT_KAFKA();
  const std::string gpu = "[0, 1]";
  write_config("\"source\": \"rows.csv\"", "file", gpu);
  const Outcome whole = run_program("huge_ctr", words("file"), folder_.path());
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  MockKafka kafka({"rows:1"});
  const auto writer = open_kafka_writer(kafka.stream("rows"));
  write_config(cat(R"("source": "kafka://)", kafka.brokers(),
                   R"(/rows#rows=200&seconds=0.1&reconnect.backoff.max.ms=200", "follow": true)"),
               "topic", gpu);
  send(*writer, 0, 640);
  const Started first = start_program("huge_ctr", words("topic"), folder_.path(), {}, "first");
  wait_for_text(first.err, "Iter: 4 ");
  kill(first.process, SIGTERM);
  EXPECT_EQ(finish_program(first).exit_code, 75);
  fs::remove_all(folder_ / "rows.kafka");  // the resumed run reads the required rows from Kafka again
  const Started second =
      start_program("huge_ctr", words("topic", {"--resume", "latest"}), folder_.path(), {}, "second");
  send(*writer, 640, 1200);
  wait_for_text(second.err, "Iter: 8 ");
  kill(second.process, SIGKILL);
  finish_program(second);
  send(*writer, 1200, 1500, true);
  const Outcome done = run_program("huge_ctr", words("topic", {"--resume", "latest"}), folder_.path());
  ASSERT_EQ(done.exit_code, 0) << done.err;
  expect_equal_models();
}

TEST_F(FollowTopic, NamesWhatIsWrongWithASource) {
  for (const auto& [source, part] : std::vector<std::pair<std::string, std::string>>{
           {R"("source": "kafka://a:1/t")", "needs \\\"follow\\\": true"},
           {R"("source": "kafka://a:1", "follow": true)", "kafka://host:port,.../topic"},
           {R"("source": "kafka://a:1/t#rows=x", "follow": true)", "rows"}}) {
    write_config(source, "bad", "[0]");
    const Outcome bad = run_program("huge_ctr", words("bad"), folder_.path());
    EXPECT_EQ(bad.exit_code, 3) << bad.err;
    std::string plain = part;
    std::erase(plain, '\\');
    EXPECT_NE(bad.err.find(plain), std::string::npos) << bad.err;
  }
}

}  // namespace
}  // namespace hctr::test
