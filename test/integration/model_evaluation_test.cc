// hctr::Model: evaluation of the loaded model, and small tables in memory.
#include <algorithm>
#include <atomic>
#include <thread>

#include "scores_fixture.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

class ModelEvaluation : public ScoresTest {
 protected:
  EvaluationSummary by_program(const std::string& model, const std::string& data = {}) const {
    ModelOptions options;
    options.model = model;
    options.data = data;
    options.device = device_ == "cpu" ? DeviceChoice::cpu : DeviceChoice::cuda;
    return evaluate(options);
  }
};

TEST_F(ModelEvaluation, OfTheLoadedModelHasTheNumbersOfTheProgram) {
  train(with_batch_norm(config_), {"[0]"}, "one");
  const Model model(at("one-run"));
  for (const char* data : {"", "train.txt"}) {
    const EvaluationSummary expected = by_program("one-run", data), found = model.evaluate(data);
    EXPECT_EQ(found.metrics, expected.metrics) << "on " << expected.data;
    EXPECT_EQ(found.samples, expected.samples);
    EXPECT_EQ(found.data, expected.data);
    EXPECT_EQ(found.best_possible, expected.best_possible);
    ASSERT_EQ(found.matches.size(), expected.matches.size());
    for (size_t i = 0; i < found.matches.size(); ++i)
      EXPECT_EQ(found.matches[i].unmatched, expected.matches[i].unmatched);
  }
  EXPECT_NE(model.evaluate().metrics, model.evaluate("train.txt").metrics);
}

TEST_F(ModelEvaluation, RunsWhileOthersScoreAndEvaluate) {
  train(config_, {"[0]"}, "one");
  const SampleArrays samples = samples_of("one.json");
  const Model model(at("one-run"));
  const auto metrics = model.evaluate().metrics;
  const std::vector<float> scores = score_in(model, samples, {4096});
  std::atomic<int> wrong = 0, begun = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (++begun; begun < 4;) std::this_thread::yield();
      for (int i = 0; i < 3; ++i)
        wrong += t < 2 ? model.evaluate().metrics != metrics : score_in(model, samples, {64, 300}) != scores;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ModelEvaluation, SaysWhatIsMissingAndWhatHasStoppedIt) {
  train(config_, {"[0]"}, "one");
  const Model model(at("one-run"));
  const std::atomic<int> stop = 2;
  EXPECT_TRUE(model.evaluate({}, &stop).interrupted);
  EXPECT_EQ(model.evaluate().samples, 500);
  LoadOptions without = at("one-run");
  without.changes = {"layers.0.eval_source=\"\""};
  EXPECT_NE(message_of(Kind::usage, [&] { Model(without).evaluate(); }).find("has no eval_source"), std::string::npos);
  EXPECT_NE(message_of(Kind::io, [&] { model.evaluate("nowhere.txt"); }).find("nowhere.txt"), std::string::npos);
}

/// A key outside the range has no row and contributes zero. Metrics on such data would be misleading, so evaluate()
/// rejects the data.
TEST_F(ModelEvaluation, NamesKeysOutsideTheRangesOfATable) {
  train(with_change(config_, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 1",
                    R"("index": "direct", "slot_size_array": [300], "embedding_vec_size": 1)"),
        {"[0]"}, "one");
  const Model model(at("one-run"));
  EXPECT_EQ(model.evaluate().metrics, by_program("one-run").metrics);
  make_data(folder_.path(), "data.json", 300, 300, {"--vocabulary", "100000", "--force"});
  const std::string found = message_of(Kind::data, [&] { model.evaluate(); }),
                    key = found.substr(std::min(found.size(), found.find("evaluation data: key ")));
  EXPECT_EQ(found, "table 'wide_emb': " + key);
  EXPECT_NE(message_of(Kind::data, [&] { by_program("one-run"); }).find(key), std::string::npos) << key;
}

}  // namespace
}  // namespace hctr::test
