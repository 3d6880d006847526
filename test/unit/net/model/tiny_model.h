// A model without embeddings, which runs directly on one batch.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/comm/self_comm.h"
#include "core/device/copy_bytes.h"
#include "net/model/replica.h"

namespace hctr::test {

/// A config with batches of 8 samples and 3 dense values. `layers`: JSON text of the layers.
inline Config config_of(const std::string& layers, Problems& problems, int label_dim = 1,
                        const std::string& solver = "") {
  const std::string text = R"({"solver": {"batchsize": 8, "max_iter": 1, "seed": 5)" + solver + R"(},
    "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 1}},
    "layers": [{"type": "Data", "source": "list.txt", "check": "None", "label": {"top": "label", "label_dim": )" +
                           std::to_string(label_dim) + R"(},
               "dense": {"top": "dense", "dense_dim": 3}, "sparse": []}, )" +
                           layers + "]}";
  return read_config(Json::parse(text, "test.json"), problems);
}

inline Config config_of(const std::string& layers, int label_dim = 1, const std::string& solver = "") {
  Problems problems;
  Config config = config_of(layers, problems, label_dim, solver);
  problems.throw_if_any("test.json");
  return config;
}

/// The graph of a valid config.
inline Graph wired_for_8(const Config& config) {
  Problems problems;
  Graph graph = wire(config, 8, problems);
  problems.throw_if_any("test.json");
  return graph;
}

/// Returns the problems of connecting the layers: "/layers/2/bottom: ...", one per line.
inline std::string wiring_errors(const std::string& layers, int label_dim = 1) {
  Problems problems;
  const Config config = config_of(layers, problems, label_dim);
  if (!problems.any_error()) wire(config, 8, problems);
  std::string text;
  for (const Problems::Entry& entry : problems.errors()) text += entry.pointer + ": " + entry.message + "\n";
  return text;
}

/// Writes a batch of 8 samples, and the step state, to a device.
inline void write_batch_of_8(StreamRef stream, Tensor label, Tensor dense, StepState* state) {
  std::vector<float> labels, values;
  for (int i = 0; i < 8; ++i) labels.push_back(static_cast<float>(i % 2));
  for (int i = 0; i < 24; ++i) values.push_back(static_cast<float>((i * 7) % 11) / 4 - 1);
  from_host(stream, label, labels);
  from_host(stream, dense, values);
  const StepState step{.step = 3, .valid_samples = 8, .global_samples = 8, .learning_rate = 1, .loss_scale = 1};
  copy_bytes(stream, state, &step, sizeof step);
  stream.synchronize();
}

class TinyModel {
 public:
  explicit TinyModel(Config config_, int label_dim = 1)
      : config(std::move(config_)),
        runtime(Device{}, {.threads = 2, .seed = 5}),
        model(config, runtime, comm, {8, 8, 1}),
        memory(Device{}, 8 * static_cast<size_t>(label_dim + 3) * sizeof(float)),
        label(memory.data(), TensorSpec(DType::f32, {8, label_dim}), Device{}),
        dense(memory.data() + static_cast<size_t>(8 * label_dim) * sizeof(float), TensorSpec(DType::f32, {8, 3}),
              Device{}),
        ctx(runtime, runtime.compute_stream(), &state) {
    std::vector<float> labels, values;
    for (int i = 0; i < 8 * label_dim; ++i) labels.push_back(i % 3 == 0 ? 1.0f : 0.0f);
    for (int i = 0; i < 24; ++i) values.push_back(static_cast<float>((i * 7) % 11) - 4);
    from_host(runtime.compute_stream(), label, labels);
    from_host(runtime.compute_stream(), dense, values);
  }

  void train() {
    model.prepare(ctx, nullptr, 0, batch());
    model.train_step(ctx, nullptr, 0, batch(), model.bind(Phase::train, batch()));
    ++state.step;
    ++state.updates;
  }
  void evaluate() { model.evaluate(ctx, batch(), model.bind(Phase::evaluate, batch())); }
  BatchTensors batch() { return {&state, label, dense, {}, {}}; }
  std::vector<float> prediction() const { return to_host<float>(runtime_stream(), model.prediction(Phase::evaluate)); }
  float loss(Phase phase) const { return to_host<float>(runtime_stream(), model.loss(phase))[0]; }
  StreamRef runtime_stream() const { return runtime.compute_stream(); }

  Config config;
  Runtime runtime;
  SelfComm comm;
  Replica model;
  Buffer memory;
  Tensor label, dense;
  StepState state{.valid_samples = 8, .global_samples = 8, .samples = 8, .learning_rate = 0.1f, .loss_scale = 1};
  Context ctx;
};

}  // namespace hctr::test
