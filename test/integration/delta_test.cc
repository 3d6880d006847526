// Model deltas: a full model and all later deltas together equal, byte for byte, the full model that training saves at
// the iteration of the last delta.
#include <gtest/gtest.h>

#include "every_table.h"

namespace hctr::test {
namespace {

/// Trains twice: with a full model every 5 iterations, and with deltas between the full models of iterations 5 and 20.
template <class Base>
class DeltasOf : public Base {
 protected:
  using Base::config_;
  using Base::folder_;

  void SetUp() override {
    Base::SetUp();
    config_ = with_change(config_, "\"eval_interval\": 10", "\"eval_interval\": 0");
  }
  Outcome train(const std::string& config, const std::string& gpu, const std::string& name, const std::string& saves,
                const std::vector<std::string>& options = {}) {
    const std::string with_saves =
        with_change(with_change(config, "\"snapshot\": 1000000", saves), "\"out/\"", cat("\"", name, "/\""));
    write_file(folder_ / (name + ".json"), with_change(with_saves, "\"gpu\": [0]", "\"gpu\": " + gpu));
    std::vector<std::string> arguments = {"--train", name + ".json", "--run-dir", name + "-run", "--device", "cpu"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program("huge_ctr", arguments, folder_.path());
  }
  Outcome apply(const std::string& dense, const std::vector<std::string>& deltas) {
    std::vector<std::string> arguments = {"deltas.json", dense, "--out", "new/"};
    for (const std::string& delta : deltas) arguments.insert(arguments.end(), {"--apply", delta});
    return run_program("table_inspect", arguments, folder_.path());
  }
  void clean() {
    for (const char* made : {"whole", "whole-run", "deltas", "deltas-run", "new"}) fs::remove_all(folder_ / made);
  }
  Json about(const std::string& delta) {
    EXPECT_EQ(run_program("table_inspect", {"deltas.json", delta, "--json", "delta.json"}, folder_.path()).exit_code,
              0);
    return Json::parse(read_file(folder_ / "delta.json"), "delta.json");
  }
  static int64_t number(const Json& json, const char* name) { return *json.find(name)->integer(); }
  /// The sum of the field `name` over all tables.
  int64_t sum(const Json& delta, const char* name) {
    int64_t all = 0;
    for (const Json& table : *delta.find("tables")->array()) all += number(table, name);
    return all;
  }

  void expect_equal_models(int iteration) {
    int compared = 0;
    const auto of_iteration = [&](const fs::path& file) {
      const std::string name = file.filename();
      return name.find(cat("_", iteration, ".model")) != name.npos;
    };
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "whole")) {
      const fs::path name = entry.path().lexically_relative(folder_ / "whole");
      if (!entry.is_regular_file() || !of_iteration(*name.begin())) continue;
      ++compared;
      ASSERT_TRUE(fs::exists(folder_ / "new" / name)) << name;
      EXPECT_TRUE(read_file(entry) == read_file(folder_ / "new" / name)) << name << " differs";
    }
    EXPECT_GE(compared, 3);
  }

  struct Case {
    std::string name, config, gpu = "[0]";
    bool removes = false, all_change = false;
    bool same_code = false;  // sanitizers skip this case, because another case runs the same code
  };
  void expect_exact(const Case& one) {
    if (kSanitized && one.same_code) return;
    SCOPED_TRACE(one.name + " on " + one.gpu);
    clean();
    ASSERT_EQ(train(one.config, one.gpu, "whole", "\"snapshot\": 5").exit_code, 0);
    const Outcome trained = train(one.config, one.gpu, "deltas", "\"snapshot_delta\": 5");
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const std::vector<std::string> deltas = {"deltas/_delta_10", "deltas/_delta_15", "deltas/_delta_20"};
    for (const size_t count : {1, 3}) {
      const Outcome applied = apply("deltas/_dense_5.model", {deltas.begin(), deltas.begin() + count});
      ASSERT_EQ(applied.exit_code, 0) << applied.err;
      expect_equal_models(static_cast<int>(5 + 5 * count));
    }
    const Json last = about(deltas.back());
    EXPECT_GT(sum(last, "changed"), 0);
    if (one.all_change)
      EXPECT_EQ(sum(last, "changed"), sum(last, "rows"));
    else
      EXPECT_LT(sum(last, "changed"), sum(last, "rows"));
    int64_t removed = 0;
    for (const std::string& delta : deltas) removed += sum(about(delta), "removed");
    EXPECT_EQ(removed > 0, one.removes);
  }
};

class Deltas : public DeltasOf<RanksTest> {
 protected:
  void SetUp() override {
    DeltasOf<RanksTest>::SetUp();
    config_ = with_change(optimizer(R"("type": "Adam", "update_type": "Local", "adam_hparam": {"learning_rate": 0.01,
                                       "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7})"),
                          "\"batchsize\": 128", "\"batchsize\": 16");
  }
  std::string optimizer(const std::string& object) const {
    std::string config = config_;
    const size_t begin = config.find("\"optimizer\":"), end = config.find("\"layers\":");
    return config.replace(begin, end - begin, "\"optimizer\": {" + object + "}, ");
  }
  /// The config with `fields` in the deep table and a limit of 100 rows.
  std::string full(const std::string& fields) const {
    return with_change(config_, R"("max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 5)",
                       cat(R"("max_vocabulary_size_per_gpu": 100, "embedding_vec_size": 5, )", fields));
  }
  std::string deep(const std::string& fields) const {
    return with_change(config_, R"("embedding_vec_size": 5)", R"("embedding_vec_size": 5, )" + fields);
  }
};
using DeltasOfEveryTable = DeltasOf<EveryTable>;

TEST_F(Deltas, MakeTheWholeModelWithEveryOptimizer) {
  for (const Rule& rule : kRules) {
    // sanitizers need one case per code path
    if (kSanitized && rule.name != "SGD" && rule.name != "Adam, lazy") continue;
    const bool global = rule.section.find("\"Global\"") != rule.section.npos,
               says = rule.section.find("update_type") != rule.section.npos;
    expect_exact({.name = rule.name,
                  .config = optimizer(says ? rule.section : rule.section + R"(, "update_type": "Local")"),
                  .all_change = global});
  }
}

TEST_F(Deltas, MakeTheWholeModelUnderEveryPolicy) {
  expect_exact({.name = "evict_lru", .config = full(R"("when_full": "evict_lru")"), .removes = true});
  expect_exact(
      {.name = "evict_lfu", .config = full(R"("when_full": "evict_lfu")"), .removes = true, .same_code = true});
  expect_exact({.name = "expire_after", .config = deep(R"("expire_after": 4)"), .removes = true});
  expect_exact({.name = "min_count", .config = deep(R"("min_count": 2)")});
  expect_exact({.name = "count_keys", .config = deep(R"("count_keys": true)")});
  expect_exact({.name = "ignore", .config = full(R"("when_full": "ignore")"), .same_code = true});
  expect_exact({.name = "rows of two bytes", .config = deep(R"("storage": "bf16")")});
  expect_exact({.name = "keys of all slots", .config = deep(R"("identity": "key")"), .same_code = true});
  expect_exact({.name = "v3", .config = with_change(config_, "\"seed\": 7", "\"seed\": 7, \"model_format\": \"v3\"")});
  // Checkpoint increments track changed rows separately from deltas.
  expect_exact({.name = "with checkpoints",
                .config = with_change(full(R"("when_full": "evict_lru")"), "\"seed\": 7",
                                      R"("seed": 7, "checkpoint": {"every": 3, "whole_every": 3, "folder": "ckpt"})"),
                .removes = true});
}

/// Memory has capacity for only a few more rows than a batch needs. Change marks are evicted to disk with their rows.
TEST_F(Deltas, HoldRowsThatAreOnADisk) {
  const auto on_disk = [&](const std::string& fields) {
    const std::string wide = with_change(config_, "\"embedding_vec_size\": 5", "\"embedding_vec_size\": 1024" + fields);
    return with_change(with_change(wide, "\"leading_dim\": 15", "\"leading_dim\": 3072"), "\"seed\": 7",
                       R"("seed": 7, "table_memory": {"host": "4MB", "disk": "rows"})");
  };
  const auto expect_moved = [&] {
    const Json summary = Json::read_file((folder_ / "deltas-run/summary.json").string());
    EXPECT_GT(*summary.find("tables")->find("deep_emb")->find("rows_from_disk")->integer(), 30);
  };
  expect_exact({.name = "a disk", .config = on_disk("")});
  expect_moved();
  expect_exact(
      {.name = "expire_after", .config = on_disk(R"(, "expire_after": 8)"), .removes = true, .same_code = true});
}

TEST_F(Deltas, AreTheSameOnSeveralRanks) {
  for (const std::string gpu : {"[0, 1]", "[0, 1, 2]"}) {
    if (kSanitized && gpu == "[0, 1]") continue;  // sanitizers need one case per code path
    expect_exact({.name = "planned", .config = config_, .gpu = gpu});
    expect_exact({.name = "evict_lru", .config = full(R"("when_full": "evict_lru")"), .gpu = gpu, .removes = true});
    expect_exact({.name = "hybrid",
                  .config = with_change(config_, R"("bottom": "deep_data", "top": "deep_emb",)",
                                        R"("bottom": "deep_data", "top": "deep_emb", "placement": "hybrid", )"),
                  .gpu = gpu});
  }
}

/// Large batches with few keys, so that in some tables every row changes.
TEST_F(DeltasOfEveryTable, MakeTheWholeModel) {
  for (const char* gpu : {"[0]", "[0, 1]"}) {
    clean();
    const std::string config = std::string(gpu) == "[0]" ? config_ : planned(config_, 2);
    ASSERT_EQ(train(config, gpu, "whole", "\"snapshot\": 5").exit_code, 0);
    const Outcome trained = train(config, gpu, "deltas", "\"snapshot_delta\": 5");
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    const Outcome applied =
        apply("deltas/_dense_5.model", {"deltas/_delta_10", "deltas/_delta_15", "deltas/_delta_20"});
    ASSERT_EQ(applied.exit_code, 0) << applied.err;
    expect_equal_models(20);
  }
}

TEST_F(Deltas, OfARunThatGoesOnBeginWithAWholeModel) {
  const std::string saves = R"("snapshot_delta": 5, "checkpoint": {"every": 7, "folder": "ckpt"})";
  const auto with_length = [&](int length) {
    return with_change(config_, "\"max_iter\": 20", cat("\"max_iter\": ", length));
  };
  ASSERT_EQ(train(with_length(30), "[0]", "whole", "\"snapshot\": 5").exit_code, 0);
  ASSERT_EQ(train(with_length(12), "[0]", "deltas", saves).exit_code, 0);
  fs::create_directories(folder_ / "deltas" / "_delta_13.part");  // left over from a killed run
  const Outcome went_on = train(with_length(30), "[0]", "deltas", saves, {"--resume", "latest"});
  ASSERT_EQ(went_on.exit_code, 0) << went_on.err;
  EXPECT_FALSE(fs::exists(folder_ / "deltas" / "_delta_13.part"));
  ASSERT_TRUE(fs::exists(folder_ / "deltas" / "_dense_15.model"));
  const Outcome applied = apply("deltas/_dense_15.model", {"deltas/_delta_20", "deltas/_delta_25"});
  ASSERT_EQ(applied.exit_code, 0) << applied.err;
  expect_equal_models(25);
}

TEST_F(Deltas, AreRefusedWhereTheyDoNotFit) {
  ASSERT_EQ(train(config_, "[0]", "deltas", "\"snapshot_delta\": 5").exit_code, 0);
  const auto refused = [&](const Outcome& outcome, const std::string& message, int code = 4) {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
  };
  refused(apply("deltas/_dense_5.model", {"deltas/_delta_15"}), "since iteration 10, but the model has iteration 5");
  refused(apply("deltas/_dense_5.model", {"deltas"}), "is not the folder of a delta", 5);
  refused(apply("deltas/_delta_10/_dense_10.model", {"deltas/_delta_15"}), "belongs to a delta");
  std::string start = with_change(config_, "\"seed\": 7",
                                  R"("seed": 7, "dense_model_file": "deltas/_delta_10/_dense_10.model",
         "sparse_model_file": ["deltas/_delta_10/0_sparse_10.model", "deltas/_delta_10/1_sparse_10.model"])");
  refused(train(start, "[0]", "start", "\"snapshot\": 0"), "has only the rows that changed since iteration 5");
  const fs::path rows = folder_ / "deltas" / "_delta_15" / "1_sparse_15.model";
  std::string bytes = read_file(rows);
  bytes[9] = static_cast<char>(bytes[9] ^ 1);
  write_file(rows, bytes);
  refused(apply("deltas/_dense_5.model", {"deltas/_delta_10", "deltas/_delta_15"}), "1_sparse_15.model");
  EXPECT_FALSE(fs::exists(folder_ / "new" / "_dense_15.model"));
}

}  // namespace
}  // namespace hctr::test
