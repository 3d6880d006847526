// A small model with dense values and a table, and one batch, on any device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "net/fusion/fuse_layers.h"
#include "net/model/replica.h"

namespace hctr::test {

struct SmallOptions {
  int32_t batch = 8;  ///< samples per rank
  int32_t ranks = 1;
  int64_t dense = 8;           ///< dense values per sample
  int64_t slots = 2, dim = 8;  ///< `slots`: slots, each with one key per sample; `dim`: vector size
  float learning_rate = 0.001f;
};

/// `layers`: layers that compute "pairs" [batch, any] from "dense" [batch, dense] and "vectors" [batch, slots, dim],
/// each ending with a comma. The logit and its loss follow. `solver`: further fields of the solver, starting with a
/// comma.
inline Config small_config(const SmallOptions& o, const std::string& layers, const std::string& solver = "") {
  std::string gpus = "0";
  for (int32_t rank = 1; rank < o.ranks; ++rank) gpus += cat(", ", rank);
  const std::string text = cat(R"({"solver": {"batchsize": )", o.ranks * o.batch,
                               R"(, "max_iter": 1, "seed": 5, "gpu": [)", gpus, "]", solver, R"(},
    "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": )",
                               o.learning_rate, R"(}},
    "layers": [
      {"type": "Data", "source": "list.txt", "check": "None", "label": {"top": "label", "label_dim": 1},
       "dense": {"top": "dense", "dense_dim": )",
                               o.dense, R"(},
       "sparse": [{"top": "keys", "max_nnz": 1, "slot_num": )",
                               o.slots, R"(, "max_feature_num_per_sample": )", o.slots, R"(}]},
      {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "vectors",
       "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 1000, "combiner": "sum", "embedding_vec_size": )",
                               o.dim, "}},\n", layers, R"(
      {"type": "InnerProduct", "bottom": "pairs", "top": "logit", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]})");
  Problems problems;
  Config config = read_config(Json::parse(text, "test.json"), problems);
  problems.throw_if_any("test.json");
  return config;
}

/// The fused graph of a config for batches of 8 samples.
inline Graph fused_graph(const Config& config) {
  Problems problems;
  Graph graph = wire(config, 8, problems);
  problems.throw_if_any("test.json");
  fuse_layers(graph);
  return graph;
}

/// The model of one rank, and its batch buffer.
class SmallModel {
 public:
  /// `config` and `comm` must outlive the model.
  SmallModel(const SmallOptions& o, const Config& config, Device device, Communicator& comm)
      : options(o),
        runtime(device, {.threads = 2, .seed = 5, .tf32 = config.solver.enable_tf32_compute}),
        model(config, runtime, comm, {o.batch, o.batch, 1}),
        batch{reinterpret_cast<StepState*>(tensor(DType::u32, {sizeof(StepState) / 4}).bytes()),
              tensor(DType::f32, {o.batch, 1}),
              tensor(DType::f32, {o.batch, o.dense}),
              {tensor(DType::i64, {o.batch * o.slots})},
              {tensor(DType::i32, {o.batch * o.slots + 1})}},
        ctx(runtime, runtime.compute_stream(), batch.state),
        binding(model.bind(Phase::train, batch)) {}

  /// Writes the batch of a step. No queued work may still read the previous batch. `i`: index of a sample of this rank.
  void set_batch(int64_t step, const std::function<float(int64_t i)>& label,
                 const std::function<float(int64_t i, int64_t column)>& dense,
                 const std::function<int64_t(int64_t i, int64_t slot)>& key) {
    std::vector<float> labels, values;
    std::vector<int64_t> keys;
    std::vector<int32_t> offsets = {0};
    for (int64_t i = 0; i < options.batch; ++i) {
      labels.push_back(label(i));
      for (int64_t d = 0; d < options.dense; ++d) values.push_back(dense(i, d));
    }
    for (int64_t s = 0; s < options.slots; ++s)
      for (int64_t i = 0; i < options.batch; ++i) {
        keys.push_back(key(i, s));
        offsets.push_back(static_cast<int32_t>(keys.size()));
      }
    const StepState state{.step = step,
                          .updates = step,
                          .valid_samples = options.batch,
                          .global_samples = options.ranks * options.batch,
                          .samples = options.batch,
                          .learning_rate = options.learning_rate,
                          .loss_scale = 1};
    from_host(ctx.stream(), batch.label, labels);
    from_host(ctx.stream(), *batch.dense, values);
    from_host(ctx.stream(), batch.keys[0], keys);
    from_host(ctx.stream(), batch.offsets[0], offsets);
    copy_bytes(ctx.stream(), batch.state, &state, sizeof state);
    ctx.stream().synchronize();
  }
  float loss() const { return to_host<float>(runtime.compute_stream(), model.loss(Phase::train))[0]; }

  const SmallOptions options;
  Runtime runtime;
  Replica model;
  std::vector<Buffer> memory;
  const BatchTensors batch;
  Context ctx;
  const Replica::Binding binding;

 private:
  Tensor tensor(DType dtype, Shape shape) {
    const TensorSpec spec(dtype, shape);
    return Tensor(memory.emplace_back(runtime.device(), spec.bytes()).data(), spec, runtime.device());
  }
};

}  // namespace hctr::test
