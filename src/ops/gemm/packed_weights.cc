#include "ops/gemm/packed_weights.h"

#include <new>
#include <utility>

namespace hctr::ops {
namespace {

constexpr std::align_val_t kAlignment{64};  // bytes of a cache line, and of the widest register

}  // namespace

void PackedWeights::FreeAligned::operator()(float* panels) const { ::operator delete(panels, kAlignment); }

void PackedWeights::add(const Tensor& w) {
  if (w.dtype() != DType::f32 || w.rank() != 2 || w.device().is_cuda()) return;
  if (w.dim(0) == 0 || w.dim(1) < packed_width() || packed_.contains(w.bytes())) return;
  const size_t bytes = static_cast<size_t>(packed_elements(w.dim(0), w.dim(1))) * sizeof(float);
  std::unique_ptr<float[], FreeAligned> panels(static_cast<float*>(::operator new(bytes, kAlignment)));
  pack_columns({w.data<const float>(), w.row_stride(), 1}, w.dim(0), w.dim(1), panels.get());
  packed_.emplace(w.bytes(), Packed{w.spec(), std::move(panels)});
  bytes_ += bytes;
}

std::optional<PanelMatrix> PackedWeights::find(const Tensor& w) const {
  const auto found = packed_.find(w.bytes());
  if (found == packed_.end() || !(found->second.spec == w.spec())) return std::nullopt;
  return PanelMatrix{found->second.panels.get(), w.dim(0), packed_width()};
}

}  // namespace hctr::ops
