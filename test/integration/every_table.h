// A model with a table for every placement, combiner and number of keys, and every optimizer.
#pragma once

#include "ranks_fixture.h"
#include "support/joined.h"

namespace hctr::test {

struct Rule {
  std::string name, section;
  double tolerance;  // tolerance of weights and rows
};
inline const Rule kRules[] = {
    {"SGD", R"("type": "SGD", "sgd_hparam": {"learning_rate": 0.3})", 1e-6},
    {"MomentumSGD", R"("type": "MomentumSGD", "momentum_sgd_hparam": {"learning_rate": 0.05, "momentum_factor": 0.9})",
     1e-5},
    {"Nesterov", R"("type": "Nesterov", "nesterov_hparam": {"learning_rate": 0.05, "momentum_factor": 0.9})", 1e-5},
    {"AdaGrad", R"("type": "AdaGrad", "adagrad_hparam": {"learning_rate": 0.05, "initial_accu_value": 0.001})", 1e-5},
    {"RMSProp", R"("type": "RMSProp", "rmsprop_hparam": {"learning_rate": 0.005, "warmup_steps": 10})", 1e-5},
    {"Ftrl", R"("type": "Ftrl", "ftrl_hparam": {"learning_rate": 0.1, "beta": 0.1, "lambda1": 1e-5, "lambda2": 1e-5})",
     1e-5},
    {"Adam", R"("type": "Adam", "adam_hparam": {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7})",
     1e-5},
    {"Adam, global",
     R"("type": "Adam", "update_type": "Global",
        "adam_hparam": {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7})",
     1e-5},
    {"Adam, lazy",
     R"("type": "Adam", "update_type": "LazyGlobal",
        "adam_hparam": {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7})",
     1e-5},
    {"AdamW",
     R"("type": "AdamW",
        "adamw_hparam": {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7, "weight_decay": 0.1})",
     1e-5},
};

/// One table per placement and combiner; the table's name contains both.
class EveryTable : public RanksTest {
 protected:
  static constexpr int kRows = 40;  // keys per slot

  void SetUp() override {
    tables_.clear();
    std::string embeddings, reshapes, tops;
    for (const Input& input : kInputs)
      for (const char* where : {"localized", "distributed", "by_key", "cut", "hybrid", "data_parallel", "auto"})
        for (const char* combiner : {"sum", "mean"}) {
          const std::string name = cat(where, "_", input.name, "_", combiner);
          const bool by_key = name.starts_with("by_key"),
                     direct = name.starts_with("data_parallel") || name.starts_with("auto");
          std::string hparam = name.starts_with("hybrid") ? R"("num_iterations_statistics": 5, )" : "";
          for (int s = 0; direct && s < input.slots; ++s)
            hparam += cat(s > 0 ? ", " : R"("index": "direct", "slot_size_array": [)", kRows,
                          s + 1 == input.slots ? "], " : "");
          embeddings += cat(R"({"type": ")", by_key ? "Distributed" : "Localized",
                            R"(SlotSparseEmbeddingHash", "bottom": ")", input.name, R"(", "top": ")", name, "\", ",
                            by_key || name.starts_with("cut") ? "" : cat(R"("placement": ")", where, "\", "),
                            R"("sparse_embedding_hparam": {)", hparam, R"("embedding_vec_size": 8, "combiner": ")",
                            combiner, "\"}},\n");
          reshapes += cat(R"({"type": "Reshape", "bottom": ")", name, R"(", "top": "flat_)", name,
                          R"(", "leading_dim": )", 8 * input.slots, "},\n");
          tops += cat("\"flat_", name, "\", ");
          tables_.push_back({name, !by_key, 8});
        }
    std::string inputs;
    for (const Input& input : kInputs)
      inputs += cat(inputs.empty() ? "" : ", ", R"({"top": ")", input.name,
                    R"(", "type": "LocalizedSlot", "max_feature_num_per_sample": )", input.slots * input.most_keys,
                    R"(, "max_nnz": )", input.most_keys, R"(, "slot_num": )", input.slots, "}");
    config_ = cat(
        R"({"solver": {"lr_policy": "fixed", "display": 1, "max_iter": 20, "gpu": [0], "batchsize": 61,
      "snapshot": 1000000,
      "snapshot_prefix": "out/", "replace_models": true, "eval_interval": 10, "eval_metrics": ["AUC", "AverageLoss"], "seed": 7},
      "optimizer": {)",
        kRules[0].section, R"(}, "layers": [
      {"type": "Data", "source": "train.txt", "eval_source": "eval.txt", "check": "Sum",
       "label": {"top": "label", "label_dim": 1},
       "dense": {"top": "dense", "dense_dim": 4}, "sparse": [)",
        inputs, "]},\n", embeddings, reshapes, R"({"type": "Concat", "bottom": [)", tops, R"("dense"], "top": "all"},
      {"type": "InnerProduct", "bottom": "all", "top": "fc1", "fc_param": {"num_output": 16}},
      {"type": "ReLU", "bottom": "fc1", "top": "relu1"},
      {"type": "Dropout", "rate": 0.1, "bottom": "relu1", "top": "dropout1"},
      {"type": "InnerProduct", "bottom": "dropout1", "top": "fc2", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["fc2", "label"], "top": "loss"}]})");
    write_file(folder_ / "data.json", config_);
    make_data(folder_.path(), "data.json", 1300, 200, {"--vocabulary", std::to_string(kRows)});
  }

  /// A plan that places every table according to its name. In a table with automatic placement, slot 0 is replicated
  /// and slot 1 is sharded.
  std::string planned(const std::string& config, int ranks) {
    std::string plan;
    for (const Table& table : tables_) {
      const int slots = table.name.find("_one_") != std::string::npos ? kInputs[0].slots : kInputs[1].slots;
      const auto is = [&](const char* where) { return table.name.starts_with(where); };
      const int pieces = is("cut") ? 2 : 1;
      std::string owners;
      for (int s = 0; s < slots * pieces; ++s) {
        const bool spread = is("distributed") || is("by_key") || (is("auto") && s == 1) || (is("cut") && s == 2);
        owners += cat(s > 0 ? ", " : "", spread ? "\"all\"" : is("auto") && s == 0 ? "\"every rank\"" : cat(s % ranks));
      }
      plan += cat(plan.empty() ? "" : ",\n", R"({"name": ")", table.name, "\", ",
                  is("data_parallel") ? R"("owners": "every rank"})"
                                      : cat(R"("pieces": )", pieces, R"(, "owners": [)", owners, "]}"));
    }
    write_file(folder_ / "plan.json", cat(R"({"schema": 1, "ranks": )", ranks, R"(, "tables": [)", plan, "]}"));
    return with_change(config, "\"seed\": 7", R"("seed": 7, "placement_file": "plan.json")");
  }

  /// Trains with one process per entry of `hosts`, joined over TCP. Processes with the same name are on one host.
  Result on_hosts(const std::string& config, const std::vector<const char*>& hosts, const std::string& gpu) {
    for (const char* folder : {"hosts", "hosts-run"}) fs::remove_all(folder_ / folder);
    write_file(folder_ / "hosts.json",
               with_change(with_change(config, "\"gpu\": [0]", "\"gpu\": " + gpu), "\"out/\"", "\"hosts/\""));
    std::vector<JoinedProcess> processes;
    for (const char* host : hosts)
      processes.push_back({"huge_ctr",
                           {"--train", "hosts.json", "--run-dir", "hosts-run", "--device", device_},
                           {{"NCCL_HOSTID", host},
                            {"NCCL_P2P_DISABLE", "1"},
                            {"NCCL_SHM_DISABLE", "1"},
                            {"NCCL_SOCKET_IFNAME", "lo"}}});
    for (const Outcome& outcome : run_joined(processes, folder_.path())) EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return result("hosts");
  }

  struct Input {
    std::string name;
    int slots, most_keys;
  };
  inline static const Input kInputs[] = {{"one", 3, 1}, {"many", 2, 3}};
};

}  // namespace hctr::test
