// Layers for dense values beside a look-up of vectors, and a bottom layer that the interaction finishes: steps of a
// small DLRM are the same recorded or not, every time, and nearly those of the CPU.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/self_comm.h"
#include "device/buffer.h"
#include "device/copy.h"
#include "device/program.h"
#include "model/model.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

constexpr int64_t kDlrmBatch = 700, kDlrmDense = 13, kDlrmSlots = 5, kDlrmSteps = 6;

Config small_dlrm(const std::string& solver) {
  Problems problems;
  Config config = read_config(Json::parse(R"({
    "solver": {"batchsize": 700, "max_iter": 1, "seed": 5)" +
                                              solver + R"(},
    "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 0.1}},
    "layers": [
      {"type": "Data", "source": "list.txt", "check": "None", "label": {"top": "label", "label_dim": 1},
       "dense": {"top": "dense", "dense_dim": 13},
       "sparse": [{"top": "keys", "slot_num": 5, "max_feature_num_per_sample": 5, "max_nnz": 1}]},
      {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "vectors",
       "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 32, "combiner": "sum"}},
      {"type": "InnerProduct", "bottom": "dense", "top": "first", "fc_param": {"num_output": 136}},
      {"type": "ReLU", "bottom": "first", "top": "first_relu"},
      {"type": "InnerProduct", "bottom": "first_relu", "top": "second", "fc_param": {"num_output": 32}},
      {"type": "ReLU", "bottom": "second", "top": "second_relu"},
      {"type": "Interaction", "bottom": ["second_relu", "vectors"], "top": "pairs"},
      {"type": "InnerProduct", "bottom": "pairs", "top": "logit", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]})",
                                          "test.json"),
                              problems);
  problems.throw_if_any("test.json");
  return config;
}

/// The loss of each step.
std::vector<float> losses_of(Device device, const std::string& solver, bool record) {
  const Config config = small_dlrm(solver);
  Runtime runtime(device, {.threads = 2, .seed = 5});
  SelfComm comm;
  Model model(config, runtime, comm, kDlrmBatch, kDlrmBatch, 1);
  const StreamRef stream = runtime.compute_stream();
  const Buffer of_state(device, sizeof(StepState)), of_labels(device, kDlrmBatch * sizeof(float)),
      of_dense(device, kDlrmBatch * kDlrmDense * sizeof(float)),
      of_keys(device, kDlrmBatch * kDlrmSlots * sizeof(int64_t)),
      of_offsets(device, (kDlrmBatch * kDlrmSlots + 1) * sizeof(int32_t));
  const auto upload = [&]<class T>(const Buffer& to, const std::vector<T>& values) {
    copy_bytes(stream, to.data(), values.data(), values.size() * sizeof(T));
    stream.synchronize();
  };
  const auto tensor = [&](const Buffer& buffer, DType dtype, Shape shape) {
    return Tensor(buffer.data(), TensorSpec(dtype, shape), device);
  };
  auto* const state = reinterpret_cast<StepState*>(of_state.data());
  const BatchTensors batch{state,
                           tensor(of_labels, DType::f32, {kDlrmBatch, 1}),
                           tensor(of_dense, DType::f32, {kDlrmBatch, kDlrmDense}),
                           {tensor(of_keys, DType::i64, {kDlrmBatch * kDlrmSlots})},
                           {tensor(of_offsets, DType::i32, {kDlrmBatch * kDlrmSlots + 1})}};
  Context ctx(runtime, stream, state);
  const Network::Binding binding = model.bind(Phase::train, batch);
  std::vector<float> losses;
  std::optional<Program> program;
  for (int64_t t = 0; t < kDlrmSteps; ++t) {
    std::vector<float> labels, dense;
    std::vector<int64_t> keys;
    std::vector<int32_t> offsets = {0};
    for (int64_t i = 0; i < kDlrmBatch; ++i) {
      labels.push_back(static_cast<float>((i * 3 + t) % 5 == 0));
      for (int64_t d = 0; d < kDlrmDense; ++d)
        dense.push_back(static_cast<float>((i * 7 + d * 3 + t) % 11) / 11 - 0.3f);
    }
    for (int64_t s = 0; s < kDlrmSlots; ++s)
      for (int64_t i = 0; i < kDlrmBatch; ++i) {
        keys.push_back(100 * s + (i * i + t) % 37);
        offsets.push_back(static_cast<int32_t>(offsets.size()));
      }
    upload(of_labels, labels);
    upload(of_dense, dense);
    upload(of_keys, keys);
    upload(of_offsets, offsets);
    upload(of_state, std::vector<StepState>{{.step = t,
                                             .updates = t,
                                             .valid_samples = kDlrmBatch,
                                             .global_samples = kDlrmBatch,
                                             .samples = kDlrmBatch,
                                             .learning_rate = 0.1f,
                                             .loss_scale = 1}});
    model.reserve_rows(t);
    model.prepare(ctx, nullptr, 0, batch);
    if (t == 1 && record)  // once everything has its memory
      program.emplace(stream, true,
                      [&](Recording& recording) { model.train_step(ctx, &recording, 0, batch, binding); });
    if (program)
      program->run();
    else
      model.train_step(ctx, nullptr, 0, batch, binding);
    losses.push_back(to_host<float>(stream, model.loss(Phase::train))[0]);
  }
  return losses;
}

TEST(SharedLookup, OfASmallDlrmComputesTheSameStepsRecordedOrNot) {
  for (const char* solver : {"", R"(, "mixed_precision": "bf16")", R"(, "mixed_precision": 1024)"}) {
    SCOPED_TRACE(solver);
    const std::vector<float> on_cpu = losses_of(kCpu, solver, false);
    EXPECT_LT(on_cpu.back(), on_cpu.front());
    for (const Device device : devices()) {
      const std::vector<float> losses = losses_of(device, solver, false);
      EXPECT_EQ(losses, losses_of(device, solver, true)) << to_string(device);
      EXPECT_EQ(losses, losses_of(device, solver, true)) << to_string(device);
      for (size_t t = 0; t < losses.size(); ++t)
        EXPECT_NEAR(losses[t], on_cpu[t], *solver ? 0.02 * on_cpu[t] : 1e-4 * on_cpu[t]) << t;
    }
  }
}

}  // namespace
}  // namespace hctr::test
