// The gradient of an embedding that the layer behind it searches for overflow: a step is skipped if it alone overflows.
#include <gtest/gtest.h>

#include "comm/self_comm.h"
#include "device/buffer.h"
#include "device/copy.h"
#include "model/model.h"
#include "support/devices.h"

namespace hctr::test {
namespace {

constexpr int64_t kBatch = 8, kDim = 8, kSlotsOfKeys = 2;

Config interaction_config() {
  Problems problems;
  Config config = read_config(Json::parse(R"({
    "solver": {"batchsize": 8, "max_iter": 1, "seed": 5, "mixed_precision": 1024},
    "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 0.001}},
    "layers": [
      {"type": "Data", "source": "list.txt", "check": "None", "label": {"top": "label", "label_dim": 1},
       "dense": {"top": "dense", "dense_dim": 8},
       "sparse": [{"top": "keys", "slot_num": 2, "max_feature_num_per_sample": 2, "max_nnz": 1}]},
      {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", "top": "vectors",
       "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 100, "embedding_vec_size": 8, "combiner": "sum"}},
      {"type": "Interaction", "bottom": ["dense", "vectors"], "top": "pairs"},
      {"type": "InnerProduct", "bottom": "pairs", "top": "logit", "fc_param": {"num_output": 1}},
      {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]})",
                                          "test.json"),
                              problems);
  problems.throw_if_any("test.json");
  return config;
}

/// Steps that are skipped of one whose dense values are all this number.
int64_t skipped_with(Device device, float dense_value) {
  const Config config = interaction_config();
  Runtime runtime(device, {.threads = 2, .seed = 5});
  SelfComm comm;
  Model model(config, runtime, comm, kBatch, kBatch, 1);
  const StreamRef stream = runtime.compute_stream();
  const auto uploaded = [&]<class T>(const std::vector<T>& values) {
    Buffer buffer(device, values.size() * sizeof(T));
    copy_bytes(stream, buffer.data(), values.data(), buffer.bytes());
    stream.synchronize();
    return buffer;
  };
  std::vector<float> labels;
  std::vector<int64_t> keys;
  std::vector<int32_t> offsets = {0};
  for (int i = 0; i < kBatch; ++i) labels.push_back(static_cast<float>(i % 2));
  for (int i = 0; i < kBatch * kSlotsOfKeys; ++i) {
    keys.push_back(i);
    offsets.push_back(i + 1);
  }
  const Buffer of_labels = uploaded(labels), of_keys = uploaded(keys), of_offsets = uploaded(offsets),
               of_dense = uploaded(std::vector<float>(static_cast<size_t>(kBatch * kDim), dense_value)),
               of_state = uploaded(std::vector<StepState>{
                   {.valid_samples = kBatch, .global_samples = kBatch, .learning_rate = 0.001f, .loss_scale = 1}});
  auto* const state = reinterpret_cast<StepState*>(of_state.data());
  const auto tensor = [&](const Buffer& buffer, DType dtype, Shape shape) {
    return Tensor(buffer.data(), TensorSpec(dtype, shape), device);
  };
  const BatchTensors batch{state,
                           tensor(of_labels, DType::f32, {kBatch, 1}),
                           tensor(of_dense, DType::f32, {kBatch, kDim}),
                           {tensor(of_keys, DType::i64, {kBatch * kSlotsOfKeys})},
                           {tensor(of_offsets, DType::i32, {kBatch * kSlotsOfKeys + 1})}};
  Context ctx(runtime, stream, state);
  model.reserve_rows(0);
  model.prepare(ctx, nullptr, 0, batch);
  model.train_step(ctx, nullptr, 0, batch, model.bind(Phase::train, batch));
  return model.loss_scale()->skipped;
}

TEST(OverflowSearch, OfTheLayerBehindAnEmbeddingSkipsTheStep) {
  for (const Device device : devices()) {
    EXPECT_EQ(skipped_with(device, 1), 0) << to_string(device);
    // The gradient of a logit is up to 128, of a vector as much times a weight and the dense value; those of weights
    // are f32.
    EXPECT_EQ(skipped_with(device, 20000), 1) << to_string(device);
  }
}

}  // namespace
}  // namespace hctr::test
