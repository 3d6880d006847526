#include "net/graph/fp8_scales.h"

#include "core/device/copy_bytes.h"
#include "core/device/profiler.h"
#include "ops/gemm/fp8_product.h"

namespace hctr {
namespace {

// Scale factors of the first step, which has no amax history. The FP8 formats span about 18 binary orders of magnitude,
// enough for activations at scale 8. Weights are small and need a larger scale. Gradients of a mean over the batch are
// smaller still and need the largest.
constexpr float kFirstOfX = 8, kFirstOfW = 16, kFirstOfGradient = 65536;

}  // namespace

size_t fp8_products(const Graph& graph) {
  size_t products = 0;
  for (const Node& node : graph.nodes) products += node.spec.fp8_products;
  return products;
}

Fp8Scales::Fp8Scales(const Graph& graph, Runtime& runtime)
    : products_(fp8_products(graph)), scales_(runtime.device(), products_ * kTensors * sizeof(ops::Fp8Scale)) {
  first_.push_back(0);
  for (const Node& node : graph.nodes) first_.push_back(first_.back() + node.spec.fp8_products);
  if (empty()) return;
  Context ctx(runtime, runtime.compute_stream());
  ops::expect_fp8(ctx);
  amax_.add(TensorSpec(DType::f32, {static_cast<int64_t>(products_ * kTensors)}));
  amax_.build(runtime.device());
  std::vector<ops::Fp8Scale> start;
  const auto add = [&](ops::Fp8Format format, float factor) {
    start.push_back({.inverse = 1 / factor, .factor = factor, .format = format});
  };
  for (size_t p = 0; p < products_; ++p) {
    add(ops::Fp8Format::e4m3, kFirstOfX);
    add(ops::Fp8Format::e4m3, kFirstOfW);
    add(ops::Fp8Format::e5m2, kFirstOfGradient);
  }
  copy_bytes(runtime.compute_stream(), scales_.data(), start.data(), start.size() * sizeof(ops::Fp8Scale));
  runtime.compute_stream().synchronize();
}

ops::Fp8Scaling Fp8Scales::scaling(size_t number, ops::Fp8Format format) const {
  return {reinterpret_cast<const ops::Fp8Scale*>(scales_.data()) + number, amax_.get(0).data<float>() + number, format};
}

std::vector<ops::Fp8ProductScaling> Fp8Scales::of_node(size_t node) const {
  std::vector<ops::Fp8ProductScaling> all;
  for (size_t p = first_[node]; p < first_[node + 1]; ++p)
    all.push_back({scaling(p * kTensors, ops::Fp8Format::e4m3), scaling(p * kTensors + 1, ops::Fp8Format::e4m3),
                   scaling(p * kTensors + 2, ops::Fp8Format::e5m2)});
  return all;
}

void Fp8Scales::finish(Context& ctx, Communicator& comm) const {
  if (empty()) return;
  const ProfiledPart part(ctx, "update", "weights", "scales of FP8");
  comm.all_reduce(ctx, amax_.get(0), Reduce::max);
  ops::finish_fp8_scales(ctx, amax_.get(0), reinterpret_cast<ops::Fp8Scale*>(scales_.data()));
}

}  // namespace hctr
