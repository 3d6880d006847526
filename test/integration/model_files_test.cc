// Model files: loading restores the model and optimizer states on any number of ranks, and rejects files of different
// models.
#include "core/base/half.h"
#include "every_table.h"

namespace hctr::test {
namespace {

/// An epoch has twelve batches. A run that starts from the model of iteration 12 therefore reads the data of a second
/// epoch.
class ModelFiles : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    config_ = with_change(config_, "\"batchsize\": 128", "\"batchsize\": 250");
    config_ = with_change(config_, "\"max_iter\": 20", "\"max_iter\": 12");
    config_ = with_change(config_, "\"rate\": 0.1", "\"rate\": 0.0");  // dropout depends on the step number
    config_ = with_change(config_, "\"eval_interval\": 10", "\"eval_interval\": 0");
  }
  static std::string twice_as_long(const std::string& config) {
    return with_change(config, "\"max_iter\": 12", "\"max_iter\": 24");
  }
  static std::string with_solver(const std::string& config, const std::string& fields) {
    return with_change(config, "\"seed\": 7", "\"seed\": 7, " + fields);
  }
  static std::string saving_states(const std::string& config) {
    return with_solver(config, "\"snapshot_opt_states\": true");
  }
  /// Returns `config`, changed to start from the model that run `run` saved at iteration 12.
  std::string starting_from(const std::string& config, const std::string& run, bool states = true) const {
    const auto list = [&](const char* kind) {
      std::string files;
      for (size_t e = 0; e < tables_.size(); ++e)
        files += cat(e > 0 ? ", " : "", "\"", run, "/", e, "_", kind, "_12.model\"");
      return files;
    };
    return with_solver(
        config,
        cat("\"dense_model_file\": \"", run, "/_dense_12.model\", \"sparse_model_file\": [", list("sparse"), "]",
            !states ? ""
                    : cat(", \"dense_opt_states_file\": \"", run,
                          "/_opt_dense_12.model\", \"sparse_opt_states_file\": [", list("opt_sparse"), "]")));
  }
  static std::string with_rule(std::string config, const std::string& section) {
    const size_t begin = config.find("\"optimizer\":"), end = config.find("\"layers\":");
    return config.replace(begin, end - begin, "\"optimizer\": {" + section + "}, ");
  }
  void expect_refused(const std::string& config, const std::vector<std::string>& pieces, int code = 4) {
    const Outcome outcome = start(config, {"[0]"}, "refused");
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    for (const std::string& piece : pieces)
      EXPECT_NE(outcome.err.find(piece), std::string::npos) << "no \"" << piece << "\" in:\n" << outcome.err;
  }
  std::string file(const std::string& name) const { return read_file(folder_ / name); }
};

TEST_F(ModelFiles, WithOptimizerStatesTrainingGoesOnAsIfItHadNotStopped) {
  std::vector<Rule> rules(std::begin(kRules), std::end(kRules));
  rules.push_back(
      {"AdaGrad, row-wise", R"("type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.05, "row_wise": true})", 1e-5});
  for (const Rule& rule : rules) {
    // lazy Adam cannot resume exactly, because model files lack the step of each row's last update
    if (rule.name == "Adam, lazy") continue;
    if (kSanitized && rule.name != "SGD" && rule.name != "Adam" && rule.name != rules.back().name)
      continue;  // sanitizers need one case per code path
    SCOPED_TRACE(rule.name);
    // without RMSProp's warm-up, which the second run would repeat
    std::string config = with_rule(config_, rule.section);
    if (rule.name == "RMSProp") config = with_change(config, ", \"warmup_steps\": 10", "");
    Result whole = train(twice_as_long(config), {"[0]"}, "whole");
    train(saving_states(config), {"[0]"}, "first");
    const Result second = train(starting_from(config, "first"), {"[0]"}, "second");
    whole.losses.erase(whole.losses.begin(), whole.losses.begin() + 12);
    whole.metrics = second.metrics;  // metrics are not compared
    EXPECT_EQ(second.losses, whole.losses);
    EXPECT_EQ(second.dense, whole.dense);
    for (size_t e = 0; e < tables_.size(); ++e) EXPECT_EQ(second.rows[e], whole.rows[e]) << tables_[e].name;
    // for SGD and AdaGrad, the loaded states hardly change the first losses
    if (rule.name != "SGD" && rule.name != "AdaGrad") {
      const Result without = train(starting_from(config, "first", false), {"[0]"}, "without");
      EXPECT_NE(without.losses, whole.losses) << "what the states are for";
    }
  }
}

TEST_F(ModelFiles, OptimizerStatesAreLoadedOnOtherRanks) {
  Result whole = train(twice_as_long(config_), {"[0]"}, "whole");
  whole.losses.erase(whole.losses.begin(), whole.losses.begin() + 12);
  train(saving_states(config_), {"[0, 1]"}, "first");
  const Result second = train(starting_from(config_, "first"), {"[0, 1, 2]"}, "second");
  whole.metrics = second.metrics;
  expect_same(whole, second, 1e-4, 1e-5);
}

class EveryTableInFiles : public EveryTable {};

TEST_F(EveryTableInFiles, TakesItsStatesToOtherRanks) {
  std::string config = with_change(config_, "\"batchsize\": 61", "\"batchsize\": 65");  // an epoch has twenty batches
  config = with_change(with_change(config, "\"rate\": 0.1", "\"rate\": 0.0"), "\"eval_interval\": 10",
                       "\"eval_interval\": 0");
  const size_t begin = config.find("\"optimizer\":"), end = config.find("\"layers\":");
  config.replace(begin, end - begin, cat("\"optimizer\": {", kRules[3].section, "}, "));
  Result whole = train(with_change(config, "\"max_iter\": 20", "\"max_iter\": 40"), {"[0]"}, "whole");
  whole.losses.erase(whole.losses.begin(), whole.losses.begin() + 20);
  train(planned(with_change(config, "\"seed\": 7", "\"seed\": 7, \"snapshot_opt_states\": true"), 3), {"[0, 1, 2]"},
        "first");
  std::string rows, states;
  for (size_t e = 0; e < tables_.size(); ++e) {
    rows += cat(e > 0 ? ", " : "", "\"first/", e, "_sparse_20.model\"");
    states += cat(e > 0 ? ", " : "", "\"first/", e, "_opt_sparse_20.model\"");
  }
  const std::string from =
      with_change(config, "\"seed\": 7",
                  cat("\"seed\": 7, \"dense_model_file\": \"first/_dense_20.model\", \"dense_opt_states_file\": "
                      "\"first/_opt_dense_20.model\", \"sparse_model_file\": [",
                      rows, "], \"sparse_opt_states_file\": [", states, "]"));
  const Result second = train(planned(from, 2), {"[0, 1]"}, "second");
  whole.metrics = second.metrics;
  expect_same(whole, second, 1e-4, 1e-5);
}

TEST_F(ModelFiles, StatesOfAnotherModelOrOrderAreRefused) {
  train(saving_states(config_), {"[0]"}, "first");
  // Without the manifest, files are accepted by their sizes and row order, as if another program had written them.
  fs::remove(folder_ / "first" / "_model_12.json");
  const std::string from = starting_from(config_, "first");
  const Outcome loaded = start(from, {"[0]"}, "second");
  EXPECT_EQ(loaded.exit_code, 0) << loaded.err;
  for (const char* piece : {"no manifest exists next to 'first/_opt_dense_12.model', ",
                            "Adam's t continues from 12, the number in the file name"})
    EXPECT_NE(loaded.err.find(piece), std::string::npos) << loaded.err;

  expect_refused(with_rule(from, kRules[1].section), {"first/_opt_dense_12.model", "1 state of MomentumSGD for "});
  const std::string states = file("first/1_opt_sparse_12.model"), rows = file("first/1_sparse_12.model");
  write_file(folder_ / "first/1_opt_sparse_12.model", states.substr(0, states.size() - 4));
  expect_refused(from, {"first/1_opt_sparse_12.model", "2 states of 5 numbers", "is undocumented"});
  std::string bad = states;
  const float nan = std::nanf("");
  std::memcpy(bad.data() + 40, &nan, sizeof nan);
  write_file(folder_ / "first/1_opt_sparse_12.model", bad);
  expect_refused(from, {"first/1_opt_sparse_12.model': number 10 is nan"});
  write_file(folder_ / "first/1_opt_sparse_12.model", states);
  const size_t row = 8 + 8 + 5 * sizeof(float);
  write_file(folder_ / "first/1_sparse_12.model", rows.substr(row, row) + rows.substr(0, row) + rows.substr(2 * row));
  expect_refused(from, {"the rows of 'first/1_sparse_12.model' are not sorted by slot and key (row 1)"});
  EXPECT_EQ(start(starting_from(config_, "first", false), {"[0]"}, "without").exit_code, 0)
      << "any order without states";
}

TEST_F(ModelFiles, StatesOfTwoBytesAreRead) {
  train(saving_states(with_rule(config_, kRules[1].section)), {"[0]"}, "first");
  fs::remove(folder_ / "first" / "_model_12.json");
  for (const char* name : {"_opt_dense_12.model", "0_opt_sparse_12.model", "1_opt_sparse_12.model"}) {
    const std::string wide = file(cat("first/", name));
    std::string narrow;
    for (size_t at = 0; at < wide.size(); at += sizeof(float)) {
      float value;
      std::memcpy(&value, wide.data() + at, sizeof value);
      const Half half(value);
      narrow.append(reinterpret_cast<const char*>(&half), sizeof half);
    }
    write_file(folder_ / "first" / name, narrow);
  }
  Result whole = train(twice_as_long(with_rule(config_, kRules[1].section)), {"[0]"}, "whole");
  const Result second = train(starting_from(with_rule(config_, kRules[1].section), "first"), {"[0]"}, "second");
  EXPECT_LT(distance_of(second.dense, whole.dense), 1e-3);
}

TEST_F(ModelFiles, FoldersOfLaterVersionsAreWrittenReadAndConverted) {
  train(saving_states(config_), {"[0]"}, "first");
  train(with_solver(saving_states(config_), "\"model_format\": \"v3\""), {"[0, 1]"}, "folders");
  train(saving_states(config_), {"[0, 1]"}, "files");
  const auto convert = [&](const std::vector<std::string>& arguments) {
    const Outcome done = run_program("model_convert", arguments, folder_.path());
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out;
  };
  EXPECT_EQ(convert({"files.json", "files/_dense_12.model", "--to", "v3", "--out", "there/"})
                .find("there/_dense_12.model and 2 tables of "),
            0u);
  convert({"files.json", "there/_dense_12.model", "--to", "v2", "--out", "back/", "--key-bytes", "8"});
  const std::vector<std::string> same = {"_dense_12.model", "_dense_12.model.layout.json", "_opt_dense_12.model",
                                         "0_opt_sparse_12.model", "1_opt_sparse_12.model"};
  for (const std::string& name : same) {
    EXPECT_EQ(file("there/" + name), file("files/" + name)) << name;
    EXPECT_EQ(file("folders/" + name), file("files/" + name)) << name;
  }
  for (const char* name : {"0_sparse_12.model/key", "0_sparse_12.model/emb_vector", "1_sparse_12.model/key",
                           "1_sparse_12.model/slot_id", "1_sparse_12.model/emb_vector"}) {
    EXPECT_FALSE(file(cat("folders/", name)).empty()) << name;
    EXPECT_EQ(file(cat("there/", name)), file(cat("folders/", name))) << name;
    EXPECT_EQ(file(cat("folders-run/final_", name)), file(cat("folders/", name))) << name;
  }
  EXPECT_FALSE(fs::exists(folder_ / "folders" / "0_sparse_12.model" / "slot_id")) << "rows belong to keys alone";
  for (const char* name : {"0_sparse_12.model", "1_sparse_12.model"})
    EXPECT_EQ(file(cat("back/", name)), file(cat("files/", name))) << name;
  // The manifest of a converted model states its origin.
  for (const char* field : {"run", "iteration", "updates", "data"})
    EXPECT_EQ(Json::read_file(folder_ / "back" / "_model_12.json").find(field)->text(),
              Json::read_file(folder_ / "files" / "_model_12.json").find(field)->text());

  const Result from_files = train(starting_from(config_, "files"), {"[0]"}, "second");
  for (const char* run : {"folders", "there", "back"})
    EXPECT_EQ(train(starting_from(config_, run), {"[0]"}, "second").losses, from_files.losses) << run;
  std::string vectors = file("folders/1_sparse_12.model/emb_vector");
  vectors[5] ^= 1;
  write_file(folder_ / "folders/1_sparse_12.model/emb_vector", vectors);
  expect_refused(starting_from(config_, "folders"), {"'folders/1_sparse_12.model/emb_vector' is damaged"});

  // A model without a manifest, whose file names come from the config.
  fs::copy_file(folder_ / "files/_dense_12.model", folder_ / "dense.bin");
  fs::copy_file(folder_ / "files/0_sparse_12.model", folder_ / "wide.bin");
  fs::copy_file(folder_ / "files/1_sparse_12.model", folder_ / "deep.bin");
  write_file(folder_ / "named.json",
             with_solver(config_, R"("dense_model_file": "dense.bin", "sparse_model_file": ["wide.bin", "deep.bin"])"));
  convert({"named.json", "--to", "v3", "--out", "named/"});
  EXPECT_EQ(file("named/1_sparse_0.model/emb_vector"), file("there/1_sparse_12.model/emb_vector"));
  const Outcome wrong =
      run_program("model_convert", {"named.json", "deep.bin", "--to", "v3", "--out", "x"}, folder_.path());
  EXPECT_EQ(wrong.exit_code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("'deep.bin' is not named"), std::string::npos) << wrong.err;
}

TEST_F(ModelFiles, FilesThatDoNotBelongTogetherAreRefused) {
  train(saving_states(config_), {"[0]"}, "first");
  train(with_change(saving_states(config_), "\"seed\": 7", "\"seed\": 8"), {"[0]"}, "other");
  const std::string from = starting_from(config_, "first", false);
  expect_refused(with_change(from, "first/1_sparse", "other/1_sparse"),
                 {"'first/_dense_12.model' is of iteration 12 of run ", "'other/1_sparse_12.model' is of iteration 12",
                  "must belong to one model"});
  expect_refused(with_change(with_change(with_change(from, "first/0_sparse", "first/x_sparse"), "first/1_sparse",
                                         "first/0_sparse"),
                             "first/x_sparse", "first/1_sparse"),
                 {"'first/1_sparse_12.model' holds table 'deep_emb'", "the config assigns the file to 'wide_emb'"});
  // Replaces a file with the file of the same name from another run.
  fs::copy_file(folder_ / "other" / "0_sparse_12.model", folder_ / "first" / "0_sparse_12.model",
                fs::copy_options::overwrite_existing);
  expect_refused(from,
                 {"'first/0_sparse_12.model' is damaged", "'first/_model_12.json'", "or belongs to another model"});
  fs::remove(folder_ / "first" / "_dense_12.model.layout.json");
  expect_refused(from, {"'first/_dense_12.model.layout.json'"}, 5);
  // The manifest describes the run: name, config, data and updates.
  const Json manifest = Json::read_file(folder_ / "other" / "_model_12.json");
  std::istringstream lines(file("other-run/metrics.jsonl"));
  std::string first_line;
  std::getline(lines, first_line);
  EXPECT_EQ(*manifest.find("run")->string(), *Json::parse(first_line, "line").find("run")->string());
  EXPECT_EQ(*manifest.find("config")->find("solver")->find("seed")->integer(), 8);
  EXPECT_GT(*manifest.find("data")->find("bytes")->integer(), 0);
  EXPECT_EQ(*manifest.find("updates")->integer(), 12);
  // The run folder contains the complete model under other file names.
  const std::string run = "other-run/final_";
  EXPECT_EQ(
      start(with_solver(config_, cat("\"dense_model_file\": \"", run, "_dense_12.model\", \"sparse_model_file\": [\"",
                                     run, "0_sparse_12.model\", \"", run, "1_sparse_12.model\"]")),
            {"[0, 1]"}, "again")
          .exit_code,
      0);
}

}  // namespace
}  // namespace hctr::test
