// tools/python/hctr_model.py reads saved models: scores that NumPy computes from its arrays equal the scores of
// --predict.
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/paths.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

/// Python: reads the models of one run in every form, and computes the scores of eval.csv.
constexpr const char* kReaderCheck = R"(
import csv, json, os, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from hctr_model import ModelError, load

run = load("run")
assert run.iteration == 60 and run.summary["iterations"] == 60 and run.config["solver"]["max_iter"] == 60
assert set(run.metrics) == {"AUC", "AverageLoss"}
assert list(run.dense) == ["fc/weights", "fc/bias", "bn/gamma", "bn/beta", "out/weights", "out/bias"], list(run.dense)
assert run.dense["fc/weights"].shape == (11, 4) and run.dense["out/bias"].shape == (1,)
assert set(run.tables) == {"by_key", "by_slot"} and run.tables["by_key"].slots is None
assert sorted(set(run.tables["by_slot"].slots)) == [0, 1] and run.tables["by_slot"].dim == 4

forms = [load("out/"), load("out/", config="config.json"), load("out/@60", config="config.json"), load("ckpt"),
         load("ckpt/iteration_000060"), load("out/_dense_60.model", config="config.json")]
os.mkdir("stopped")  # as a signal leaves it: with a checkpoint
stopped = {"iterations": 60, "model_files": [], "checkpoint": "ckpt/iteration_000060"}
json.dump(stopped, open("stopped/summary.json", "w"))
forms.append(load("stopped"))
for other in forms:
    assert other.iteration == 60 and list(other.dense) == list(run.dense), other.source
    for name, array in run.dense.items():
        assert np.array_equal(array, other.dense[name]), (other.source, name)
    for name, table in run.tables.items():
        for slot in [None] if table.slots is None else [0, 1]:
            keys = table.keys if slot is None else table.keys[table.slots == slot]
            assert len(keys) and np.array_equal(table.vectors_of(keys, slot), other.tables[name].vectors_of(keys, slot))
            assert np.abs(table.vectors_of(keys, slot)).sum() > 0
        assert len(table) == len(other.tables[name]), (other.source, name)
assert not np.array_equal(load("out/@30", config="config.json").dense["fc/weights"], run.dense["fc/weights"])
for name, array in run.state.items():
    assert np.allclose(array, forms[3].state[name]), name
assert {"bn/mean", "bn/var"} <= set(run.state), run.state.keys()

# Scores by hand: embeddings, a fully connected layer, batch normalization with running statistics, ReLU, a logit.
by_key, by_slot = run.tables["by_key"], run.tables["by_slot"]
rows = list(csv.DictReader(open("eval.csv")))
both = np.stack([by_slot.vectors_of([int(r["user"]) for r in rows], 0),
                 by_slot.vectors_of([int(r["item"]) for r in rows], 1)], 1)
x = np.concatenate([by_key.vectors_of([int(r["user"]) for r in rows]), both.reshape(len(rows), -1),
                    np.array([[float(r["price"])] for r in rows])], 1)
h = x @ run.dense["fc/weights"] + run.dense["fc/bias"]
h = (h - run.state["bn/mean"]) / np.sqrt(run.state["bn/var"] + 1e-5) * run.dense["bn/gamma"] + run.dense["bn/beta"]
z = np.maximum(h, 0) @ run.dense["out/weights"] + run.dense["out/bias"]
scores = [float(r["score"]) for r in csv.DictReader(open("scores.csv"))]
difference = np.abs(1 / (1 + np.exp(-z[:, 0])) - scores).max()
assert len(scores) == 200 and difference < 1e-5, difference

for wrong, says in [("nothing", "there is no model 'nothing'"), ("out/@31", "there are [30, 60]")]:
    try:
        load(wrong)
        assert False
    except ModelError as error:
        assert says in str(error), error
print("read")
)";

std::string reader_config() {
  return R"({
  "solver": {"display": 0, "max_iter": 60, "batchsize": 100, "gpu": [0], "seed": 3, "snapshot": 30,
             "replace_models": true, "snapshot_prefix": "out/", "eval_metrics": ["AUC", "AverageLoss"], "checkpoint": {"every": 60}},
  "optimizer": {"type": "Adam", "adam_hparam": {"learning_rate": 0.02, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},
  "layers": [
    {"type": "Data", "format": "Csv", "source": "train.csv", "eval_source": "eval.csv",
     "csv": {"labels": ["click"], "dense": [{"columns": ["price"]}],
             "slots": [{"columns": ["user"], "keys": "number"}, {"columns": ["user", "item"], "keys": "number"}]},
     "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 1},
     "sparse": [{"top": "one", "slot_num": 1, "nnz_per_slot": 1}, {"top": "two", "slot_num": 2, "nnz_per_slot": 1}]},
    {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "one", "top": "by_key",
     "sparse_embedding_hparam": {"embedding_vec_size": 2, "combiner": "sum"}},
    {"type": "LocalizedSlotSparseEmbeddingHash", "bottom": "two", "top": "by_slot",
     "sparse_embedding_hparam": {"embedding_vec_size": 4, "combiner": "sum"}},
    {"type": "Reshape", "bottom": "by_key", "top": "flat1", "leading_dim": 2},
    {"type": "Reshape", "bottom": "by_slot", "top": "flat2", "leading_dim": 8},
    {"type": "Concat", "bottom": ["flat1", "flat2", "dense"], "top": "all"},
    {"type": "InnerProduct", "bottom": "all", "top": "fc", "fc_param": {"num_output": 4}},
    {"type": "BatchNorm", "bottom": "fc", "top": "bn", "bn_param": {"factor": 0.9, "eps": 1e-5}},
    {"type": "ReLU", "bottom": "bn", "top": "relu"},
    {"type": "InnerProduct", "bottom": "relu", "top": "out", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["out", "label"], "top": "loss"}
  ]
})";
}

std::string reader_rows(int count, int seed) {
  std::string text = "click,price,user,item\n";
  for (int r = 0; r < count; ++r) {
    const int mixed = (r * 7919 + seed * 104729) % 10007;
    text += std::to_string(mixed % 3 == 0) + ",0." + std::to_string(mixed % 97) + "," + std::to_string(mixed % 23) +
            "," + std::to_string(mixed % 11) + "\n";
  }
  return text;
}

TEST(PythonReader, ReadsModelsAndCheckpoints) {
  const char* given = std::getenv("HCTR_PYTHON");
  const std::string python = given ? given : "python3";
  const TemporaryFolder folder;
  if (run_program("/usr/bin/env", {python, "-c", "import numpy"}, folder.path()).exit_code != 0)
    GTEST_SKIP() << "no NumPy for " << python << "; HCTR_PYTHON names a Python that has it";
  write_file(folder / "config.json", reader_config());
  write_file(folder / "train.csv", reader_rows(1000, 1));
  write_file(folder / "eval.csv", reader_rows(200, 2));
  write_file(folder / "check.py", kReaderCheck);
  const Outcome trained =
      run_program("huge_ctr", {"--train", "config.json", "--run-dir", "run", "--device", "cpu"}, folder.path());
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const Outcome scored =
      run_program("huge_ctr", {"--predict", "config.json", "--model", "run", "--out", "scores.csv", "--device", "cpu"},
                  folder.path());
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const std::string tool = (source_dir() / "tools/python").string();
  const Outcome read =
      run_program("/usr/bin/env", {python, "check.py", tool}, folder.path(), {{"PYTHONDONTWRITEBYTECODE", "1"}});
  EXPECT_EQ(read.out, "read\n") << read.err;
  const Outcome printed = run_program("/usr/bin/env", {python, tool + "/hctr_model.py", "run"}, folder.path());
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  for (const char* part : {"iteration 60", "AUC: 0.", "fc/weights [11, 4]", "table by_slot: 34 rows of 4"})
    EXPECT_NE(printed.out.find(part), std::string::npos) << part << "\n" << printed.out;
  const Outcome missing = run_program("/usr/bin/env", {python, tool + "/hctr_model.py", "nothing"}, folder.path());
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("error: there is no model 'nothing'"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace hctr::test
