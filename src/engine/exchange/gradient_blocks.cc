#include "engine/exchange/gradient_blocks.h"

#include <algorithm>
#include <utility>

namespace hctr {
namespace {

/// The part `part` of `parts` of each copy.
std::vector<ops::VectorBlock> part_of(const std::vector<ops::VectorBlock>& blocks, int64_t part, int64_t parts) {
  std::vector<ops::VectorBlock> some;
  for (ops::VectorBlock block : blocks) {
    const int64_t begin = block.count * part / parts, end = block.count * (part + 1) / parts;
    block.from += begin * block.from_stride;
    block.to += begin * block.to_stride;
    block.count = end - begin;
    if (block.count > 0) some.push_back(block);
  }
  return some;
}

}  // namespace

std::vector<ops::VectorBlock> column_copies(const OwnerColumns& owner, const SampleVectors& vectors, int64_t samples,
                                            bool from_message) {
  std::vector<ops::VectorBlock> copies;
  const int64_t bytes = vectors.vector_bytes, count = static_cast<int64_t>(owner.columns.size());
  const auto column = [&](int64_t i) { return owner.columns[static_cast<size_t>(i)]; };
  const auto add = [&](int64_t at_sample, int64_t stride, int64_t in_message, int64_t message_stride, int64_t segment,
                       int64_t segments) {
    std::byte *const sample = vectors.first + at_sample, *const message = owner.message + in_message;
    if (from_message)
      copies.push_back({message, message_stride, sample, stride, segment, segments});
    else
      copies.push_back({sample, stride, message, message_stride, segment, segments});
  };
  const int64_t step = count > 1 ? column(1) - column(0) : vectors.columns;
  bool even = step > 1 && count * step == vectors.columns && vectors.stride == vectors.columns * bytes;
  for (int64_t i = 1; i < count; ++i) even = even && column(i) - column(i - 1) == step;
  if (even) {
    add(column(0) * bytes, step * bytes, 0, bytes, bytes, samples * count);
    return copies;
  }
  for (int64_t first = 0, end = 0; first < count; first = end) {
    for (end = first + 1; end < count && column(end) == column(end - 1) + 1; ++end) continue;
    add(column(first) * bytes, vectors.stride, first * bytes, count * bytes, (end - first) * bytes, samples);
  }
  return copies;
}

GradientBlocks::GradientBlocks(Runtime& runtime, Layout layout)
    : layout_(std::move(layout)),
      to_others_(runtime.device(), StreamPriority::exchange),
      gradients_ready_(runtime.device()),
      sent_(runtime.device()) {
  for (int i = 0; i < std::max(1, layout_.own_copies); ++i) {
    to_own_.emplace_back(runtime.device(), StreamPriority::exchange);
    kept_.emplace_back(runtime.device());
  }
}

bool GradientBlocks::takes(const Tensor& dy) const {
  return dy.row_stride() * static_cast<int64_t>(size_of(dy.dtype())) == layout_.columns * layout_.vector_bytes;
}

void GradientBlocks::send(Context& ctx, Tensor dy) {
  HCTR_EXPECT(!ctx.queue(), "copy engines cannot send gradients inside a Lockstep");
  const SampleVectors vectors{dy.bytes(), layout_.columns, layout_.vector_bytes,
                              layout_.columns * layout_.vector_bytes};
  std::vector<ops::VectorBlock> others, own;
  for (size_t r = 0; r < layout_.owners.size(); ++r) {
    const auto copies = column_copies(layout_.owners[r], vectors, layout_.samples, false);
    auto& to = r == static_cast<size_t>(layout_.own) ? own : others;
    to.insert(to.end(), copies.begin(), copies.end());
  }
  gradients_ready_.record(ctx.stream());
  const auto copy = [&](StreamRef stream, const std::vector<ops::VectorBlock>& blocks, Event& done) {
    gradients_ready_.make_wait(stream);
    Context engine(ctx.runtime(), stream, ctx.state());
    ops::copy_blocks(engine, blocks);
    done.record(stream);
    done.make_wait(ctx.stream());
  };
  copy(to_others_, others, sent_);
  for (size_t i = 0; i < to_own_.size(); ++i)
    copy(to_own_[i], part_of(own, static_cast<int64_t>(i), std::ssize(to_own_)), kept_[i]);
}

}  // namespace hctr
