// Input arrays of a caller in GPU memory: the model scores and trains on them in place, and rejects arrays that it
// cannot access.
#include "core/device/copy_bytes.h"
#include "hctr/trainer.h"
#include "scores_fixture.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

constexpr Device kGpu{DeviceKind::cuda, 0};

/// Copies `values` to the GPU.
template <class T>
Buffer there(const std::vector<T>& values) {
  Buffer buffer(kGpu, values.size() * sizeof(T));
  copy_bytes({kGpu}, buffer.data(), values.data(), buffer.bytes());
  return buffer;
}

class GpuArrays : public ScoresTest {
 protected:
  void SetUp() override {
    ScoresTest::SetUp();
    config_ = with_change(with_change(config_, "\"max_feature_num_per_sample\": 2, \"slot_num\": 1",
                                      "\"nnz_per_slot\": 1, \"slot_num\": 1"),
                          "\"max_feature_num_per_sample\": 6, \"max_nnz\": 2, \"slot_num\": 3",
                          "\"nnz_per_slot\": 1, \"slot_num\": 3");
    write_file("data.json", config_);
    make_data(folder_.path(), "data.json", 3000, 500, {"--vocabulary", "300", "--force"});
  }
  void on_gpu_or_skip() {
    if (find_gpus().count == 0) GTEST_SKIP() << "needs a GPU";
    device_ = "cuda";
  }
  TrainerOptions trainer_options(const std::string& name = "out") const {
    TrainerOptions options;
    options.config_text = with_change(with_change(config_, "\"source\": \"train.txt\",", ""), "\"out/\"",
                                      cat("\"", (folder_ / name).string(), "/\""));
    options.run_folder = false;
    options.device = device_ == "cpu" ? DeviceChoice::cpu : DeviceChoice::cuda;
    return options;
  }
};

TEST_F(GpuArrays, AreRefusedByWhatIsOnTheCpu) {
  train(config_, {"[0]"}, "one");
  const Model model(at("one-run"));
  const SampleArrays samples = samples_of("one.json");
  std::vector<float> scores(4);
  std::vector<InputView> views = samples.views(0);
  const OutputView output{.name = "loss", .data = scores.data()}, on_gpu{.name = "loss", .data = nullptr, .gpu = 1};
  EXPECT_EQ(message_of(Kind::usage, [&] { model.score(4, views, {&on_gpu, 1}); }),
            "output 'loss' is on GPU 1, but the model is on the CPU: pass host memory");
  views[1].gpu = 0;
  EXPECT_EQ(message_of(Kind::usage, [&] { model.score(4, views, {&output, 1}); }),
            "input 'wide_data' is on GPU 0, but the model is on the CPU: pass host memory");

  Trainer trainer(trainer_options());
  const std::vector<float> label(4);
  views.insert(views.begin(), {.name = "label", .data = label.data()});
  EXPECT_EQ(message_of(Kind::usage, [&] { trainer.step({.samples = 4, .inputs = views}); }),
            "input 'wide_data' is on GPU 0, but the trainer is on the CPU or on several ranks: pass host memory");
  views[2].gpu = -1;
  EXPECT_EQ(trainer.step({.samples = 4, .inputs = views}), TrainEnd::reached) << "the trainer is as before";
}

TEST_F(GpuArrays, AreScoredWhereTheyLie) {
  on_gpu_or_skip();
  if (IsSkipped()) return;
  train(config_, {"[0]"}, "one");
  const Model model(at("one-run"));
  const SampleArrays samples = samples_of("one.json");
  std::vector<float> apart;  // rows with one padding value after each row
  for (int64_t b = 0; b < samples.samples; ++b) {
    apart.insert(apart.end(), samples.dense.begin() + b * samples.dense_dim,
                 samples.dense.begin() + (b + 1) * samples.dense_dim);
    apart.push_back(-1);
  }
  const Buffer dense = there(apart), wide = there(samples.inputs[0].keys), deep = there(samples.inputs[1].keys);
  const Buffer scores = there(std::vector<float>(static_cast<size_t>(2 * samples.samples), 7.0f));
  for (const int64_t count : {int64_t{1}, int64_t{37}, samples.samples}) {
    std::vector<InputView> views = samples.views(0);
    views[0].data = dense.data();
    views[0].stride = samples.dense_dim + 1;
    views[1].data = wide.data();
    views[2].data = deep.data();
    for (InputView& view : views) view.gpu = 0;
    const OutputView output{.name = "loss", .data = reinterpret_cast<float*>(scores.data()), .stride = 2, .gpu = 0};
    model.score(count, views, {&output, 1});
    const std::vector<float> all =
        to_host<float>({kGpu}, Tensor(scores.data(), TensorSpec(DType::f32, {samples.samples, 2}), kGpu));
    const std::vector<float> expected = score(model, samples, 0, count);
    for (int64_t b = 0; b < count; ++b) {
      EXPECT_EQ(all[static_cast<size_t>(2 * b)], expected[static_cast<size_t>(b)]) << "sample " << b << " of " << count;
      EXPECT_EQ(all[static_cast<size_t>(2 * b + 1)], 7.0f);
    }
  }
}

TEST_F(GpuArrays, AreTrainedOnWhereTheyLie) {
  on_gpu_or_skip();
  if (IsSkipped()) return;
  write_file("one.json", with_change(config_, "\"eval.txt\"", "\"train.txt\""));
  const SampleArrays samples = samples_of("one.json");
  std::vector<float> label;
  for (int64_t b = 0; b < samples.samples; ++b)
    label.push_back(samples.inputs[0].keys[static_cast<size_t>(b)] % 3 == 0);
  std::vector<InputView> views = samples.views(0);
  views.insert(views.begin(), {.name = "label", .data = label.data()});
  Trainer host(trainer_options("host")), device(trainer_options("device"));
  host.step({.samples = samples.samples, .inputs = views});
  const auto expected = host.evaluate({.samples = samples.samples, .inputs = views});

  const Buffer labels = there(label), dense = there(samples.dense), wide = there(samples.inputs[0].keys),
               deep = there(samples.inputs[1].keys);
  const Buffer* const buffers[] = {&labels, &dense, &wide, &deep};
  for (size_t i = 0; i < views.size(); ++i) {
    views[i].data = buffers[i]->data();
    views[i].gpu = 0;
  }
  device.step({.samples = samples.samples, .inputs = views});
  EXPECT_EQ(device.state().loss, host.state().loss);
  EXPECT_EQ(device.evaluate({.samples = samples.samples, .inputs = views}), expected);
  views[1].data = samples.dense.data();
  views[1].gpu = -1;
  EXPECT_NE(message_of(Kind::usage, [&] { device.step({.samples = 4, .inputs = views}); }).find("partly on a GPU"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
