// User configs of older versions: every classic model in the syntax of every version, every config section of the 2.1
// guide, and keys that some version defined.
#include <gtest/gtest.h>

#include <optional>

#include "support/run_program.h"
#include "support/topologies.h"

namespace hctr::test {
namespace {

class Tolerance : public testing::Test {
 protected:
  Outcome check(const std::string& config) {
    write_file(folder_ / "config.json", config);
    return run_program("huge_ctr", {"--check", "config.json"}, folder_.path());
  }
  /// Expects that the config is valid and that all its keys are known.
  void passes(const std::string& config) {
    const Outcome outcome = check(config);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("warning"), std::string::npos) << outcome.err;
    err_ = outcome.err;
  }
  void passes(const Json& config) { passes(config.text(1)); }
  /// Expects that the config is rejected with this message.
  void refuses(const Json& config, const std::string& words) {
    const Outcome outcome = check(config.text(1));
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_NE(outcome.err.find(words), std::string::npos) << "no \"" << words << "\" in:\n" << outcome.err;
  }
  void mentions(const std::string& words) {
    EXPECT_NE(err_.find(words), std::string::npos) << "no \"" << words << "\" in:\n" << err_;
  }

  TemporaryFolder folder_;
  std::string err_;  // stderr of the last successful check
};

TEST_F(Tolerance, EveryModelInEverySpellingPasses) {
  for (const Topology& topology : topologies())
    for (const Version version : kVersions) {
      if (version < topology.since) continue;
      SCOPED_TRACE(topology.name + " in " + name_of(version));
      passes(topology.config(version, Size::full, {}));
    }
}

TEST_F(Tolerance, EverySpellingOfAModelTrainsTheSameNumbers) {
  for (const Topology& topology : topologies()) {
    std::optional<double> loss;
    write_file(folder_ / "data.json", topology.config(Version::v3_0, Size::small, {}).text(1));
    make_data(folder_.path(), "data.json", 400, 100, {"--force", "--vocabulary", "30"});
    for (const Version version : kVersions) {
      if (version < topology.since) continue;
      SCOPED_TRACE(topology.name + " in " + name_of(version));
      write_file(folder_ / "config.json", topology.config(version, Size::small, {}).text(1));
      const Outcome done = run_program(
          "huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", "cpu", "--seed", "3"}, folder_.path());
      ASSERT_EQ(done.exit_code, 0) << done.err;
      const Json summary = Json::parse(read_file(folder_ / "run" / "summary.json"), "summary.json");
      EXPECT_EQ(*summary.find("iterations")->integer(), 3);
      if (!loss) loss = summary.find("final_loss")->number();
      EXPECT_EQ(summary.find("final_loss")->number(), *loss);
    }
  }
}

/// Raw records of one label, 13 dense values and 26 keys below 30, as integers.
std::string raw_records(int count) {
  std::string bytes;
  const auto put = [&](int32_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (int i = 0; i < count; ++i) {
    put(i % 3 == 0);
    for (int k = 0; k < 13; ++k) put(i * (k + 1) % 17);
    for (int k = 0; k < 26; ++k) put(i * (k + 3) % 30);
  }
  return bytes;
}

TEST_F(Tolerance, RawDataTrainsTheSameNumbersInEverySpelling) {
  write_file(folder_ / "file_list.txt", raw_records(400));
  write_file(folder_ / "file_list_test.txt", raw_records(100));
  for (const Topology& topology : topologies()) {
    std::optional<double> loss;
    for (const Version version : kVersions) {
      if (version < topology.since || !topology.raw) continue;
      SCOPED_TRACE(topology.name + " in " + name_of(version));
      write_file(folder_ / "config.json",
                 topology.config(version, Size::small, {.optimizer = "", .format = "Raw"}).text(1));
      const Outcome done = run_program(
          "huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", "cpu", "--seed", "3"}, folder_.path());
      ASSERT_EQ(done.exit_code, 0) << done.err;
      const Json summary = Json::parse(read_file(folder_ / "run" / "summary.json"), "summary.json");
      if (!loss) loss = summary.find("final_loss")->number();
      EXPECT_EQ(summary.find("final_loss")->number(), *loss);
    }
  }
}

TEST_F(Tolerance, EveryOptimizerOfEveryVersion) {
  for (const Version version : kVersions)
    for (const std::string type : {"Adam", "SGD", "MomentumSGD", "Nesterov"}) {
      if (type == "SGD" && version < Version::v2_2) continue;
      SCOPED_TRACE(type + " in " + name_of(version));
      passes(topologies()[0].config(version, Size::full, {.optimizer = type, .format = ""}));
    }
}

TEST_F(Tolerance, ParquetData) {
  for (const Version version : kVersions) {
    if (version < Version::v2_2_1) continue;
    passes(topologies()[6].config(version, Size::full, {.optimizer = "", .format = "Parquet"}));
  }
}

/// Returns `value` with every scalar member wrapped in an array of one element.
Json wrapped(const Json& value) {
  if (const auto* object = value.object()) {
    Json out(Json::Object{});
    for (const auto& [key, member] : *object) {
      const bool scalar = !member.object() && !member.array();
      out.set(key, scalar ? Json(Json::Array{member}) : wrapped(member));
    }
    return out;
  }
  if (const auto* array = value.array()) {
    Json out(Json::Array{});
    for (const Json& element : *array) out.add(wrapped(element));
    return out;
  }
  return value;
}

TEST_F(Tolerance, AScalarMayStandInAnArrayOfOne) {
  for (const Topology& topology : topologies())
    for (const Version version : kVersions)
      if (version >= topology.since) {
        SCOPED_TRACE(topology.name + " in " + name_of(version));
        passes(wrapped(topology.config(version, Size::small, {})));
      }
}

/// A config key that some version defined. Tests insert it at `place` of small_config(). `has_effect`: whether this
/// program uses the key.
struct Key {
  std::string place, key;
  bool has_effect = false;
};
const std::string kSolver = "\"solver\": {", kTop = "{\n", kOptimizer = "\"optimizer\": {",
                  kAdam = "\"adam_hparam\": {", kData = "\"type\": \"Data\", ", kDense = "\"dense\": {",
                  kSparse = "\"top\": \"deep_data\", ", kEmbedding = "\"top\": \"deep_emb\",",
                  kTable = "\"embedding_vec_size\": 5, ", kDropout = "\"rate\": 0.1, ";

TEST_F(Tolerance, KeysOfEveryVersionAreKnown) {
  const std::vector<Key> keys = {
      {kTop, R"("name": "my model")", true},
      {kTop, R"("all_reduce": {"algo": "Oneshot", "grouped": true})"},
      {kSolver, R"("device_layout": "NodeFirst")"},
      {kSolver, R"("all_reduce_algo": "Oneshot")"},
      {kSolver, R"("plan_file": "all2all_plan.json")"},
      {kSolver, R"("enable_overlap": true)"},
      {kSolver, R"("holistic_cuda_graph": true)"},
      {kSolver, R"("algorithm_search": false)", true},
      {kSolver, R"("cuda_graph": false)", true},
      {kSolver, R"("enable_tf32_compute": true)", true},
      {kSolver, R"("mixed_precision": 1024)", true},
      {kSolver, R"("input_key_type": "I64")", true},
      {kSolver, R"("batchsize_eval": 64)", true},
      {kSolver, R"("eval_batches": 10)", true},
      {kSolver, R"("max_eval_batches": 10)", true},
      {kSolver, R"("max_eval_samples": 1000)", true},
      {kSolver, R"("dense_model_file": "a.model")", true},
      {kSolver, R"("dense model_file": "a.model")", true},
      {kSolver, R"("model_file": "a.model")", true},
      {kSolver, R"("sparse_model_file": ["a.model", "b.model"])", true},
      {kSolver, R"("dense_opt_states_file": "")", true},
      {kSolver, R"("sparse_opt_states_file": [])", true},
      {kSolver, R"("use_cuda_graph": false)", true},
      {kSolver, R"("i64_input_key": true)", true},
      {kSolver, R"("use_mixed_precision": true, "scaler": 1024)", true},
      {kSolver, R"("use_mixed_precision": false)", true},
      {kSolver, R"("auc_threshold": 0.8)", true},
      {kSolver, R"("export_predictions_prefix": "out/")", true},
      {kOptimizer, R"("learning_rate": true)"},
      {kOptimizer, R"("global_update": true)", true},
      {kAdam, R"("warmup_steps": 10, "decay_start": 100, "decay_steps": 1000, "decay_power": 2.0, "end_lr": 0.0)",
       true},
      {kData, R"("format": "Norm")", true},
      {kData, R"("cache_eval_data": true)", true},
      {kData, R"("cache_eval_data": 20)", true},
      {kData, R"("num_samples": 1000, "eval_num_samples": 100)", true},
      {kData, R"("slot_size_array": [10, 20, 30, 40])", true},
      {kData, R"("float_label_dense": true)", true},
      {kData, R"("num_workers": 12)", true},
      {kData, R"("num_iterations_statistics": 20)"},
      {kData,
       R"("async_param": {"num_threads": 16, "num_batches_per_thread": 4, "io_block_size": 512000, "io_depth": 4, "io_alignment": 512})"},
      {kData, R"("async_param": {"num_threads": 16, "shuffle": true})", true},
      {kDense, R"("aligned": "Auto")"},
      {kSparse, R"("nnz_per_slot": [2, 2, 2])", true},
      {kSparse, R"("is_fixed_length": 1)", true},
      {kEmbedding, R"("plan_file": ["a.json", "b.json"])"},
      {kEmbedding, R"("plan_file1": "a.json")"},
      {kEmbedding, R"("optimizer": {"type": "Adam", "learning_rate": true,
                      "adam_hparam": {"alpha": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-7}})",
       true},
      {kTable, R"("load_factor": 0.75)"},
      {kTable, R"("vocabulary_size": 1000)", true},
      {kTable, R"("max_vocabulary_size_global": 1000)", true},
      {kTable, R"("workspace_size_per_gpu_in_mb": 10)", true},
      {kTable, R"("slot_size_array": [10, 20, 30])", true},
      {kTable, R"("max_num_frequent_categories": 1)"},
      {kTable, R"("max_num_infrequent_samples": -1)"},
      {kTable, R"("p_dup_max": 0.01)"},
      {kTable, R"("max_all_reduce_bandwidth": 1.3e11)"},
      {kTable, R"("max_all_to_all_bandwidth": 1.9e11)"},
      {kTable, R"("efficiency_bandwidth_ratio": 1.0)"},
      {kTable, R"("communication_type": "IB_NVLink")"},
      {kTable, R"("hybrid_embedding_type": "Distributed")"},
  };
  for (const Key& key : keys) {
    SCOPED_TRACE(key.key);
    std::string config =
        with_change(small_config(), key.place,
                    key.place + (key.place == kTop || key.place.ends_with("{") ? "" : " ") + key.key + ", ");
    passes(config);
    const std::string name = key.key.substr(0, key.key.find(':'));
    if (!key.has_effect) mentions(name + " is accepted and has no effect: ");
  }
}

TEST_F(Tolerance, KeysThatWouldTrainAnotherModelAreErrors) {
  const auto refuses_key = [&](const std::string& place, const std::string& key, const std::string& words) {
    const Outcome outcome = check(with_change(small_config(), place, place + key + ", "));
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << "no \"" << words << "\" in:\n" << outcome.err;
  };
  refuses_key("\"type\": \"Reshape\", ", R"("shape": [-1, 15])",
              "/layers/3/shape: \"shape\" is not supported: set the last dimension with \"leading_dim\"");
}

TEST_F(Tolerance, ARateOfItsOwnIsNoted) {
  const auto with_rate = [](const std::string& rate) {
    return with_change(small_config(), kEmbedding,
                       kEmbedding + R"( "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": )" + rate +
                           R"(, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},)");
  };
  const std::string note =
      "note: config.json /layers/2/optimizer: the rate of 'deep_emb' comes from the embedding's own optimizer "
      "section, scaled by the top-level schedule; \"compatibility\": [\"schedule_sets_embedding_rates\"] selects "
      "the top-level rate, which HugeCTR 2.2 to 3.1 used";
  passes(with_rate("0.123"));
  mentions(note);
  const std::string config = with_rate("0.123");
  passes(with_change(config, "\"seed\": 7", "\"seed\": 7, \"compatibility\": [\"schedule_sets_embedding_rates\"]"));
  EXPECT_EQ(err_.find("/layers/2/optimizer"), std::string::npos) << err_;
  passes(with_rate("0.01"));
  EXPECT_EQ(err_.find("/layers/2/optimizer"), std::string::npos) << "the top-level rate; " << err_;
}

TEST_F(Tolerance, AnOldEmbeddingMayBeCalledByItsNewName) {
  for (const std::string type : {"LocalizedSlotSparseEmbeddingOneHot", "HybridSparseEmbedding"})
    passes(with_change(small_config(), "\"type\": \"LocalizedSlotSparseEmbeddingHash\"", "\"type\": \"" + type + "\""));
}

TEST_F(Tolerance, NumbersOfOtherKinds) {
  passes(with_change(small_config(), "\"seed\": 7", "\"seed\": 18446744073709551615"));
  passes(with_change(small_config(), "\"snapshot\": 1000000", "\"snapshot\": 0"));
  passes(with_change(small_config(), "\"snapshot\": 1000000", "\"snapshot\": 1e6"));
  passes(with_change(small_config(), "\"gpu\": [0]", "\"gpu\": [[0, 1, 4], [0, 3]]"));
  passes(with_change(small_config(), "\"combiner\": 1", "\"combiner\": \"mean\""));
}

/// A model with the config sections of the 2.1 guide. Tests may replace each section.
struct Guide {
  std::string solver =
      R"("solver": {"lr_policy": "fixed", "display": 1000, "max_iter": 300000, "gpu": [0], "batchsize": 512, "snapshot": 10000000,
    "snapshot_prefix": "./", "eval_interval": 1000, "eval_batches": 60, "mixed_precision": 256, "dense model_file": "./dense_model.bin",
    "sparse_model_file": ["./sparse_model1.bin", "./sparse_model2.bin"]})";
  std::string optimizer =
      R"("optimizer": {"type": "Adam", "global_update": true, "adam_hparam": {"alpha": 0.005, "beta1": 0.9, "beta2": 0.999,
    "epsilon": 0.000001}})";
  std::string data =
      R"({"name": "data", "type": "Data", "source": "./file_list.txt", "eval_source": "./file_list_test.txt", "check": "Sum",
    "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 13},
    "sparse": [{"top": "data1", "type": "DistributedSlot", "max_feature_num_per_sample": 30, "slot_num": 26}]})";
  std::string embedding =
      R"({"name": "sparse_embedding1", "type": "LocalizedSlotSparseEmbeddingHash", "bottom": "data1", "top": "sparse_embedding1",
    "plan_file": "all2all_plan_bi_1.json",
    "sparse_embedding_hparam": {"vocabulary_size": 1737710, "load_factor": 0.75, "embedding_vec_size": 16, "combiner": 0},
    "optimizer": {"type": "Adam", "global_update": true, "adam_hparam": {"alpha": 0.005, "beta1": 0.9, "beta2": 0.999, "epsilon": 0.000001}}})";
  std::string reshape =
      R"({"name": "reshape1", "type": "Reshape", "bottom": "sparse_embedding1", "top": "reshape1", "leading_dim": 416})";
  std::string concat = R"({"name": "concat1", "type": "Concat", "bottom": ["reshape1", "dense"], "top": "concat1"})";
  std::string slice =
      R"({"name": "slice1", "type": "Slice", "bottom": "concat1", "ranges": [[0, 429], [0, 429]], "top": ["slice11", "slice12"]})";
  std::string elu = R"({"name": "elu1", "type": "ELU", "bottom": "fc1", "top": "elu1", "elu_param": {"alpha": 1.0}})";
  std::string fc =
      R"({"name": "fc8", "type": "InnerProduct", "bottom": "concat2", "top": "fc8", "fc_param": {"num_output": 1}})";
  std::string loss =
      R"({"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["fc8", "label"], "regularizer": "L2", "top": "loss"})";

  /// The solver lists two sparse model files, so the config has a second embedding that reads the same input.
  std::string config() const {
    const std::string second =
        R"({"type": "DistributedSlotSparseEmbeddingHash", "bottom": "data1", "top": "sparse_embedding2",
      "sparse_embedding_hparam": {"vocabulary_size": 1737710, "load_factor": 0.75, "embedding_vec_size": 1, "combiner": 0}},
      {"type": "Reshape", "bottom": "sparse_embedding2", "top": "reshape2", "leading_dim": 26})";
    const std::string fc1 =
        R"({"type": "InnerProduct", "bottom": "slice11", "top": "fc1", "fc_param": {"num_output": 64}})";
    const std::string concat2 = R"({"type": "Concat", "bottom": ["elu1", "slice12", "reshape2"], "top": "concat2"})";
    std::string text = "{" + solver + ",\n" + optimizer + ",\n\"layers\": [" + data;
    for (const std::string& layer : {embedding, second, reshape, concat, slice, fc1, elu, concat2, fc, loss})
      text += ",\n" + layer;
    return text + "]}";
  }
};

TEST_F(Tolerance, EverySectionOfTheGuideOfVersion21) {
  Guide guide;
  passes(guide.config());
  mentions("\"lambda\" is not given");
  for (const std::string type : {"MomentumSGD", "Nesterov"}) {
    const bool nesterov = type == "Nesterov";
    guide.optimizer = R"("optimizer": {"type": ")" + type + R"(", "global_update": )" + (nesterov ? "true" : "false") +
                      ", \"" + (nesterov ? "nesterov" : "momentum_sgd") +
                      R"(_hparam": {"learning_rate": 0.005, "momentum_factor": 0.0}})";
    passes(guide.config());
  }
}

}  // namespace
}  // namespace hctr::test
