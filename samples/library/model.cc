// Scores samples in memory with a trained model: model RUN_FOLDER. Prints the model's inputs, and the scores of two
// samples.
#include <hctr/error.h>
#include <hctr/model.h>

#include <cstdio>
#include <vector>

int main(int count, char** words) try {
  const hctr::Model model({.model = count > 1 ? words[1] : "run", .device = hctr::DeviceChoice::cpu});
  std::vector<hctr::InputView> inputs;
  std::vector<std::vector<float>> dense;
  std::vector<std::vector<int64_t>> keys;
  const std::vector<hctr::ModelTensor> all = model.inputs(), results = model.outputs();
  for (const hctr::ModelTensor& input : all) {
    std::printf("%s: %lld columns\n", input.name.c_str(), static_cast<long long>(input.shape[1]));
    const auto elements = static_cast<size_t>(2 * input.shape[1]);
    if (input.role == hctr::ModelTensor::Role::dense)
      inputs.push_back({input.name, dense.emplace_back(elements, 0.5f).data()});
    else
      inputs.push_back({input.name, keys.emplace_back(elements, 7).data(), hctr::ElementType::i64});
  }
  float scores[2];
  const hctr::OutputView output{results[0].name, scores};
  model.score(2, inputs, {&output, 1});
  std::printf("scores %.6f %.6f\n", scores[0], scores[1]);
} catch (const hctr::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return hctr::exit_code(error.kind());
}
