// GRU: one layer of gated recurrent units over a sequence, from the first step to the last.
#include "ops/dense/gru.h"
#include "ops/common/checks.h"

#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/common/copy.h"
#include "ops/common/fill.h"
#include "ops/common/reduce_axis.h"
#include "ops/gemm/linear.h"

namespace hctr {
namespace {

using ops::Transpose;

struct GruParams {
  int64_t num_output = 0, sequence = 0, vector_size = 0;
  Initializer weight_init = Initializer::by_default, bias_init = Initializer::by_default;
};

class Gru : public Layer {
 public:
  Gru(const std::string&, GruParams params)
      : params_(params), units_(params.num_output), steps_(params.sequence), width_(params.vector_size) {}

  LayerSpec spec(const Specs& inputs) const override {
    const DType dtype = inputs[0].dtype, wide = ops::sum_dtype(dtype);
    const int64_t batch = batch_of(inputs[0].shape), rows = batch * steps_;
    const auto start = [&](Initializer word, int64_t in) {
      return initial_values(word == Initializer::by_default ? Initializer::xavier_uniform : word,
                            static_cast<double>(in), static_cast<double>(units_));
    };
    LayerSpec spec{
        .outputs = {TensorSpec(dtype, {batch, steps_, units_})},
        .weights = {{"input_weights", {3 * units_, width_}, start(params_.weight_init, width_)},
                    {"state_weights", {3 * units_, units_}, start(params_.weight_init, units_)},
                    {"bias", {3 * units_}, initial_values(params_.bias_init, 0, static_cast<double>(units_))}}};
    // All elements start with the spec of kDInput and kDState; the following lines set the other specs.
    spec.scratch.resize(kScratch, TensorSpec(dtype, {rows, 3 * units_}));
    spec.scratch[kRows] = TensorSpec(dtype, {rows, width_});
    spec.scratch[kStart] = TensorSpec(dtype, {batch, units_});
    spec.scratch[kBefore] = TensorSpec(dtype, {rows, units_});
    spec.scratch[kOfInput] = TensorSpec(wide, {rows, 3 * units_});
    spec.scratch[kOfState] = TensorSpec(wide, {batch, 3 * units_});
    spec.scratch[kKept] = TensorSpec(wide, {rows, 4 * units_});
    spec.scratch[kThrough] = spec.scratch[kDirect] = TensorSpec(wide, {batch, units_});
    return spec;
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    const Tensor &of_input = io.scratch[kOfInput], &of_state = io.scratch[kOfState], &h = io.out[0];
    if (!is_rows(io.in[0])) ops::copy(ctx, io.in[0], io.scratch[kRows].reshaped(io.in[0].shape()));
    ops::matmul(ctx, rows_of(io), Transpose::no, io.weights[0], Transpose::yes, of_input);
    ops::fill(ctx, 0, io.scratch[kStart]);
    for (int64_t t = 0; t < steps_; ++t) {
      const Tensor before = t == 0 ? io.scratch[kStart] : step(h, t - 1);
      ops::matmul(ctx, before, Transpose::no, io.weights[1], Transpose::yes, of_state);
      ops::gru_step(ctx, step(of_input, t), of_state, io.weights[2], before, step(io.scratch[kKept], t), step(h, t));
    }
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const std::string rows = graph.add("Reshape", {io.x(), graph.numbers({-1, steps_, width_})});
    const std::string by_step = graph.add("Transpose", {rows}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
    // Reorders the gates from r, z, n to ONNX's z, r, n. ONNX weights also have a leading dimension for the direction.
    const auto ordered = [&](const std::string& w, std::vector<int64_t> dims) {
      const std::string whole = graph.add("Reshape", {w, graph.numbers(std::move(dims))});
      const auto gate = [&](int64_t g) { return graph.slice(whole, 1, g * units_, (g + 1) * units_); };
      return graph.add("Concat", {gate(1), gate(0), gate(2)}, {{"axis", int64_t{1}}});
    };
    // `bias` is the bias of the input. `none` is the bias of the state, which is 0.
    const std::string bias = ordered(io.weights[2], {1, 3 * units_});
    const std::string none = graph.add_constant({1, 3 * units_}, std::vector<float>(static_cast<size_t>(3 * units_)));
    const std::string both = graph.add("Concat", {bias, none}, {{"axis", int64_t{1}}});
    const std::string h = graph.add("GRU",
                                    {by_step, ordered(io.weights[0], {1, 3 * units_, width_}),
                                     ordered(io.weights[1], {1, 3 * units_, units_}), both},
                                    {{"hidden_size", units_}, {"linear_before_reset", int64_t{1}}});
    // `h` has the shape [steps, 1, batch, units], `turned` the shape [batch, steps, 1, units].
    const std::string turned = graph.add("Transpose", {h}, {{"perm", std::vector<int64_t>{2, 0, 1, 3}}});
    graph.add_as(io.y(), "Reshape", {turned, graph.rows_of(io.out[0].shape)});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    const Tensor &d_of_input = io.scratch[kDInput], &d_of_state = io.scratch[kDState], &before = io.scratch[kBefore],
                 &h = io.out[0];
    const int64_t batch = h.dim(0), all = steps_ * units_;
    // `before` gets the state before each step: the output of the preceding step, and 0 for the first step.
    const Tensor shifted = before.reshaped({batch, all});
    ops::fill(ctx, 0, shifted.columns(0, units_));
    if (steps_ > 1) ops::copy(ctx, h.reshaped({batch, all}).columns(0, all - units_), shifted.columns(units_, all));
    ops::fill(ctx, 0, io.scratch[kThrough]);
    ops::fill(ctx, 0, io.scratch[kDirect]);
    for (int64_t t = steps_; t-- > 0;) {
      ops::gru_step_backward(ctx, step(io.scratch[kKept], t), step(before, t), step(io.d_out[0], t),
                             io.scratch[kThrough], io.scratch[kDirect], step(d_of_input, t), step(d_of_state, t));
      if (t > 0)
        ops::matmul(ctx, step(d_of_state, t), Transpose::no, io.weights[1], Transpose::no, io.scratch[kThrough]);
    }
    ops::matmul(ctx, d_of_input, Transpose::yes, rows_of(io), Transpose::no, io.d_weights[0]);
    ops::matmul(ctx, d_of_state, Transpose::yes, before, Transpose::no, io.d_weights[1]);
    ops::sum_rows(ctx, d_of_input, io.d_weights[2]);
    if (!io.d_in[0]) return;
    const Tensor& d_x = *io.d_in[0];
    const Tensor d_rows = is_rows(d_x) ? d_x : io.scratch[kRows];
    ops::matmul(ctx, d_of_input, Transpose::no, io.weights[0], Transpose::no, d_rows);
    if (!is_rows(d_x)) ops::copy(ctx, d_rows.reshaped(d_x.shape()), d_x);
  }

 private:
  // Indices into scratch. kRows is used only if the input does not have one row per step. It then contains the input
  // with one row per step, and later the input's gradient in the same layout.
  enum : size_t { kRows, kStart, kBefore, kOfInput, kOfState, kKept, kThrough, kDirect, kDInput, kDState, kScratch };

  int64_t batch_of(const Shape& shape) const {
    if (shape == Shape{shape[0], steps_, width_} || shape == Shape{shape[0], steps_ * width_}) return shape[0];
    if (shape.rank() != 2 || shape[1] != width_)
      throw LayerError("bottom", cat("GRU takes sequences of ", steps_, " vectors of ", width_,
                                     ", as set by the layer's fields: expected a tensor ",
                                     to_string({shape[0], steps_, width_}), ", a matrix with a sequence in each row, ",
                                     "or a matrix with a vector in each row; found shape ", to_string(shape)));
    if (shape[0] % steps_ != 0)
      throw LayerError("gru_param/SeqLength", cat("the ", shape[0], " rows of the tensor of shape ", to_string(shape),
                                                  " are not whole sequences of ", steps_));
    return shape[0] / steps_;
  }

  bool is_rows(const Tensor& x) const { return x.rank() == 2 && x.dim(1) == width_; }

  /// The input, as a matrix with one row per step of each sequence.
  const Tensor& rows_of(const LayerIo& io) const { return is_rows(io.in[0]) ? io.in[0] : io.scratch[kRows]; }

  /// A view of step t of every sequence. `x` has one row per step of each sequence, or the shape [batch, steps,
  /// columns].
  Tensor step(const Tensor& x, int64_t t) const {
    const int64_t batch = x.elements() == 0 ? 0 : x.rank() == 3 ? x.dim(0) : x.dim(0) / steps_;
    const int64_t columns = x.rank() == 3 ? x.dim(2) : x.dim(1);
    return x.reshaped({batch, steps_ * columns}).columns(t * columns, (t + 1) * columns);
  }

  GruParams params_;
  int64_t units_, steps_, width_;
};

}  // namespace

LayerType gru() {
  using P = GruParams;
  return LayerType::of<Gru>(
      "GRU",
      "y_t = h_t = (1 - z) n + z h_{t-1} with r, z = sigmoid(x_t W^T + h_{t-1} R^T + b), n = tanh(x_t W^T + b + r "
      "(h_{t-1} R^T)), h_0 = 0; W [3 num_output, vector_size], R [3 num_output, num_output] and b [3 num_output] "
      "hold r, z, n in this order. y is [batch, SeqLength, num_output]; Reshape with `selected` selects a step of y",
      {1, 1}, {1, 1},
      Schema<P>("GRU", "gru_param")
          .need("num_output", &P::num_output, "number of units: width of the state h and of each step of y",
                count_from(1))
          .need("SeqLength", &P::sequence, "steps of a sequence", count_from(1))
          .need("vector_size", &P::vector_size, "width of each step of x", count_from(1))
          .opt("weight_init", &P::weight_init, "initial values of W and R; default: XavierUniform")
          .opt("bias_init", &P::bias_init, "initial values of b; default: Zero")
          .ignored("batchsize", "the shape of the tensor determines the number of sequences"));
}

}  // namespace hctr
