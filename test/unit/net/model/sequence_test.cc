// Sequence models: unpooled keys, their lengths, and the layers that use both, forward and backward.
#include <gtest/gtest.h>

#include <cstring>

#include "core/base/files.h"
#include "core/comm/self_comm.h"
#include "core/device/copy_bytes.h"
#include "net/model/replica.h"
#include "support/devices.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

constexpr int64_t kSamples = 6;

/// A model with one input: a history of up to 4 keys, and an item of one key. `embedding`: hparam and tops of the
/// embedding. `layers`: layers that compute "logits".
Config sequence_config(const std::string& embedding, const std::string& layers, Problems& problems,
                       const std::string& type = "", int keep = 4) {
  const std::string precision = type.empty() ? "" : R"(, "mixed_precision": ")" + type + "\"";
  const std::string text = R"({"solver": {"batchsize": 6, "max_iter": 1, "seed": 5)" + precision + R"(},
    "optimizer": {"type": "SGD", "sgd_hparam": {"learning_rate": 1}},
    "layers": [{"type": "Data", "source": "list.txt", "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 0},
               "sparse": [{"top": "keys", "slot_num": 2, "nnz_per_slot": [300, 1], "keep_last": )" +
                           std::to_string(keep) + R"(}]},
      {"type": "DistributedSlotSparseEmbeddingHash", "bottom": "keys", )" +
                           embedding + "}, " + layers + R"(,
      {"type": "BinaryCrossEntropyLoss", "bottom": ["logits", "label"], "top": "loss"}]})";
  return read_config(Json::parse(text, "test.json"), problems);
}

std::string wiring_errors(const std::string& embedding, const std::string& layers, int64_t samples = kSamples,
                          const std::string& type = "", int keep = 4) {
  Problems problems;
  const Config config = sequence_config(embedding, layers, problems, type, keep);
  if (!problems.any_error()) wire(config, samples, problems);
  std::string text;
  for (const Problems::Entry& entry : problems.errors()) text += entry.pointer + ": " + entry.message + "\n";
  return text;
}

/// A model with one batch: histories of 4, 1, 0, 2, 3 and 2 keys. Keys repeat, and items also occur in histories.
class SequenceModel {
 public:
  SequenceModel(Device device, const std::string& embedding, const std::string& layers, const std::string& type = "")
      : config_(right(embedding, layers, type)),
        runtime_(device, {.threads = 2, .seed = 5}),
        model_(config_, runtime_, comm_, {kSamples, kSamples, 1}),
        label_(upload(TensorSpec(DType::f32, {kSamples, 1}), std::vector<float>{1, 0, 1, 1, 0, 0})),
        keys_(upload(TensorSpec(DType::i64, {30}), keys())),
        offsets_(
            upload(TensorSpec(DType::i32, {13}), std::vector<int32_t>{0, 4, 5, 5, 7, 10, 12, 13, 14, 15, 16, 17, 18})),
        state_(upload(TensorSpec(DType::u32, {sizeof(StepState) / 4}), words_of_state())) {}

  void train() {
    Context ctx(runtime_, runtime_.compute_stream(), state());
    model_.reserve_rows(0);
    model_.prepare(ctx, nullptr, 0, batch());
    model_.train_step(ctx, nullptr, 0, batch(), model_.bind(Phase::train, batch()));
  }
  std::vector<float> predictions() {
    Context ctx(runtime_, runtime_.compute_stream(), state());
    model_.evaluate(ctx, batch(), model_.bind(Phase::evaluate, batch()));
    return to_host<float>(runtime_.compute_stream(), model_.prediction(Phase::evaluate));
  }
  /// Returns the rows of the table with their keys, as in its model file.
  std::string saved_table() {
    const TemporaryFolder folder;
    model_.save(folder.path().string() + "/", 1);
    return read_text(folder / "0_sparse_1.model", "model");
  }

 private:
  static Config right(const std::string& embedding, const std::string& layers, const std::string& type) {
    Problems problems;
    Config config = sequence_config(embedding, layers, problems, type);
    problems.throw_if_any("test.json");
    return config;
  }
  static std::vector<int64_t> keys() {
    std::vector<int64_t> keys = {3, 5, 3, 9, 5, 7, 7, 1, 2, 3, 9, 8, /* items */ 3, 5, 7, 7, 8, 1};
    keys.resize(30, -1);
    return keys;
  }
  static std::vector<uint32_t> words_of_state() {
    const StepState state{.step = 0,
                          .first_sample = 0,
                          .valid_samples = kSamples,
                          .global_samples = kSamples,
                          .samples = kSamples,
                          .learning_rate = 1,
                          .loss_scale = 1};
    std::vector<uint32_t> words(sizeof state / 4);
    std::memcpy(words.data(), &state, sizeof state);
    return words;
  }
  template <class T>
  Tensor upload(const TensorSpec& spec, const std::vector<T>& values) {
    const Tensor tensor(memory_.emplace_back(runtime_.device(), spec.bytes()).data(), spec, runtime_.device());
    from_host(runtime_.compute_stream(), tensor, values);
    return tensor;
  }
  StepState* state() const { return reinterpret_cast<StepState*>(state_.bytes()); }
  BatchTensors batch() const { return {state(), label_, {}, {keys_}, {offsets_}}; }

  Config config_;
  Runtime runtime_;
  SelfComm comm_;
  Replica model_;
  std::vector<Buffer> memory_;
  Tensor label_, keys_, offsets_, state_;
};

const std::string kApart =
    R"("top": ["places", "lengths"], "sparse_embedding_hparam": {"embedding_vec_size": 3, "combiner": "none"})";
const std::string kMean = R"("top": "slots", "sparse_embedding_hparam": {"embedding_vec_size": 3, "combiner": "mean"})";

/// Layers for the item and for attention. All scores are equal, so attention computes the mean of the history.
const std::string kEvenAttention = R"(
  {"type": "Slice", "bottom": "places", "top": ["history", "item"], "ranges": [[0, 4], [4, 5]]},
  {"type": "Slice", "bottom": "lengths", "top": "length", "ranges": [[0, 1]]},
  {"type": "SequenceMask", "bottom": "length", "top": "mask", "max_sequence_len_from": 1, "max_sequence_len_to": 4},
  {"type": "ReduceSum", "bottom": "history", "top": "sums", "axis": 2},
  {"type": "Reshape", "bottom": "sums", "top": "scores", "time_step": 1, "leading_dim": 4},
  {"type": "Sub", "bottom": ["scores", "scores"], "top": "alike"},
  {"type": "Softmax", "bottom": ["alike", "mask"], "top": "shares"},
  {"type": "MatrixMultiply", "bottom": ["shares", "history"], "top": "mean"},
  {"type": "Concat", "bottom": ["mean", "item"], "top": "both"},
  {"type": "Reshape", "bottom": "both", "top": "flat"},
  {"type": "InnerProduct", "bottom": "flat", "top": "logits", "fc_param": {"num_output": 1}})";
const std::string kPooled = R"(
  {"type": "Reshape", "bottom": "slots", "top": "flat"},
  {"type": "InnerProduct", "bottom": "flat", "top": "logits", "fc_param": {"num_output": 1}})";

/// Renames the first top, because the table is named after it and initial values depend on the name.
std::string named_alike(std::string text) {
  for (size_t at; (at = text.find("\"slots\"")) != std::string::npos;) text.replace(at, 7, "\"places\"");
  return text;
}

TEST(SequenceModels, AttentionToAllAlikeIsTheMeanOfTheHistoryInEveryStep) {
  for (const Device device : devices()) {
    SequenceModel apart(device, kApart, kEvenAttention), mean(device, named_alike(kMean), named_alike(kPooled));
    for (int step = 0; step < 5; ++step) {
      apart.train();
      mean.train();
      const std::vector<float> a = apart.predictions(), b = mean.predictions();
      for (size_t i = 0; i < a.size(); ++i)
        EXPECT_NEAR(a[i], b[i], 2e-6) << to_string(device) << ", step " << step << ", sample " << i;
    }
  }
}

TEST(SequenceModels, TheSlotsOfADistributedEmbeddingShareTheirRows) {
  // The model reads the item minus the first key of the history. In samples 0, 1 and 3 both are the same key, so the
  // difference is 0, regardless of training.
  for (const Device device : devices()) {
    SequenceModel model(device, kApart, R"(
      {"type": "Slice", "bottom": "places", "top": ["history", "item"], "ranges": [[0, 1], [4, 5]]},
      {"type": "Sub", "bottom": ["item", "history"], "top": "difference"},
      {"type": "Reshape", "bottom": "difference", "top": "flat"},
      {"type": "InnerProduct", "bottom": "flat", "top": "logits", "fc_param": {"num_output": 1}})");
    model.train();
    const std::vector<float> p = model.predictions();
    EXPECT_EQ(p[0], p[1]);
    EXPECT_EQ(p[0], p[3]);
    EXPECT_NE(p[0], p[4]);
  }
}

TEST(SequenceModels, LearnInTwoBytesAsInFour) {
  for (const Device device : devices())
    for (const char* type : {"fp16", "bf16"}) {
      SequenceModel wide(device, kApart, kEvenAttention), narrow(device, kApart, kEvenAttention, type);
      for (int step = 0; step < 3; ++step) {
        wide.train();
        narrow.train();
      }
      const std::vector<float> a = wide.predictions(), b = narrow.predictions();
      for (size_t i = 0; i < a.size(); ++i)
        EXPECT_NEAR(a[i], b[i], 0.02) << to_string(device) << ", " << type << ", sample " << i;
    }
}

TEST(SequenceModels, AnEmbeddingThatNoLayerReadsKeepsItsRows) {
  const std::string logits =
      R"({"type": "InnerProduct", "bottom": "lengths", "top": "logits", "fc_param": {"num_output": 1}})";
  for (const Device device : devices()) {
    Problems problems;
    const Config config = sequence_config(kApart, logits, problems);
    wire(config, kSamples, problems);
    ASSERT_FALSE(problems.any_error());
    ASSERT_EQ(problems.warnings().size(), 1u);
    EXPECT_EQ(problems.warnings()[0].pointer, "/layers/1/top/0");
    EXPECT_EQ(problems.warnings()[0].message, "no layer reads \"places\": its gradient is zero");
    SequenceModel model(device, kApart, logits);
    model.train();
    const std::string rows = model.saved_table();
    const std::vector<float> before = model.predictions();
    model.train();
    EXPECT_EQ(model.saved_table(), rows);
    EXPECT_FALSE(rows.empty());
    EXPECT_NE(model.predictions(), before);
  }
}

TEST(SequenceModels, SayWhatDoesNotFit) {
  const std::string logits =
      R"({"type": "InnerProduct", "bottom": "lengths", "top": "logits", "fc_param": {"num_output": 1}})";
  EXPECT_EQ(
      wiring_errors(
          R"("top": ["lengths", "lengths"], "sparse_embedding_hparam": {"embedding_vec_size": 3, "combiner": "sum"})",
          logits),
      "/layers/1/top/1: a tensor named \"lengths\" already exists, from /layers/1/top/0\n");
  EXPECT_EQ(wiring_errors(kApart, logits, int64_t{1} << 29),
            "/layers/1/sparse_embedding_hparam/combiner: \"none\" needs a column for every key that the limits of "
            "\"keys\" allow, and 536870912 samples of 5 columns exceed 2^31; lower the limits or the batch\n");
  EXPECT_EQ(wiring_errors(kApart, kEvenAttention, kSamples, "bf16", 257),
            "/layers/1/top/1: slots of \"keys\" may have 257 keys, and bf16 represents counts exactly only up to 256; "
            "set \"keep_last\" to shorten slots\n");
}

}  // namespace
}  // namespace hctr::test
