#include "our_gemms.h"

#include <exception>

#include "core/device/lockstep.h"
#include "ops/common/part_totals.cuh"
#include "ops/gemm/gradient_through_relu.h"
#include "ops/gemm/linear_dropout.h"
#include "ops/gemm/weight_gradient.h"

namespace hctr::gemm_bench {
namespace {

class OurKernel : public Candidate {
 public:
  OurKernel(Context& ctx, Operator op, Type type)
      : ctx_(&ctx), op_(op), dtype_(type == Type::f16 ? DType::f16 : DType::bf16) {}
  std::string name() const override { return "ours"; }
  std::string add_set(const std::vector<Gemm>& gemms, int) override {
    sets_.push_back(gemms);
    return {};
  }
  void drop_sets() override { sets_.clear(); }
  bool can_start_early() const override { return true; }
  SumLayout sums(int n) const override { return {64, n}; }
  std::string launch(int set, cudaStream_t, bool) override {
    try {
      start(sets_.at(static_cast<size_t>(set)));
      return {};
    } catch (const std::exception& error) {
      return error.what();
    }
  }

 private:
  Tensor matrix(const void* data, int rows, int columns, DType dtype) const {
    const int64_t stride = dtype == DType::f32 ? columns : row_stride(columns);
    return Tensor(const_cast<void*>(data), TensorSpec(dtype, {rows, columns}, stride), ctx_->device());
  }
  void start(const std::vector<Gemm>& gemms) const {
    Lockstep launches(*ctx_);
    for (const Gemm& g : gemms) {
      if (op_ == Operator::forward) {
        const Tensor bias(const_cast<void*>(g.bias), TensorSpec(dtype_, {g.n}), ctx_->device());
        ops::hopper::linear_relu(*ctx_, matrix(g.a, g.m, g.k, dtype_), matrix(g.b, g.k, g.n, dtype_), bias,
                                 matrix(g.result, g.m, g.n, dtype_));
      } else if (op_ == Operator::dgrad) {
        ops::hopper::gradient_through_relu(*ctx_, matrix(g.a, g.m, g.k, dtype_), matrix(g.b, g.n, g.k, dtype_),
                                           g.factor, matrix(g.y, g.m, g.n, dtype_), matrix(g.result, g.m, g.n, dtype_),
                                           g.sums, {});
      } else {
        Context own = launches.next();
        ops::hopper::add_weight_gradient(own, matrix(g.a, g.k, g.m, dtype_), matrix(g.b, g.k, g.n, dtype_),
                                         matrix(g.result, g.m, g.n, DType::f32));
      }
    }
    launches.run();
  }

  Context* ctx_;
  Operator op_;
  DType dtype_;
  std::vector<std::vector<Gemm>> sets_;
};

}  // namespace

std::unique_ptr<Candidate> our_kernel(Context& ctx, Operator op, Type type) {
  return std::make_unique<OurKernel>(ctx, op, type);
}

void add_column_sums(Context& ctx, const Gemm& gemm, SumLayout layout) {
  const int64_t parts = (gemm.m + layout.rows - 1) / layout.rows;
  ops::cuda::launch_totals<float>(ctx, "bias_gradient", {gemm.sums, parts, layout.stride, gemm.n, gemm.d_bias});
}

}  // namespace hctr::gemm_bench
