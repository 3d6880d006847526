// Runs the program on several ranks, as threads of one process and as MPI processes, and reads the results.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "support/devices.h"
#include "support/distance.h"
#include "support/run_program.h"

namespace hctr::test {

namespace fs = std::filesystem;

/// How the ranks of a run are distributed.
struct Ranks {
  std::string gpu;    // the value of "gpu" in the config
  int processes = 1;  // if more than 1, mpirun starts the processes
};
inline void PrintTo(const Ranks& ranks, std::ostream* out) { *out << ranks.gpu; }
inline const Ranks kThreads[] = {{"[0, 1]"}, {"[0, 1, 2]"}, {"[0, 1, 2, 3]"}};
inline const Ranks kProcesses[] = {
    {"[[0], [0]]", 2}, {"[[0], [0], [0]]", 3}, {"[[0], [0], [0], [0]]", 4}, {"[[0, 1], [0]]", 2}};
/// Ranks on GPUs of one host: as threads, as processes, and as processes with several ranks.
inline const Ranks kGpus[] = {{"[0, 1]"},       {"[[0], [1]]", 2},           {"[0, 1, 2]"},
                              {"[0, 1, 2, 3]"}, {"[[0], [1], [2], [3]]", 4}, {"[[0, 1], [2, 3]]", 2}};

/// Whether sanitizers skip these ranks. Sanitizers run only two cases, which cover the code of all others: three
/// threads, and three ranks in two processes.
inline bool same_code(const Ranks& ranks) { return ranks.gpu != kThreads[1].gpu && ranks.gpu != kProcesses[3].gpu; }

/// Counts the ranks: each rank is one digit in `gpu`.
inline int count_of(const Ranks& ranks) {
  return static_cast<int>(
      std::count_if(ranks.gpu.begin(), ranks.gpu.end(), [](char c) { return '0' <= c && c <= '9'; }));
}

/// Returns a test name such as "FourGpusInTwoProcesses".
inline std::string name_of(const ::testing::TestParamInfo<Ranks>& info) {
  const char* const kNumbers[] = {"", "One", "Two", "Three", "Four"};
  const std::string gpus = std::string(kNumbers[count_of(info.param)]) + "Gpus";
  return info.param.processes == 1 ? gpus : gpus + "In" + kNumbers[info.param.processes] + "Processes";
}

/// Returns the reason why this machine cannot run these ranks on GPUs; empty if it can.
inline std::string why_not_here(const Ranks& gpus) {
  if (!kNcclBuild) return "needs a build with NCCL";
  if (find_gpus().count < count_of(gpus)) return "needs " + std::to_string(count_of(gpus)) + " GPUs";
  return gpus.processes > 1 ? why_no_mpi() : "";
}

inline std::string sgd(std::string config) {
  const size_t begin = config.find("\"optimizer\":"), end = config.find("\"layers\":");
  return config.replace(
      begin, end - begin,
      R"("optimizer": {"type": "SGD", "update_type": "Local", "sgd_hparam": {"learning_rate": 0.3}}, )");
}

inline std::string with_batch_norm(const std::string& config) {
  return with_change(
      with_change(config, R"("bottom": "fc1", "top": "relu1")", R"("bottom": "bn1", "top": "relu1")"),
      R"({"name": "relu1")",
      R"({"type": "BatchNorm", "bottom": "fc1", "top": "bn1", "bn_param": {"factor": 0.1, "eps": 0.001}}, {"name": "relu1")");
}

/// Returns the config with PReLU_Dice instead of the ReLU after fc1.
inline std::string with_dice(const std::string& config) {
  return with_change(config, R"("type": "ReLU", "bottom": "fc1")",
                     R"("type": "PReLU_Dice", "prelu_dice_param": {"alpha": 0.1, "epsilon": 1e-3}, "bottom": "fc1")");
}

/// Returns the config with more weights than one gradient bucket holds. The gradients of fc1b are all-reduced before
/// the backward pass of fc1 and of BatchNorm, if the config has it.
inline std::string with_large_layers(const std::string& config) {
  const std::string wide =
      with_change(with_change(config, R"("num_output": 16)", R"("num_output": 1100)"),
                  R"("bottom": "relu1", "top": "dropout1")", R"("bottom": "relu1b", "top": "dropout1")");
  return with_change(wide, R"({"name": "dropout1")",
                     R"({"type": "InnerProduct", "bottom": "relu1", "top": "fc1b", "fc_param": {"num_output": 1100}},
    {"type": "ReLU", "bottom": "fc1b", "top": "relu1b"}, {"name": "dropout1")");
}

class RanksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config_ = with_change(with_change(small_config(), "\"display\": 20", "\"display\": 1"), "\"max_iter\": 60",
                          "\"max_iter\": 20");
    config_ = with_change(config_, "\"eval_interval\": 30", "\"eval_interval\": 10");
    write_file(folder_ / "data.json", config_);
    make_data(folder_.path(), "data.json", 3000, 500, {"--vocabulary", "300"});
  }

  struct Table {
    std::string name;
    bool by_slot;  // false: all slots share the rows
    size_t dim;
  };
  struct Result {
    std::vector<double> losses, metrics;
    std::vector<std::string> unmatched;  // for each evaluation, the fraction of keys without a row
    std::vector<float> dense;
    std::vector<std::map<std::pair<uint64_t, int64_t>, std::vector<float>>> rows;  // one map per table
    std::string statistics;
    std::map<size_t, std::string> marks;  // access statistics, by table index
  };

  Outcome start(const std::string& config, const Ranks& ranks, const std::string& name) {
    write_file(folder_ / (name + ".json"), with_change(with_change(config, "\"gpu\": [0]", "\"gpu\": " + ranks.gpu),
                                                       "\"out/\"", "\"" + name + "/\""));
    std::vector<std::string> arguments = {"--train", name + ".json", "--run-dir", name + "-run", "--device", device_};
    return ranks.processes == 1 ? run_program("huge_ctr", arguments, folder_.path())
                                : run_under_mpi(ranks.processes, "huge_ctr", arguments, folder_.path());
  }

  Result train(const std::string& config, const Ranks& ranks, const std::string& name = "many") {
    fs::remove_all(folder_ / name);
    fs::remove_all(folder_ / (name + "-run"));
    const Outcome outcome = start(config, ranks, name);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return result(name);
  }

  /// The losses and metrics of a run, without its model.
  Result metrics(const std::string& name) const {
    Result out;
    std::istringstream lines(read_file(folder_ / (name + "-run") / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json json = Json::parse(line, "metrics.jsonl");
      if (*json.find("kind")->string() == "train") out.losses.push_back(json.find("loss")->number());
      if (*json.find("kind")->string() == "eval")
        for (const char* metric : {"AUC", "AverageLoss", "samples"}) out.metrics.push_back(json.find(metric)->number());
      if (const Json* unmatched = json.find("unmatched_keys")) out.unmatched.push_back(unmatched->text());
    }
    return out;
  }

  Result result(const std::string& name) const {
    Result out = metrics(name);
    out.rows.resize(tables_.size());
    for (const auto& entry : fs::directory_iterator(folder_ / (name + "-run"))) {
      const std::string file = entry.path().filename(), bytes = read_file(entry.path());
      if (file.ends_with(".ntp.json"))
        out.statistics = bytes;
      else if (file.starts_with("final__dense") && file.ends_with(".model")) {
        out.dense.resize(bytes.size() / sizeof(float));
        std::memcpy(out.dense.data(), bytes.data(), bytes.size());
      }
      for (size_t e = 0; e < tables_.size(); ++e)
        if (file.starts_with(cat("final_", e, "_sparse"))) {
          if (file.ends_with(".marks"))
            out.marks[e] = bytes;
          else
            read_rows(bytes, tables_[e], out.rows[e]);
        }
    }
    return out;
  }

  /// Returns the result of a single rank for a config. Results are cached for all tests, because all tests use the same
  /// data.
  Result alone(const std::string& config) {
    static std::map<std::string, Result> known;
    if (const auto at = known.find(device_ + config); at != known.end()) return at->second;
    const Result one = train(config, {"[0]"}, "one");
    if (!HasFailure()) known.emplace(device_ + config, one);
    return one;
  }

  static void read_rows(const std::string& bytes, const Table& table,
                        std::map<std::pair<uint64_t, int64_t>, std::vector<float>>& rows) {
    const size_t head = table.by_slot ? 16 : 8, dim = table.dim, row = head + dim * sizeof(float);
    ASSERT_EQ(bytes.size() % row, 0u) << "bytes after the last row";
    for (size_t at = 0; at < bytes.size(); at += row) {
      int64_t key = 0;
      uint64_t slot = 0;
      std::vector<float> vector(dim);
      std::memcpy(&key, bytes.data() + at, 8);
      if (table.by_slot) std::memcpy(&slot, bytes.data() + at + 8, 8);
      std::memcpy(vector.data(), bytes.data() + at + head, dim * sizeof(float));
      EXPECT_TRUE(rows.emplace(std::pair(slot, key), vector).second) << "key " << key << " twice";
    }
  }

  /// Compares losses with relative tolerance `of_losses`, and weights and rows with relative tolerance `tolerance`.
  void expect_same(const Result& one, const Result& many, double tolerance, double of_losses = 1e-6,
                   double of_metrics = 1e-4) const {
    ASSERT_EQ(many.losses.size(), one.losses.size());
    for (size_t i = 0; i < one.losses.size(); ++i)
      EXPECT_NEAR(many.losses[i] / one.losses[i], 1, of_losses) << "step " << i;
    ASSERT_EQ(many.metrics.size(), one.metrics.size());
    for (size_t i = 0; i < one.metrics.size(); ++i)
      EXPECT_NEAR(many.metrics[i] / one.metrics[i], 1, of_metrics) << "evaluation, number " << i;
    if (!many.unmatched.empty() && !one.unmatched.empty()) {
      EXPECT_EQ(many.unmatched.back(), one.unmatched.back());
    }
    EXPECT_LT(distance_of(one.dense, many.dense), tolerance) << "dense weights";
    for (size_t e = 0; e < one.rows.size(); ++e) {
      std::vector<float> a, b;
      ASSERT_EQ(one.rows[e].size(), many.rows[e].size()) << tables_[e].name;
      for (const auto& [identity, vector] : one.rows[e]) {
        const auto found = many.rows[e].find(identity);
        ASSERT_TRUE(found != many.rows[e].end()) << "key " << identity.second << " of slot " << identity.first;
        a.insert(a.end(), vector.begin(), vector.end());
        b.insert(b.end(), found->second.begin(), found->second.end());
      }
      EXPECT_LT(distance_of(a, b), tolerance) << tables_[e].name;
      const auto stats_of = [e](const Result& of) { return of.marks.contains(e) ? of.marks.at(e) : ""; };
      EXPECT_EQ(stats_of(many), stats_of(one)) << "when and how often keys came, " << tables_[e].name;
    }
  }

  /// Trains with batch statistics per rank. The losses of one rank must equal those of `one`; the losses of two ranks
  /// must differ.
  void expect_other_statistics_per_rank(const std::string& config, const Result& one) {
    const std::string apart =
        with_change(config, "\"seed\": 7", "\"seed\": 7, \"compatibility\": [\"batch_norm_per_gpu\"]");
    EXPECT_EQ(train(apart, {"[0]"}).losses, one.losses);
    EXPECT_GT(std::abs(train(apart, {"[0, 1]"}).losses.back() / one.losses.back() - 1), 1e-5);
  }

  /// A config with delayed admission, and batches that do not divide evenly among ranks. The last batch is short.
  std::string with_policies() const {
    std::string config = with_change(with_change(sgd(config_), "\"batchsize\": 128", "\"batchsize\": 127"),
                                     "\"max_iter\": 20", "\"num_epochs\": 1");
    config =
        with_change(config, "\"embedding_vec_size\": 1,", "\"embedding_vec_size\": 1, \"admit_probability\": 0.1,");
    return with_change(config, "\"embedding_vec_size\": 5,",
                       "\"embedding_vec_size\": 5, \"min_count\": 5, \"expire_after\": 16,");
  }

  /// A config with vectors of 128 bytes, one for each key. Copy engines send the gradients. Also stores the vector
  /// length in tables_, because the parser of row files needs it.
  std::string with_long_vectors() {
    tables_[1].dim = 32;
    const std::string config = with_change(sgd(config_), R"("embedding_vec_size": 5, "combiner": 1)",
                                           R"("embedding_vec_size": 32, "combiner": "none")");
    return with_change(config, R"("leading_dim": 15)", R"("leading_dim": 192)");
  }

  /// A config in half precision with vectors of 64 elements. An Interaction layer also reads a dense vector with large
  /// values, so only the gradients of embeddings overflow. Also generates data for this config.
  std::string with_large_interaction() {
    std::string layers = R"({"type": "Add", "bottom": ["dense", "dense"], "top": "twice1"},)";
    for (int i = 1; i < 11; ++i)
      layers +=
          cat(R"({"type": "Add", "bottom": ["twice)", i, R"(", "twice)", i, R"("], "top": "twice)", i + 1, R"("},)");
    layers += R"({"type": "Interaction", "bottom": ["twice11", "deep_emb"], "top": "concat1"},)";
    std::string config = with_long_vectors();
    const size_t begin = config.find(R"({"name": "deep", "type": "Reshape")"), end = config.find(R"({"name": "fc1")");
    config.replace(begin, end - begin, layers);
    config = with_change(config, R"("embedding_vec_size": 32)", R"("embedding_vec_size": 64)");
    config = with_change(config, R"("dense_dim": 4)", R"("dense_dim": 64)");
    tables_[1].dim = 64;
    write_file(folder_ / "data.json", config);
    make_data(folder_.path(), "data.json", 3000, 500, {"--vocabulary", "300", "--force"});
    return with_change(with_change(config, R"("seed": 7)", R"("seed": 7, "mixed_precision": true)"),
                       R"("learning_rate": 0.3)", R"("learning_rate": 0.00001)");
  }

  /// Two configs that must train the same model: `alone` on a single rank, `many` on several.
  struct Placed {
    std::string name, alone, many;
  };

  /// Configs with replicated rows (either frequent keys that the program finds, or all rows of both tables), and a
  /// config with automatic placement.
  std::vector<Placed> placements(const std::string& config) const {
    const std::string deep = "\"bottom\": \"deep_data\", \"top\": \"deep_emb\",",
                      wide = "\"bottom\": \"wide_data\", \"top\": \"wide_emb\",";
    const auto everywhere = [&](const std::string& to, const std::string& word) {
      const std::string said = "\"placement\": \"" + word + "\",";
      return with_change(with_change(to, deep, deep + said), wide, wide + said);
    };
    const std::string sizes = R"("index": "direct", "slot_size_array": [)";
    std::string direct = with_change(config, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 1",
                                     sizes + "300], \"embedding_vec_size\": 1");
    direct = with_change(direct, "\"max_vocabulary_size_per_gpu\": 1000, \"embedding_vec_size\": 5",
                         sizes + "300, 300, 300], \"embedding_vec_size\": 5");
    const std::string hybrid = with_change(everywhere(config, "hybrid"), "\"embedding_vec_size\": 1,",
                                           R"("embedding_vec_size": 1, "num_iterations_statistics": 5,)");
    return {{"hybrid", config, hybrid},
            {"data_parallel", direct, everywhere(direct, "data_parallel")},
            {"auto", direct, everywhere(direct, "auto")}};
  }

  /// A config with BatchNorm. Its layers need several gradient buckets.
  std::string with_many_buckets() const {
    return with_change(with_batch_norm(with_large_layers(sgd(config_))), "\"learning_rate\": 0.3",
                       "\"learning_rate\": 0.01");
  }

  /// Returns the config with few steps, because steps of large layers are slow, and a missing gradient reduction shows
  /// after few steps.
  static std::string with_few_steps(const std::string& config) {
    return with_change(config, "\"max_iter\": 20", "\"max_iter\": 6");
  }

  /// Returns the config without CUDA graphs.
  static std::string unrecorded(const std::string& config) {
    return with_change(config, "\"seed\": 7", "\"seed\": 7, \"cuda_graph\": false");
  }

  /// A config whose training ends only by a signal.
  std::string endless() const {
    const std::string config = with_change(config_, "\"max_iter\": 20", "\"max_iter\": 100000000");
    return with_change(config, "\"eval_interval\": 10", "\"eval_interval\": 0");
  }

  TemporaryFolder folder_;
  std::string config_, device_ = "cpu";
  /// The tables, with the facts that a parser of their row files needs: whether rows belong to slots, and the vector
  /// length.
  std::vector<Table> tables_ = {{"wide_emb", false, 1}, {"deep_emb", true, 5}};
};

/// RanksTest with the test folder as the working directory, for library calls with relative data paths.
class RanksTestInItsFolder : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    before_ = fs::current_path();
    fs::current_path(folder_.path());
  }
  void TearDown() override {
    if (!before_.empty()) fs::current_path(before_);  // empty: the test was skipped before SetUp()
  }

 private:
  fs::path before_;
};

/// Runs tests of a fixture on GPUs. The parameter is the distribution of ranks.
template <class Fixture>
class OnGpus : public Fixture, public ::testing::WithParamInterface<Ranks> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not_here(GetParam()); !why.empty()) GTEST_SKIP() << why;
    Fixture::SetUp();
    this->device_ = "cuda";
  }
};

}  // namespace hctr::test
