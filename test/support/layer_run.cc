#include "support/layer_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "config/json.h"
#include "core/base/random.h"
#include "net/layers/layer_catalog.h"
#include "support/devices.h"
#include "support/tolerance.h"

namespace hctr::test {
namespace {

std::unique_ptr<Layer> make(const std::string& section, Problems& problems) {
  const Json json = Json::parse(section, "section");
  const std::string type = *json.find("type")->string();
  const LayerType* found = find_layer_type(type);
  HCTR_EXPECT(found, "no layer ", type);
  return found->make(json, "", "layer", problems);
}

Specs specs_of(const std::vector<Shape>& shapes, DType dtype) {
  Specs specs;
  for (const Shape& shape : shapes) specs.emplace_back(dtype, shape);
  return specs;
}

std::vector<double> random(const std::string& name, int64_t count, double low, double high, DType rounded) {
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = rounded_to(
        rounded, low + (high - low) * static_cast<double>(unit_float(random_bits(random_stream(name), 0, i))));
  return values;
}

void compare_samples(const std::string& name, const std::vector<std::vector<double>>& actual,
                     const std::vector<std::vector<double>>& expected, DType dtype, double slack) {
  const Tolerance allowed = tolerance(dtype, Rounding::sum);
  ASSERT_EQ(actual.size(), expected.size()) << name;
  for (size_t t = 0; t < actual.size(); ++t) {
    double largest = 0;
    for (const double value : expected[t]) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < actual[t].size(); ++i)
      ASSERT_NEAR(
          actual[t][i], expected[t][i],
          slack * (allowed.relative * std::abs(expected[t][i]) + (allowed.relative + allowed.of_largest) * largest))
          << name << " " << t << ", element " << i;
  }
}

}  // namespace

std::unique_ptr<Layer> layer_of(const std::string& section) {
  Problems problems;
  auto layer = make(section, problems);
  for (const auto& error : problems.errors()) ADD_FAILURE() << error.pointer << ": " << error.message;
  return layer;
}

std::string complaint_of(const std::string& section, const std::vector<Shape>& inputs) {
  Problems problems;
  const auto layer = make(section, problems);
  std::string all;
  for (const auto& error : problems.errors()) all += cat(all.empty() ? "" : "\n", error.pointer, ": ", error.message);
  if (!all.empty()) return all;
  try {
    layer->spec(specs_of(inputs, DType::f32));
  } catch (const LayerError& error) {
    return cat(error.field(), ": ", error.what());
  }
  ADD_FAILURE() << "nothing is wrong with " << section;
  return "";
}

std::string spec_text(const std::string& section, const std::vector<Shape>& inputs) {
  const LayerSpec layer_spec = layer_of(section)->spec(specs_of(inputs, DType::f32));
  std::string text;
  for (const TensorSpec& out : layer_spec.outputs) text += cat(text.empty() ? "" : " ", to_string(out.shape));
  if (!layer_spec.weights.empty()) text += " |";
  for (const WeightSpec& weight : layer_spec.weights) text += cat(" ", weight.name, " ", to_string(weight.shape));
  return text;
}

LayerRun::LayerRun(const LayerSetup& setup, const Options& options) {
  const auto layer = layer_of(setup.section);
  const LayerSpec layer_spec = layer->spec(specs_of(setup.inputs, options.dtype));
  const DType wide = options.dtype == DType::f64 ? DType::f64 : DType::f32;
  Runtime& runtime = runtime_of(options.device);
  const StreamRef stream = runtime.compute_stream();
  Context ctx(runtime, stream);

  std::vector<std::unique_ptr<GuardedTensor>> kept;
  // true for outputs, whose elements must all be written; false for inputs, which must not be written
  std::vector<std::pair<GuardedTensor*, bool>> checked;
  const auto tensor = [&](DType dtype, const Shape& shape, bool dense, bool written) {
    kept.push_back(
        std::make_unique<GuardedTensor>(options.device, dtype, shape, dense ? RowLayout{"dense"} : options.layout));
    kept.back()->poison(stream);
    checked.emplace_back(kept.back().get(), written);
    return kept.back().get();
  };
  std::vector<GuardedTensor*> inputs, weight_tensors, outputs, d_inputs, d_weight_tensors, d_outputs;
  const auto given = [&](const std::string& name, DType dtype, const Shape& shape, bool dense, double low, double high,
                         int number) {
    GuardedTensor* t = tensor(dtype, shape, dense, false);
    std::vector<double> values = random(name, shape.elements(), low, high, options.rounded_to);
    if (number >= 0 && number == options.perturbed) values.at(options.element) += options.delta;
    t->set(values, stream);
    return t;
  };

  LayerIo io;
  int number = 0;
  for (const Shape& shape : setup.inputs)
    inputs.push_back(given(cat("in", number), options.dtype, shape, false, setup.low, setup.high, number)), ++number;
  for (const WeightSpec& weight : layer_spec.weights)
    weight_tensors.push_back(given(cat("weight", number), options.dtype, weight.shape, true, -0.5, 0.5, number)),
        ++number;
  for (const TensorSpec& spec : layer_spec.outputs) {
    outputs.push_back(tensor(spec.dtype, spec.shape, false, true));
    d_outputs.push_back(given(cat("d_out", outputs.size()), spec.dtype, spec.shape, false, -1, 1, -1));
  }
  for (const Shape& shape : setup.inputs) {
    if (options.want_d_in) d_inputs.push_back(tensor(options.dtype, shape, false, true));
    io.d_in.push_back(options.want_d_in ? std::optional(d_inputs.back()->tensor()) : std::nullopt);
  }
  for (const WeightSpec& weight : layer_spec.weights)
    d_weight_tensors.push_back(tensor(wide, weight.shape, true, true));
  std::vector<std::unique_ptr<GuardedTensor>> scratch;
  for (const TensorSpec& spec : layer_spec.scratch) {
    scratch.push_back(std::make_unique<GuardedTensor>(options.device, spec.dtype, spec.shape, RowLayout{"dense"}));
    scratch.back()->poison(stream);
    io.scratch.push_back(scratch.back()->tensor());
  }
  for (const TensorSpec& spec : layer_spec.transient) {
    scratch.push_back(std::make_unique<GuardedTensor>(options.device, spec.dtype, spec.shape, RowLayout{"dense"}));
    scratch.back()->poison(stream);
    io.transient.push_back(scratch.back()->tensor());
  }
  const auto tensors = [](const std::vector<GuardedTensor*>& from) {
    std::vector<Tensor> to;
    for (const GuardedTensor* each : from) to.push_back(each->tensor());
    return to;
  };
  io.in = tensors(inputs);
  io.weights = tensors(weight_tensors);
  io.out = tensors(outputs);
  io.d_out = tensors(d_outputs);
  io.d_weights = tensors(d_weight_tensors);
  layer->forward(ctx, io, Phase::train);
  layer->backward(ctx, io);
  layer->backward_weights(ctx, io);

  for (const auto& [t, written] : checked) {
    t->fetch(stream);
    if (const std::string complaint = t->complaint(written, !written); !complaint.empty())
      complaints.push_back(complaint);
  }
  const auto values = [](const std::vector<GuardedTensor*>& from) {
    std::vector<std::vector<double>> to;
    for (const GuardedTensor* each : from) to.push_back(each->values());
    return to;
  };
  in = values(inputs);
  weights = values(weight_tensors);
  out = values(outputs);
  d_in = values(d_inputs);
  d_weights = values(d_weight_tensors);
  d_out = values(d_outputs);
}

void check_layer(const LayerSetup& setup) {
  const LayerRun whole(setup, {});
  for (const std::string& complaint : whole.complaints) ADD_FAILURE() << complaint;

  std::vector<std::vector<double>> gradients = whole.d_in;
  gradients.insert(gradients.end(), whole.d_weights.begin(), whole.d_weights.end());
  for (size_t t = 0; t < gradients.size(); ++t) {
    constexpr size_t kMost = 16;
    const size_t count = gradients[t].size();
    for (size_t n = 0; n < std::min(kMost, count); ++n) {
      const size_t element = count <= kMost ? n : n * (count - 1) / (kMost - 1);
      const auto objective = [&](double delta) {
        const LayerRun run(setup, {.perturbed = static_cast<int>(t), .element = element, .delta = delta});
        double sum = 0;
        for (size_t o = 0; o < run.out.size(); ++o)
          for (size_t i = 0; i < run.out[o].size(); ++i) sum += run.out[o][i] * whole.d_out[o][i];
        return sum;
      };
      constexpr double kDelta = 1e-5;
      EXPECT_NEAR(gradients[t][element], (objective(kDelta) - objective(-kDelta)) / (2 * kDelta),
                  1e-6 * std::max(1.0, std::abs(gradients[t][element])))
          << "gradient of " << (t < setup.inputs.size() ? "input " : "weight ")
          << (t < setup.inputs.size() ? t : t - setup.inputs.size()) << ", element " << element;
    }
  }

  compare_samples("d_weights without d_in", LayerRun(setup, {.want_d_in = false}).d_weights, whole.d_weights,
                  DType::f64, 1);
  for (const Device device : devices())
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      SCOPED_TRACE(cat(to_string(device), " ", name_of(dtype)));
      const LayerRun reference(setup, {.rounded_to = dtype});
      for (const RowLayout layout :
           {RowLayout{"dense"}, RowLayout{"padded", 16, 16, 0}, RowLayout{"padded oddly", 1, 3, 1}}) {
        SCOPED_TRACE(layout.name);
        const LayerRun run(setup, {.device = device, .dtype = dtype, .rounded_to = dtype, .layout = layout});
        for (const std::string& complaint : run.complaints) ADD_FAILURE() << complaint;
        constexpr double kSlack = 6;  // factor for layers of several operators, which round intermediate results
        compare_samples("out", run.out, reference.out, dtype, kSlack);
        compare_samples("d_in", run.d_in, reference.d_in, dtype, kSlack);
        compare_samples("d_weights", run.d_weights, reference.d_weights, dtype, kSlack);
        if (::testing::Test::HasFailure()) return;
      }
    }
}

}  // namespace hctr::test
