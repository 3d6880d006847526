// MultiHeadAttention: for each query and head, the mean of the values, weighted by the softmax of the products of query
// and keys. Source: A. Vaswani et al., "Attention Is All You Need", NeurIPS 2017, section 3.2.
#include <cmath>

#include "net/layers/layer_type.h"
#include "net/layers/onnx_parts.h"
#include "ops/common/fill.h"
#include "ops/dense/softmax.h"
#include "ops/gemm/batched_matmul.h"

namespace hctr {
namespace {

using ops::Matrices, ops::Transpose;

struct AttentionParams {
  int64_t num_attention_heads = 1;
};

class MultiHeadAttention : public Layer {
 public:
  MultiHeadAttention(const std::string&, AttentionParams params) : heads_(params.num_attention_heads) {}

  LayerSpec spec(const Specs& inputs) const override {
    for (size_t i = 0; i < 3; ++i) {
      const std::string field = cat("bottom/", i);
      const Shape& shape = inputs[i].shape;
      need_rank(inputs[i], 3, field, "MultiHeadAttention");
      if (shape[2] % heads_ != 0)
        throw LayerError("num_attention_heads",
                         cat("the ", shape[2], " columns of bottom ", i, " cannot be divided into ", heads_, " heads"));
      if (shape[0] != inputs[0].shape[0])
        throw LayerError(field, cat("MultiHeadAttention takes queries, keys and values of one batch: the queries have ",
                                    inputs[0].shape[0], " samples, this bottom has ", shape[0]));
    }
    const Shape &queries = inputs[0].shape, &keys = inputs[1].shape, &values = inputs[2].shape;
    if (keys[2] != queries[2])
      throw LayerError("bottom/1", cat("the queries have ", queries[2], " columns, the keys ", keys[2],
                                       "; expected equal last dimensions, because queries and keys are multiplied"));
    if (values[1] != keys[1])
      throw LayerError(
          "bottom/2", cat("there are ", keys[1], " keys, but ", values[1], " values; expected one value for each key"));
    const TensorSpec scores(inputs[0].dtype, {queries[0], heads_, queries[1], keys[1]});
    if (inputs.size() == 4 && !ops::mask_fits(inputs[3].shape, scores.shape))
      throw LayerError("bottom/3", cat("the mask has shape ", to_string(inputs[3].shape), "; it must be ",
                                       to_string({queries[0], 1, queries[1], keys[1]}), ", ",
                                       to_string({queries[0], 1, 1, keys[1]}), " or ", to_string(scores.shape)));
    return {.outputs = {TensorSpec(inputs[0].dtype, {queries[0], queries[1], values[2]})}, .scratch = {scores, scores}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    const Tensor& shares = io.scratch[0];
    const Matrices score = Matrices::of(shares);
    ops::batched_matmul(ctx, heads(io.in[0]), Transpose::no, heads(io.in[1]), Transpose::yes, scale(io), score);
    ops::softmax(ctx, shares, mask(io), shares);
    ops::batched_matmul(ctx, score, Transpose::no, heads(io.in[2]), Transpose::no, 1, heads(io.out[0]));
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const auto by_head = [&](size_t i, std::vector<int64_t> perm) {
      const Shape& shape = io.in[i].shape;
      const std::string split =
          graph.add("Reshape", {io.in[i].name, graph.numbers({-1, shape[1], heads_, shape[2] / heads_})});
      return graph.add("Transpose", {split}, {{"perm", std::move(perm)}});
    };
    const Shape &queries = io.in[0].shape, &keys = io.in[1].shape;
    const std::string products = graph.add("MatMul", {by_head(0, {0, 2, 1, 3}), by_head(1, {0, 2, 3, 1})});
    const auto dim = static_cast<double>(queries[2] / heads_);
    const OnnxIo::Value scores{graph.add("Mul", {products, graph.number(static_cast<float>(1 / std::sqrt(dim)))}),
                               {queries[0], heads_, queries[1], keys[1]}};
    const std::string shares = graph.name("shares");
    add_softmax(graph, scores, io.in.size() == 4 ? std::optional(io.in[3]) : std::nullopt, shares);
    const std::string of_heads = graph.add("MatMul", {shares, by_head(2, {0, 2, 1, 3})});
    const std::string turned = graph.add("Transpose", {of_heads}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    graph.add_as(io.y(), "Reshape", {turned, graph.rows_of(io.out[0].shape)});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    const Tensor &shares = io.scratch[0], &d_shares = io.scratch[1];
    const Matrices share = Matrices::of(shares), d_score = Matrices::of(d_shares), d_out = heads(io.d_out[0]);
    if (io.d_in[2]) ops::batched_matmul(ctx, share, Transpose::yes, d_out, Transpose::no, 1, heads(*io.d_in[2]));
    if (io.d_in[0] || io.d_in[1]) {
      ops::batched_matmul(ctx, d_out, Transpose::no, heads(io.in[2]), Transpose::yes, 1, d_score);
      ops::softmax_backward(ctx, shares, mask(io), d_shares, d_shares);
    }
    if (io.d_in[0])
      ops::batched_matmul(ctx, d_score, Transpose::no, heads(io.in[1]), Transpose::no, scale(io), heads(*io.d_in[0]));
    if (io.d_in[1])
      ops::batched_matmul(ctx, d_score, Transpose::yes, heads(io.in[0]), Transpose::no, scale(io), heads(*io.d_in[1]));
    if (io.in.size() == 4 && io.d_in[3]) ops::fill(ctx, 0, *io.d_in[3]);
  }

 private:
  Matrices heads(const Tensor& x) const { return Matrices::of_heads(x, heads_); }
  float scale(const LayerIo& io) const {
    return static_cast<float>(1 / std::sqrt(static_cast<double>(io.in[0].dim(2) / heads_)));
  }
  static std::optional<Tensor> mask(const LayerIo& io) {
    return io.in.size() == 4 ? std::optional(io.in[3]) : std::nullopt;
  }

  int64_t heads_;
};

}  // namespace

LayerType multi_head_attention() {
  using P = AttentionParams;
  return LayerType::of<MultiHeadAttention>(
      "MultiHeadAttention",
      "y = softmax(Q K^T / sqrt(d)) V for each head, which has d columns of each bottom. Bottoms: queries [batch, "
      "from, hidden], keys and values [batch, to, hidden], and optionally a mask [batch, 1, from, to] or [batch, "
      "1, 1, to], in which 0 masks a key",
      {3, 4}, {1, 1},
      Schema<P>("MultiHeadAttention")
          .opt("num_attention_heads", &P::num_attention_heads, "number of heads; each has an equal number of columns",
               count_from(1))
          .ignored("transpose_b", "the program always transposes keys"));
}

}  // namespace hctr
