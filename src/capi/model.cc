#include "hctr/model.h"

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capi/array.h"
#include "capi/call.h"
#include "capi/model_inputs.h"
#include "capi/store_view.h"
#include "capi/use_results.h"
#include "core/base/expect.h"

struct hctr_model {
  explicit hctr_model(const hctr::LoadOptions& options) : model(options) { describe(); }
  void describe() {
    inputs = model.inputs();
    outputs = model.outputs();
  }
  hctr::Model model;
  // Inputs and outputs of the first loaded model. A model that replaces it must have the same inputs and outputs.
  std::vector<hctr::ModelTensor> inputs, outputs;
};

namespace hctr::capi {
namespace {

LoadOptions load_options(const hctr_model_options* given) {
  const hctr_model_options from = read_struct(given, "hctr_model_options");
  expect_given(from.model, "hctr_model_options: model");
  LoadOptions to{.model = from.model};
  if (from.config) to.config = from.config;
  if (from.change_count > 0) expect_given(from.changes, "hctr_model_options: changes");
  for (size_t i = 0; i < from.change_count; ++i) to.changes.emplace_back(from.changes[i]);
  if (from.device < HCTR_AUTOMATIC || from.device > HCTR_CUDA)
    throw Error(Kind::usage, cat("hctr_model_options: expected HCTR_AUTOMATIC, HCTR_CPU or HCTR_CUDA as device, "
                                 "found ",
                                 from.device));
  to.device = static_cast<DeviceChoice>(from.device);
  if (from.threads != 0) to.threads = from.threads;
  if (from.most_samples != 0) to.most_samples = from.most_samples;
  if (from.tables) to.tables = from.tables->view;
  set_surroundings(to.surroundings, from.getenv, from.setenv);
  if (from.log)
    to.note = [log = from.log, user = from.log_user](std::string_view line) {
      log(user, 0, std::string(line).c_str());
    };
  return to;
}

hctr_model& model_at(hctr_model* model) {
  expect_given(model, "the hctr_model");
  return *model;
}

OutputView output_of(const hctr_model& model, const hctr_model_output& from, int64_t samples) {
  expect_given(from.name, "hctr_model_output: name");
  const std::string what = cat("output '", from.name, "'");
  OutputView to{.name = from.name};
  const ModelTensor* const tensor = find(model.outputs, from.name);
  if (!tensor) return to;
  const Matrix matrix = matrix_of(from.scores, what);
  if (matrix.rows < samples || matrix.columns != columns_of(*tensor))
    throw Error(Kind::usage, cat(what, " has shape [", matrix.rows, ", ", matrix.columns, "], expected [", samples,
                                 ", ", columns_of(*tensor), "]"));
  to.data = matrix.data;
  to.stride = matrix.stride;
  to.gpu = from.scores.gpu < 0 ? -1 : from.scores.gpu;
  to.stream = from.stream;
  return to;
}

}  // namespace
}  // namespace hctr::capi

hctr_status hctr_model_load(const hctr_model_options* options, hctr_model** model) {
  return hctr::capi::call([&] {
    hctr::capi::expect_given(model, "hctr_model_load(): the pointer to the handle");
    *model = std::make_unique<hctr_model>(hctr::capi::load_options(options)).release();
  });
}

hctr_status hctr_model_replace(hctr_model* model, const hctr_model_options* options) {
  return hctr::capi::call([&] { hctr::capi::model_at(model).model.replace(hctr::capi::load_options(options)); });
}

void hctr_model_destroy(hctr_model* model) { delete model; }

hctr_status hctr_model_describe(hctr_model* model, size_t* inputs, size_t* outputs, int64_t* iteration) {
  return hctr::capi::call([&] {
    const hctr_model& of = hctr::capi::model_at(model);
    if (inputs) *inputs = of.inputs.size();
    if (outputs) *outputs = of.outputs.size();
    if (iteration) *iteration = of.model.iteration();
  });
}

hctr_status hctr_model_tensor(hctr_model* model, size_t index, hctr_tensor* tensor) {
  return hctr::capi::call([&] {
    const hctr_model& of = hctr::capi::model_at(model);
    hctr::capi::expect_given(tensor, "hctr_model_tensor(): the tensor");
    const size_t inputs = of.inputs.size();
    if (index >= inputs + of.outputs.size())
      throw hctr::Error(hctr::Kind::usage, hctr::cat("there is no tensor ", index, ": the model has ",
                                                     inputs + of.outputs.size(), " tensors"));
    const hctr::ModelTensor& found = index < inputs ? of.inputs[index] : of.outputs[index - inputs];
    *tensor = {sizeof *tensor, static_cast<int32_t>(found.role), found.name.c_str(), hctr::capi::columns_of(found)};
  });
}

hctr_status hctr_model_score(hctr_model* model, int64_t samples, const hctr_model_input* inputs, size_t input_count,
                             const hctr_model_output* outputs, size_t output_count) {
  return hctr::capi::call([&] {
    const hctr_model& of = hctr::capi::model_at(model);
    std::vector<hctr::InputView> in;
    std::vector<hctr::OutputView> out;
    for (size_t i = 0; i < input_count; ++i)
      in.push_back(hctr::capi::input_of(of.inputs, hctr::capi::read_struct(inputs, i, "hctr_model_input"), samples));
    for (size_t i = 0; i < output_count; ++i)
      out.push_back(hctr::capi::output_of(of, hctr::capi::read_struct(outputs, i, "hctr_model_output"), samples));
    of.model.score(samples, in, out);
  });
}

hctr_status hctr_model_predict(hctr_model* model, const char* source, hctr_scored_rows rows, void* user) {
  return hctr::capi::call([&] {
    const hctr_model& of = hctr::capi::model_at(model);
    hctr::capi::expect_given(source, "hctr_model_predict(): the source");
    hctr::capi::expect_given(reinterpret_cast<const void*>(rows), "hctr_model_predict(): the callback for rows");
    of.model.predict(source, [&](int64_t count, std::span<const hctr::OutputView> scores) {
      std::vector<std::array<int64_t, 2>> shapes;
      std::vector<hctr_model_output> outputs;
      shapes.reserve(scores.size());
      for (size_t o = 0; o < scores.size(); ++o) {
        const hctr::ModelTensor& tensor = of.outputs[o];
        shapes.push_back({count, hctr::capi::columns_of(tensor)});
        const hctr_array array{scores[o].data, HCTR_F32, 2, shapes.back().data(), nullptr, -1};
        outputs.push_back({sizeof(hctr_model_output), tensor.name.c_str(), array, nullptr});
      }
      hctr::capi::expect_going_on(rows(user, count, outputs.data(), outputs.size()));
    });
  });
}

hctr_status hctr_model_encode(hctr_model* model, const char* source, int32_t partial, hctr_encoded_samples samples,
                              void* user) {
  return hctr::capi::call([&] {
    const hctr_model& of = hctr::capi::model_at(model);
    hctr::capi::expect_given(source, "hctr_model_encode(): the source");
    hctr::capi::expect_given(reinterpret_cast<const void*>(samples), "hctr_model_encode(): the callback for samples");
    of.model.encode(source, partial != 0, [&](int64_t count, std::span<const hctr::InputView> views) {
      const std::vector<hctr::capi::GivenInput> inputs = hctr::capi::given_inputs(of.inputs, views, count);
      std::vector<hctr_model_input> given;
      for (const hctr::capi::GivenInput& input : inputs) given.push_back(input.as_c());
      hctr::capi::expect_going_on(samples(user, count, given.data(), given.size()));
    });
  });
}

hctr_status hctr_model_about(hctr_model* model, const char** name, const char** device) {
  return hctr::capi::call([&] {
    thread_local std::string name_of_last, device_of_last;
    const hctr_model& of = hctr::capi::model_at(model);
    name_of_last = of.model.name();
    device_of_last = of.model.device();
    if (name) *name = name_of_last.c_str();
    if (device) *device = device_of_last.c_str();
  });
}

hctr_status hctr_model_evaluate(hctr_model* model, const char* source, const hctr_stop* stop, hctr_metric metric,
                                void* user, hctr_use_summary* summary) {
  return hctr::capi::call([&] {
    const hctr_model& of = hctr::capi::model_at(model);
    const auto result = hctr::capi::whole(of.model.evaluate(source ? source : "", stop ? &stop->value : nullptr));
    hctr::capi::pass_metrics(result.metrics, metric, user);
    hctr::capi::note_use(result, result.samples, summary);
  });
}
