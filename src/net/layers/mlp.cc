// InnerProduct, FusedInnerProduct and MLP: three config sections for one stack of fully connected stages.
#include <numeric>

#include "config/problems.h"
#include "net/layers/concat_linear_layer.h"
#include "net/layers/fully_connected.h"
#include "net/layers/fusable_layer.h"
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/gemm/bias_gradient.h"
#include "ops/gemm/gradient_through_relu.h"

namespace hctr {

/// The position of a FusedInnerProduct in a chain of such layers, in configs of HugeCTR 3.1. Head and Body have three
/// extra tops, Body and Tail three extra bottoms. The extra tensors are buffers of HugeCTR's kernels and are unused
/// here.
enum class ChainPosition { none, head, body, tail, isolated };
template <>
const Words<ChainPosition>& EnumWords<ChainPosition>::table() {
  static const Words<ChainPosition> words = {{"None", ChainPosition::none},
                                             {"Head", ChainPosition::head},
                                             {"Body", ChainPosition::body},
                                             {"Tail", ChainPosition::tail},
                                             {"Isolated", ChainPosition::isolated}};
  return words;
}

namespace {

struct WidthParams {  // the config object "fc_param"
  int64_t num_output = 0;
  Initializer weight_init = Initializer::by_default, bias_init = Initializer::by_default;
};

struct FusedParams {
  WidthParams width;
  ChainPosition position = ChainPosition::none;
  StageActivation activation = StageActivation::relu;
};

struct MlpParams {
  std::vector<int64_t> num_outputs;
  StageActivation activation = StageActivation::relu;
  std::optional<std::vector<std::string>> activations;
  bool use_bias = true;
  Initializer weight_init = Initializer::by_default, bias_init = Initializer::by_default;
};

std::optional<StageActivation> activation_of(const std::string& word) {
  for (const auto& [name, activation] : EnumWords<StageActivation>::table())
    if (name == word) return activation;
  return std::nullopt;
}

class Stack : public FusableLayer {
 public:
  Stack(const std::string&, WidthParams p)
      : type_("InnerProduct"), stages_{{p.num_output, StageActivation::none, true, p.weight_init, p.bias_init}} {}

  Stack(const std::string&, FusedParams p)
      : type_("FusedInnerProduct"),
        stages_{{p.width.num_output, p.activation, true, p.width.weight_init, p.width.bias_init}},
        more_outputs_(p.position == ChainPosition::head || p.position == ChainPosition::body ? 3 : 0) {}

  Stack(const std::string&, MlpParams p) : type_("MLP") {
    for (size_t i = 0; i < p.num_outputs.size(); ++i)
      stages_.push_back({p.num_outputs[i],
                         p.activations ? activation_of(p.activations->at(i)).value_or(p.activation) : p.activation,
                         p.use_bias, p.weight_init, p.bias_init});
    for (size_t i = 0; i + 1 < stages_.size(); ++i) stages_[i].finished_by_reader = stages_[i].relu_with_bias();
  }

  LayerSpec spec(const Specs& inputs) const override {
    need_rank(inputs[0], 2, "bottom/0", type_);
    for (size_t i = 1; i < inputs.size(); ++i)
      if (inputs[i].shape.elements() > 0)
        throw LayerError(cat("bottom/", i), cat(type_,
                                                " reads only its first bottom; further bottoms must be the empty "
                                                "tops of a FusedInnerProduct, found shape ",
                                                to_string(inputs[i].shape)));
    using Operand = WeightProduct::Operand;
    LayerSpec spec;
    spec.traits.finishes_relu_of = {0};
    if (stages_.size() == 1 && stages_[0].num_output == 1)
      spec.traits.weights_in_backward = LayerTraits::WeightsInBackward::with_gradient_of_input;
    WeightProduct product;  // the operands of stage i's wgrad GEMM; each iteration sets x for the next stage
    int64_t width = inputs[0].shape[1];
    for (size_t i = 0; i < stages_.size(); ++i) {
      const FullyConnected& stage = stages_[i];
      stage.add_weights(width, stages_.size() > 1 ? cat("_", i) : "", spec.weights);
      const TensorSpec y(inputs[0].dtype, {inputs[0].rows(), stage.num_output});
      product.weight = spec.weights.size() - stage.weights();
      product.in_backward = i > 0;
      product.d_y = {Operand::In::output_gradients, 0};
      if (stage.keeps_input_of_activation()) spec.scratch.push_back(y);
      const auto of_backward = [&](const TensorSpec& scratch) {
        spec.scratch_of_backward.push_back(spec.scratch.size());
        spec.scratch.push_back(scratch);
      };
      const bool own = stage.own_gradient();
      if (own) product.d_y = {Operand::In::scratch, spec.scratch.size()};
      if (own) of_backward(y);
      Operand next{};
      if (i + 1 < stages_.size()) {
        next = {Operand::In::scratch, spec.scratch.size()};
        spec.scratch.push_back(y);  // memory for y
        if (!own) product.d_y = {Operand::In::scratch, spec.scratch.size()};
        of_backward(y);  // memory for the gradient of y
      }
      if (stage.has_weight_product()) spec.traits.weight_products.push_back(product);
      product.x = next;
      if (stage.needs_scratch()) of_backward(stage.scratch(y, width));
      if (stage.fp8) {
        stage.add_fp8_memory(y, width, spec.scratch, spec.transient);
        ++spec.fp8_products;
      }
      width = stage.num_output;
    }
    spec.outputs.assign(1 + more_outputs_, TensorSpec(inputs[0].dtype, {0, 1}));
    spec.outputs[0] = TensorSpec(inputs[0].dtype, {inputs[0].rows(), width});
    return spec;
  }

  void forward(Context& ctx, const LayerIo& io, Phase phase) const override {
    const auto all = stage_io(io);
    for (size_t i = 0; i < all.size(); ++i) stages_[i].forward(ctx, all[i], phase);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    std::string x = io.x();
    const std::string* weights = io.weights.data();
    for (const FullyConnected& stage : stages_) {
      const std::string y = &stage == &stages_.back() ? io.y() : graph.name("stage");
      stage.to_onnx(graph, x, weights, y);
      weights += stage.weights();
      x = y;
    }
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    const auto all = stage_io(io);
    for (size_t i = all.size(); i-- > 0;) {
      stages_[i].backward(ctx, all[i]);
      if (i > 0) stages_[i].backward_weights(ctx, all[i]);
    }
  }

  /// Writes the wgrads of the first stage. backward() has already written the wgrads of all other stages.
  void backward_weights(Context& ctx, const LayerIo& io) const override {
    stages_[0].backward_weights(ctx, stage_io(io)[0]);
  }

  /// Adds a ReLU to a last stage without activation, or adds dropout to a last stage that ends with ReLU.
  std::shared_ptr<const Layer> followed_by(const ElementFunction& function) const override {
    const bool is_relu = function.kind == ElementFunction::Kind::relu;
    const FullyConnected& last = stages_.back();
    if (more_outputs_ > 0 || !last.use_bias || last.dropout_rate > 0 ||
        last.activation != (is_relu ? StageActivation::none : StageActivation::relu))
      return nullptr;
    auto both = std::make_shared<Stack>(*this);
    if (is_relu) {
      both->stages_.back().activation = StageActivation::relu;
    } else {
      both->stages_.back().dropout_rate = function.rate;
      both->stages_.back().dropout_stream = function.stream;
    }
    return both;
  }

  std::shared_ptr<const Layer> with_fp8_products(const Specs& inputs, int64_t least_width) const override {
    auto layer = std::make_shared<Stack>(*this);
    bool any = false;
    int64_t width = inputs[0].shape[1];
    for (FullyConnected& stage : layer->stages_) {
      stage.fp8 = stage.can_fp8(width, least_width);
      // with FP8, the pass that rounds the gradient also computes drelu, so the reader does not
      if (stage.fp8) stage.finished_by_reader = false;
      any = any || stage.fp8;
      width = stage.num_output;
    }
    return any ? layer : nullptr;
  }

  std::shared_ptr<const Layer> finished_by_reader() const override {
    if (more_outputs_ > 0 || !stages_.back().relu_with_bias() || stages_.back().fp8) return nullptr;
    auto layer = std::make_shared<Stack>(*this);
    layer->stages_.back().finished_by_reader = true;
    return layer;
  }
  ReluEnd relu_end(const LayerIo& io) const override { return stages_.back().end(stage_io(io).back()); }

  bool is_logit_layer() const override {
    return stages_.size() == 1 && more_outputs_ == 0 && stages_[0].is_logit_layer();
  }
  ops::LogitLayer logit_layer(const LayerIo& io) const override {
    const FullyConnected::Io own = stage_io(io)[0];
    return stages_[0].logit_layer({{own.x, own.d_x, below_relu(own.below)}}, own);
  }

  std::shared_ptr<const Layer> behind_concat(size_t inputs) const override {
    return stages_.size() == 1 && more_outputs_ == 0 ? concat_linear(stages_[0], inputs) : nullptr;
  }

 private:
  /// The tensors of each stage.
  std::vector<FullyConnected::Io> stage_io(const LayerIo& io) const {
    std::vector<FullyConnected::Io> all;
    const Tensor *w = io.weights.data(), *d_w = io.d_weights.data(), *scratch = io.scratch.data();
    const ops::Fp8ProductScaling* fp8 = io.fp8.data();
    for (size_t i = 0; i < stages_.size(); ++i) {
      const FullyConnected& stage = stages_[i];
      const bool first = i == 0, last = i + 1 == stages_.size(), train = !io.d_out.empty();
      FullyConnected::Io own{.x = first ? io.in[0] : all[i - 1].y, .w = w, .z = {}, .y = io.out[0]};
      if (!io.transposed.empty()) own.w_transposed = io.transposed[static_cast<size_t>(w - io.weights.data())];
      if (stage.keeps_input_of_activation()) own.z = *scratch++;
      if (stage.own_gradient()) own.d_z = *scratch++;
      if (!last) own.y = *scratch++;
      if (!last) own.d_y = *scratch++;
      if (last && train) own.d_y = io.d_out[0];
      if (train) own.d_x = first ? io.d_in[0] : all[i - 1].d_y;
      if (train) own.d_w = d_w;
      if (stage.needs_scratch()) own.scratch = *scratch++;
      if (stage.fp8) {
        own.fp8_memory =
            FullyConnected::Fp8Memory{scratch[0], scratch[1], io.transient[0], io.transient[1], io.transient[2]};
        scratch += 2;
        own.fp8_scaling = *fp8++;
      }
      own.operands = io.operands;
      if (train && first && !io.below.empty()) own.below = io.below[0];
      if (train && !first && stages_[i - 1].finished_by_reader) own.below = stages_[i - 1].end(all[i - 1]);
      w += stage.weights();
      if (train) d_w += stage.weights();
      all.push_back(own);
    }
    return all;
  }

  const char* type_;
  std::vector<FullyConnected> stages_;
  size_t more_outputs_ = 0;
};

Schema<WidthParams> width_schema(const char* title, const char* nested) {
  using P = WidthParams;
  return Schema<P>(title, nested)
      .need("num_output", &P::num_output, "columns of y", count_from(1))
      .opt("weight_init", &P::weight_init, "initial values of W; default: XavierNorm")
      .opt("bias_init", &P::bias_init, "initial values of b; default: normal with variance 1 / num_output");
}

void check_mlp(MlpParams& params, const std::string& pointer, Problems& problems) {
  if (params.num_outputs.empty())
    problems.error(pointer + "/num_outputs", "names no stage; expected the width of at least one stage");
  if (!params.activations) return;
  if (params.activations->size() != params.num_outputs.size()) {
    problems.error(pointer + "/activations",
                   cat("has ", params.activations->size(), " entries for ", params.num_outputs.size(),
                       " stages; expected one activation for each stage, or set \"activation\" for all stages"));
    params.activations.reset();
    return;
  }
  std::vector<std::string> words;
  for (const auto& [word, activation] : EnumWords<StageActivation>::table()) words.push_back("\"" + word + "\"");
  for (size_t i = 0; i < params.activations->size(); ++i)
    if (!activation_of((*params.activations)[i]))
      problems.error(cat(pointer, "/activations/", i),
                     cat("expected ", one_of(words), ", found \"", (*params.activations)[i], "\""));
}

}  // namespace

LayerType inner_product() {
  return LayerType::of<Stack>("InnerProduct", "y = x W + b, W [in, num_output], b [num_output]", {1, 1}, {1, 1},
                              width_schema("InnerProduct", "fc_param"));
}

LayerType fused_inner_product() {
  using P = FusedParams;
  return LayerType::of<Stack>(
      "FusedInnerProduct", "y = max(x W + b, 0), W [in, num_output], b [num_output]", {1, 4}, {1, 4},
      Schema<P>("FusedInnerProduct")
          .part("fc_param", &P::width, width_schema("FusedInnerProduct", ""),
                "width and initial values, as in InnerProduct")
          .opt("position", &P::position,
               "Head and Body have three additional tops, Body and Tail three additional bottoms; these tensors "
               "are not used")
          .opt("activation", &P::activation, "the activation function, applied to x W + b; None is the identity"));
}

LayerType mlp() {
  using P = MlpParams;
  return LayerType::of<Stack>(
      "MLP",
      "a sequence of stages y = f(x W + b), each of which reads the previous stage; weights W_0, b_0, W_1, "
      "...",
      {1, 1}, {1, 1},
      Schema<P>("MLP", "mlp_param")
          .need("num_outputs", &P::num_outputs, "columns of each stage", count_from(1))
          .alias("num_output")
          .opt("activation", &P::activation, "f of every stage")
          .opt("activations", &P::activations, "f for each stage; overrides activation")
          .opt("use_bias", &P::use_bias, "false: no b")
          .opt("weight_init", &P::weight_init, "initial values of each W; default: XavierNorm")
          .opt("bias_init", &P::bias_init, "initial values of each b; default: normal with variance 1 / columns")
          .together(check_mlp));
}

}  // namespace hctr
