#include "engine/exchange/gradient_blocks.h"

#include <utility>

namespace hctr {

GradientBlocks::GradientBlocks(Runtime& runtime, Layout layout)
    : layout_(std::move(layout)),
      to_others_(runtime.device(), StreamPriority::exchange),
      to_own_(runtime.device(), StreamPriority::exchange),
      gradients_ready_(runtime.device()),
      sent_(runtime.device()),
      kept_(runtime.device()) {}

bool GradientBlocks::takes(const Tensor& dy) const {
  return dy.row_stride() * static_cast<int64_t>(size_of(dy.dtype())) == layout_.columns * layout_.vector_bytes;
}

/// Adds one block if all columns have equal distances, including the distance from the last column of a sample to the
/// first column of the next sample. If not, adds one block per run of adjacent columns.
void GradientBlocks::add_blocks(const OwnerColumns& owner, const std::byte* dy,
                                std::vector<ops::VectorBlock>& to) const {
  const int64_t bytes = layout_.vector_bytes, count = static_cast<int64_t>(owner.columns.size());
  const auto column = [&](int64_t i) { return owner.columns[static_cast<size_t>(i)]; };
  const int64_t step = count > 1 ? column(1) - column(0) : layout_.columns;
  bool even = step > 1 && count * step == layout_.columns;
  for (int64_t i = 1; i < count; ++i) even = even && column(i) - column(i - 1) == step;
  if (even) {
    to.push_back({dy + column(0) * bytes, step * bytes, owner.message, bytes, bytes, layout_.samples * count});
    return;
  }
  for (int64_t first = 0, end = 0; first < count; first = end) {
    for (end = first + 1; end < count && column(end) == column(end - 1) + 1; ++end) continue;
    to.push_back({dy + column(first) * bytes, layout_.columns * bytes, owner.message + first * bytes, count * bytes,
                  (end - first) * bytes, layout_.samples});
  }
}

void GradientBlocks::send(Context& ctx, Tensor dy) {
  HCTR_EXPECT(!ctx.queue(), "copy engines cannot send gradients inside a Lockstep");
  std::vector<ops::VectorBlock> others, own;
  for (size_t r = 0; r < layout_.owners.size(); ++r)
    add_blocks(layout_.owners[r], dy.bytes(), r == static_cast<size_t>(layout_.own) ? own : others);
  gradients_ready_.record(ctx.stream());
  const auto copy = [&](StreamRef stream, const std::vector<ops::VectorBlock>& blocks, Event& done) {
    gradients_ready_.make_wait(stream);
    Context engine(ctx.runtime(), stream, ctx.state());
    ops::copy_blocks(engine, blocks);
    done.record(stream);
    done.make_wait(ctx.stream());
  };
  copy(to_others_, others, sent_);
  copy(to_own_, own, kept_);
}

}  // namespace hctr
