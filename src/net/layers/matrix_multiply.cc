// MatrixMultiply: the matrix product of its two inputs; 3-D inputs are multiplied matrix by matrix.
#include "net/layers/layer_type.h"
#include "net/layers/onnx_graph.h"
#include "ops/gemm/batched_matmul.h"

namespace hctr {
namespace {

using ops::Matrices, ops::Transpose;

class MatrixMultiply : public Layer {
 public:
  MatrixMultiply(const std::string&, NoParams) {}

  LayerSpec spec(const Specs& inputs) const override {
    const Shape &a = inputs[0].shape, &b = inputs[1].shape;
    const int rank = a.rank();
    if (rank < 2)
      throw LayerError("bottom/0",
                       cat("MatrixMultiply takes tensors of 2 to 4 dimensions, found shape ", to_string(a)));
    const bool wide = rank == 2 && b.rank() == 3;
    bool fits = b.rank() == rank || wide;
    for (int d = 0; fits && d < rank - 2; ++d) fits = a[d] == b[d];
    if (!fits)
      throw LayerError("bottom/1",
                       cat("MatrixMultiply takes tensors with the same number of matrices: the first has shape ",
                           to_string(a), ", this one ", to_string(b)));
    if (a[rank - 1] != b[wide ? 0 : rank - 2])
      throw LayerError("bottom/1",
                       cat("the matrices of the first tensor have ", a[rank - 1],
                           " columns, but the matrices of the second have ", b[wide ? 0 : rank - 2],
                           " rows; expected equal numbers. The shapes are ", to_string(a), " and ", to_string(b)));
    if (wide) return {.outputs = {TensorSpec(inputs[0].dtype, {a[0], b[1], b[2]})}};
    Shape out = a;
    out[rank - 1] = b[rank - 1];
    return {.outputs = {TensorSpec(inputs[0].dtype, out)}};
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    multiply(ctx, io.in[0], Transpose::no, io.in[1], Transpose::no, io.out[0]);
  }

  void to_onnx(OnnxGraph& graph, const OnnxIo& io) const override {
    const std::string& b = io.in[1].name;
    if (io.in[0].shape.rank() == io.in[1].shape.rank()) return graph.add_as(io.y(), "MatMul", {io.x(), b});
    // the 0 makes ONNX keep the number of rows of b
    const std::string flat_b = graph.add("Reshape", {b, graph.numbers({0, -1})});
    graph.add_as(io.y(), "Reshape", {graph.add("MatMul", {io.x(), flat_b}), graph.rows_of(io.out[0].shape)});
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) multiply(ctx, io.d_out[0], Transpose::no, io.in[1], Transpose::yes, *io.d_in[0]);
    if (io.d_in[1]) multiply(ctx, io.in[0], Transpose::yes, io.d_out[0], Transpose::no, *io.d_in[1]);
  }

 private:
  /// Flattens [k, m, n] to [k, m * n], for a GEMM whose other operand is a matrix.
  static Tensor flat(const Tensor& t) { return t.reshaped({t.rows(), t.row_elements()}); }

  static void multiply(Context& ctx, const Tensor& a, Transpose of_a, const Tensor& b, Transpose of_b,
                       const Tensor& c) {
    if (a.rank() == 2 || c.rank() == 2) return ops::matmul(ctx, flat(a), of_a, flat(b), of_b, flat(c));
    ops::batched_matmul(ctx, Matrices::of(a), of_a, Matrices::of(b), of_b, 1, Matrices::of(c));
  }
};

}  // namespace

LayerType matrix_multiply() {
  return LayerType::of<MatrixMultiply>("MatrixMultiply",
                                       "y = a b. Shapes: [m, k] and [k, n]; for batches [batch, m, k] and [batch, "
                                       "k, n]; or [m, k] and [k, n, l], which gives [m, n, l]",
                                       {2, 2}, {1, 1}, Schema<NoParams>("MatrixMultiply"));
}

}  // namespace hctr
