// Every layer of the catalog exports its computation to ONNX: the exported graph computes the outputs of forward().
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/random.h"
#include "export/onnx_file.h"
#include "net/layers/layer_catalog.h"
#include "support/devices.h"
#include "support/guarded_tensor.h"
#include "support/layer_run.h"
#include "support/message_of.h"
#include "support/onnx_reader.h"
#include "support/temporary_folder.h"
#include "unit/net/graph/layer_examples.h"

namespace hctr::test {
namespace {

struct OnnxRow {
  std::string section;
  std::vector<std::string> inputs;  ///< symbolic shapes, as in layer_examples.h
};
void PrintTo(const OnnxRow& row, std::ostream* out) { *out << row.section; }

/// Layer types without an ONNX equivalent, with the expected error text.
const std::map<std::string, std::string>& types_without_onnx() {
  static const std::map<std::string, std::string> types = {{"PReLU_Dice", "use PReLU"}};
  return types;
}

std::vector<OnnxRow> onnx_rows() {
  std::vector<OnnxRow> rows;
  for (const LayerExample& example : layer_examples()) {
    if (types_without_onnx().contains(example.type)) continue;
    rows.push_back({cat(R"({"type": ")", example.type, "\"", example.fields.empty() ? "" : ", ", example.fields, "}"),
                    example.inputs});
  }
  const std::vector<OnnxRow> variants = {
      {R"({"type": "Concat", "axis": 2})", {"b s d", "b s e"}},
      {R"({"type": "Concat"})", {"b s d", "b i d"}},
      {R"({"type": "FmOrder2", "out_dim": 4})", {"b s d"}},
      {R"({"type": "FusedInnerProduct", "fc_param": {"num_output": 3}, "activation": "None"})", {"b n"}},
      {R"({"type": "GRU", "gru_param": {"num_output": 5, "SeqLength": 1, "vector_size": 4}})", {"b d"}},
      {R"({"type": "LayerNorm", "ln_param": {"eps": 0.01}})", {"b s d"}},
      {R"({"type": "MLP", "mlp_param": {"num_outputs": [5, 4, 3, 2], "use_bias": false,
           "activations": ["Sigmoid", "Tanh", "GELU", "SiLU"]}})",
       {"b n"}},
      {R"({"type": "MatrixMultiply"})", {"b i d", "b d j"}},
      {R"({"type": "MatrixMultiply"})", {"n d", "d i j"}},
      {R"({"type": "MatrixMultiply"})", {"b s i d", "b s d j"}},
      {R"({"type": "MultiCross", "mc_param": {"num_layers": 3}})", {"b n"}},
      {R"({"type": "MultiCross", "mc_param": {"num_layers": 2, "projection_dim": 2}})", {"b n"}},
      {R"({"type": "MultiHeadAttention", "num_attention_heads": 1})", {"b i d", "b j d", "b j e"}},
      {R"({"type": "MultiHeadAttention", "num_attention_heads": 2})", {"b i d", "b j d", "b j e", "b 1 1 j"}},
      {R"({"type": "PReLU"})", {"b s d"}},
      {R"({"type": "ReduceMean", "axis": 2})", {"b s d"}},
      {R"({"type": "ReduceSum", "axis": 0})", {"b n"}},
      {R"({"type": "Reshape", "leading_dim": 4})", {"b s d"}},
      {R"({"type": "Reshape", "leading_dim": 4, "time_step": 3})", {"b s d"}},
      {R"({"type": "Reshape", "selected": [2, 0]})", {"b s d"}},
      {R"({"type": "Scale", "scale_param": {"axis": 0, "factor": 3}})", {"b n"}},
      {R"({"type": "SequenceMask", "max_sequence_len_from": 3})", {"b 1"}},
      {R"({"type": "Slice", "ranges": [[1, 3], [0, 1]]})", {"b s d"}},
      {R"({"type": "Softmax"})", {"b n"}},
      {R"({"type": "Softmax"})", {"b n", "b 1 n"}},
      {R"({"type": "Softmax"})", {"b s i", "b 1 i"}},
      {R"({"type": "Softmax"})", {"b s i", "b 1 s i"}},
      {R"({"type": "Softmax"})", {"b s i j", "b i j"}},
  };
  rows.insert(rows.end(), variants.begin(), variants.end());
  return rows;
}

Shape shape_in_letters(const std::string& letters, int64_t batch) {
  std::vector<int64_t> dims;
  for (const char letter : letters.substr(0, letters.find('|')))
    if (letter != ' ') dims.push_back(letter == 'b' ? batch : size_of_letter(letter));
  if (dims.size() == 1) return {dims[0]};
  if (dims.size() == 2) return {dims[0], dims[1]};
  if (dims.size() == 3) return {dims[0], dims[1], dims[2]};
  return {dims[0], dims[1], dims[2], dims[3]};
}

std::vector<int64_t> dims_of(const Shape& shape) {
  std::vector<int64_t> dims;
  for (int d = 0; d < shape.rank(); ++d) dims.push_back(shape[d]);
  return dims;
}

/// Creates tensors with random values.
class RandomTensors {
 public:
  Tensor add(const std::string& name, const Shape& shape, DType dtype, double low, double high) {
    std::vector<double> numbers;
    for (int64_t i = 0; i < shape.elements(); ++i)
      numbers.push_back(low + (high - low) * static_cast<double>(unit_float(
                                                 random_bits(random_stream(name), 7, static_cast<uint64_t>(i)))));
    kept_.push_back(std::make_unique<GuardedTensor>(kCpu, dtype, shape, RowLayout{"dense"}));
    kept_.back()->set(numbers, runtime_of(kCpu).compute_stream());
    return kept_.back()->tensor();
  }
  /// The values of a tensor that add() returned.
  std::vector<double> numbers(const Tensor& tensor) const {
    for (const auto& kept : kept_)
      if (kept->tensor().bytes() == tensor.bytes()) {
        kept->fetch(runtime_of(kCpu).compute_stream());
        return kept->values();
      }
    ADD_FAILURE() << "no such tensor";
    return {};
  }

 private:
  std::vector<std::unique_ptr<GuardedTensor>> kept_;
};

class OnnxLayers : public testing::TestWithParam<OnnxRow> {};

TEST_P(OnnxLayers, ComputeWhatForwardComputesForAnyBatch) {
  const auto layer = layer_of(GetParam().section);
  const bool is_loss = dynamic_cast<const LossLayer*>(layer.get()) != nullptr;
  // The graph is exported for batches of one size, and evaluated with batches of another size.
  Specs made_for, computed_with;
  for (const std::string& letters : GetParam().inputs) {
    made_for.emplace_back(DType::f32, shape_in_letters(letters, 8));
    computed_with.emplace_back(DType::f32, shape_in_letters(letters, 5));
  }
  const LayerSpec as_made = layer->spec(made_for), spec = layer->spec(computed_with);

  RandomTensors tensors;
  LayerIo io;
  OnnxIo names;
  OnnxModel model;
  model.graph.enter("layer");
  OnnxArrays inputs;
  const auto floats = [&](const Tensor& tensor) {
    const std::vector<double> numbers = tensors.numbers(tensor);
    return std::vector<float>(numbers.begin(), numbers.end());
  };
  const bool lengths = GetParam().section.find("SequenceMask") != std::string::npos;
  for (size_t i = 0; i < computed_with.size(); ++i) {
    // The range of the input values includes values below and above the thresholds of lengths and masks.
    io.in.push_back(tensors.add(cat("in", i), computed_with[i].shape, DType::f32, lengths ? 0 : -2, lengths ? 6 : 2));
    const std::string name = cat("in", i);
    if (is_loss && i > 0) continue;
    names.in.push_back({name, made_for[i].shape});
    inputs.emplace(name, OnnxArray::of(dims_of(computed_with[i].shape), tensors.numbers(io.in[i])));
  }
  const auto add_stored = [&](const std::string& name, const Shape& shape, double low, double high) {
    const Tensor tensor = tensors.add(name, shape, DType::f32, low, high);
    model.initializers.push_back(stored(name, dims_of(shape), floats(tensor)));
    return tensor;
  };
  for (const WeightSpec& weight : spec.weights) {
    io.weights.push_back(add_stored(weight.name, weight.shape, -0.5, 0.5));
    names.weights.push_back(weight.name);
  }
  for (const StateSpec& state : spec.state) {
    io.state.push_back(add_stored(state.name, state.shape, 0.1, 0.9));
    names.state.push_back(state.name);
  }
  for (const TensorSpec& scratch : spec.scratch)
    io.scratch.push_back(tensors.add("scratch", scratch.shape, scratch.dtype, 0, 0));
  for (size_t o = 0; o < spec.outputs.size(); ++o) {
    io.out.push_back(tensors.add("out", spec.outputs[o].shape, spec.outputs[o].dtype, 9, 9));
    if (!is_loss || o == 1) names.out.push_back({cat("out", o), as_made.outputs[o].shape});
  }
  StepState state{};
  state.valid_samples = 5;
  state.global_samples = 5;
  Context ctx(runtime_of(kCpu), runtime_of(kCpu).compute_stream(), &state);
  layer->forward(ctx, io, Phase::evaluate);
  layer->to_onnx(model.graph, names);

  const TemporaryFolder folder;
  FileSet files;
  write_onnx(files, folder / "layer.onnx", model, 1 << 20);
  files.commit();
  const OnnxArrays computed = evaluate(read_onnx(folder / "layer.onnx"), inputs);
  for (size_t o = is_loss ? 1 : 0; o < spec.outputs.size(); ++o) {
    if (as_made.outputs[o].shape.elements() == 0) continue;  // outputs that no layer reads are empty
    const OnnxArray& y = computed.at(cat("out", o));
    EXPECT_EQ(y.dims, dims_of(spec.outputs[o].shape)) << "output " << o;
    const std::vector<double> expected = tensors.numbers(io.out[o]);
    ASSERT_EQ(y.reals.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(y.reals[i], expected[i], 2e-5 * std::max(1.0, std::abs(expected[i]))) << "output " << o << ", " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OnnxLayers, testing::ValuesIn(onnx_rows()));

TEST(OnnxLayers, AreAllOfTheCatalogButThoseThatSayWhyNot) {
  std::set<std::string> with_example;
  for (const LayerExample& example : layer_examples()) {
    with_example.insert(example.type);
    if (!types_without_onnx().contains(example.type)) continue;
    const auto layer = layer_of(cat(R"({"type": ")", example.type, "\", ", example.fields, "}"));
    OnnxGraph graph;
    const std::string says = message_of(Kind::config, [&] { layer->to_onnx(graph, {}); });
    EXPECT_NE(says.find(types_without_onnx().at(example.type)), says.npos) << says;
  }
  for (const LayerType& type : layer_catalog()) EXPECT_TRUE(with_example.contains(type.name())) << type.name();
}

}  // namespace
}  // namespace hctr::test
