// Launches the fused kernel of ops/loss/logit_loss_kernel.cuh, or separate operators if the kernel does not support the
// layer.
#include "ops/loss/logit_loss.h"

#include <algorithm>
#include <bit>

#include "core/device/profiler.h"
#include "ops/common/reduce.cuh"
#include "ops/gemm/concat_linear.cuh"
#include "ops/loss/logit_loss_kernel.cuh"
#include "ops/loss/logit_loss_parts.h"

namespace hctr::ops {
namespace {

template <class T>
LogitColumn<T> column_of(const Tensor& t) {
  return {t.data<T>(), t.row_stride()};
}

/// Number of packs of T per row, over all inputs.
template <class T>
int64_t packs_of_row(const LogitLayer& layer) {
  int64_t packs = 0;
  for (const ConcatLinearInput& input : layer.inputs)
    packs += cuda::chunks_per_row(input.x.dim(1), cuda::kConcatPack<T>);
  return packs;
}

/// Whether the fused kernel supports the layer. The result is the same in logit_loss() and logit_loss_backward(),
/// because both get the same arguments.
bool fits_one_kernel(const LogitLayer& layer, const std::optional<LogitSum>& sum) {
  bool fits = layer.y.rows() > 0 && (!sum || sum->terms.size() <= kMostTerms);
  dispatch_float(layer.y.dtype(), [&]<class T>() {
    constexpr int V = cuda::kConcatPack<T>;
    const int64_t packs = packs_of_row<T>(layer);
    fits = fits && packs > 0 && packs <= kMostPacks * kLogitThreads;
    for (const ConcatLinearInput& input : layer.inputs)
      fits = fits && cuda::takes_packs<V>(input.x.view<const T, 2>()) &&
             (!input.d_x || cuda::takes_packs<V>(input.d_x->view<T, 2>()));
  });
  return fits && reinterpret_cast<uintptr_t>(layer.scratch.bytes()) % sizeof(double) == 0;
}

template <class T>
void set_inputs(const LogitLayer& layer, LogitPass<T>& pass) {
  constexpr int V = cuda::kConcatPack<T>;
  for (const ConcatLinearInput& input : layer.inputs) {
    const cuda::Strided<T> w{layer.w.data<const T>() + pass.width * layer.w.row_stride(), layer.w.row_stride()};
    pass.inputs[pass.count] = {input.x.view<const T, 2>(),
                               input.d_x ? input.d_x->view<T, 2>() : View<T, 2>{nullptr, {0, 0}, 0},
                               w,
                               pass.width,
                               input.below_relu ? input.below_relu->factor : 1,
                               w.template takes_packs<V>(),
                               input.below_relu.has_value()};
    pass.first_pack[pass.count + 1] =
        pass.first_pack[pass.count] + static_cast<int>(cuda::chunks_per_row(input.x.dim(1), V));
    ++pass.count;
    pass.width += input.x.dim(1);
  }
  const auto lanes = std::bit_ceil(static_cast<uint32_t>(pass.first_pack[pass.count]));
  pass.lane_bits = std::countr_zero(std::clamp<uint32_t>(lanes, 32, kLogitThreads));
  pass.part_width = concat_linear_part_width(pass.width);
}

template <class T>
void set_terms(const LogitLayer& layer, const LogitSum& sum, const Tensor& d_logits, LogitPass<T>& pass) {
  for (const Tensor& term : sum.terms) {
    if (term.bytes() == layer.y.bytes()) pass.of_layer = pass.term_count;
    pass.terms[pass.term_count++] = column_of<const T>(term);
  }
  for (const std::optional<Tensor>& d_term : sum.d_terms)
    if (d_term && d_term->bytes() != d_logits.bytes()) pass.d_terms[pass.d_term_count++] = column_of<T>(*d_term);
}

template <class T>
auto kernel_of(const LogitPass<T>& pass) {
  if (pass.first_pack[pass.count] > kLogitThreads) return logit_loss_kernel<kMostPacks, false, T>;
  const int groups = kLogitThreads >> pass.lane_bits;
  return pass.rows_per_part <= kRowsOfOneTurn * groups ? logit_loss_kernel<1, true, T> : logit_loss_kernel<1, false, T>;
}

}  // namespace

void cuda::logit_loss(Context& ctx, const LogitLayer& layer, const std::optional<LogitSum>& sum,
                      const LogitTarget& target) {
  if (!fits_one_kernel(layer, sum)) return one_by_one::logit_loss(ctx, layer, sum, target);
  const int64_t rows = layer.y.rows(), parts = logit_loss_parts(rows);
  for (const ConcatLinearInput& input : layer.inputs)
    count_flops(ctx, (input.d_x ? 6.0 : 4.0) * static_cast<double>(rows) * static_cast<double>(input.x.dim(1)));
  dispatch_float(layer.y.dtype(), [&]<class T>() {
    LogitPass<T> pass{};
    set_inputs(layer, pass);
    if (sum) set_terms(layer, *sum, target.gradient.d_logits, pass);
    pass.bias = layer.bias ? layer.bias->data<const T>() : nullptr;
    pass.y = column_of<T>(layer.y);
    pass.logits = column_of<T>(logits_of(layer, sum));
    pass.d_logits = column_of<T>(target.gradient.d_logits);
    pass.label = column_of<const float>(target.label);
    pass.probability = column_of<float>(target.probability);
    pass.factor = factor_of<float>(target.weights);
    pass.weight = target.gradient.weight;
    pass.rows = rows;
    pass.rows_per_part = (rows + parts - 1) / parts;
    pass.losses = reinterpret_cast<double*>(layer.scratch.bytes());
    pass.sums = reinterpret_cast<float*>(pass.losses + parts);
    pass.loss = target.loss.data<float>();
    pass.blocks_done = reinterpret_cast<uint32_t*>(target.blocks_done.data<int32_t>());
    launch(ctx, "logit_loss", early({parts, kLogitThreads, 0}), kernel_of(pass), ctx.state(), pass);
  });
}

void cuda::logit_loss_backward(Context& ctx, const LogitLayer& layer, const std::optional<LogitSum>& sum,
                               const LogitTarget& target) {
  if (!fits_one_kernel(layer, sum)) return one_by_one::logit_loss_backward(ctx, layer, sum, target);
  const int64_t parts = logit_loss_parts(layer.y.rows());
  add_concat_totals(ctx, "logit_loss totals", layer.scratch.data<float>() + parts * (sizeof(double) / sizeof(float)),
                    parts, layer.inputs, layer.d_w, layer.d_bias);
}

}  // namespace hctr::ops
