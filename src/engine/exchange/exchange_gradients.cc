// The backward pass of an exchange: kernels or copy engines send gradients to the owners of rows.
#include <algorithm>
#include <utility>

#include "engine/exchange/exchange.h"

namespace hctr {

/// Copy engines are used if each slot has one owner, to which all its gradients go unchanged. For sharded slots and
/// replicated keys, kernels send only the gradients that an owner needs. For vectors shorter than kLong, kernels are
/// faster.
void Exchange::make_gradient_blocks(Runtime& runtime) {
  constexpr size_t kLong = 128;  // bytes
  const bool as_they_are =
      one_key_each() || shape_.combiner == ops::Combiner::sum || shape_.combiner == ops::Combiner::none;
  const bool whole = shape_.replicated != ReplicatedPart::keys &&
                     std::ranges::all_of(at_owners_, [](const auto& owners) { return owners.size() <= 1; });
  const auto columns = static_cast<int64_t>(at_owners_.size());
  if (!to_owners_->direct() || !as_they_are || !whole || vector_bytes() < kLong || comm_.size() == 1) return;
  GradientBlocks::Layout layout{.own = comm_.rank(),
                                .samples = shape_.samples,
                                .columns = columns,
                                .vector_bytes = static_cast<int64_t>(vector_bytes())};
  for (int r = 0; r < comm_.size(); ++r)
    layout.owners.push_back({{}, r == comm_.rank() ? own_vectors() : to_owners_->destination(r)});
  for (int64_t c = 0; c < columns; ++c)
    for (const AtOwner& at : at_owners_[static_cast<size_t>(c)])
      layout.owners[static_cast<size_t>(at.owner)].columns.push_back(c);
  blocks_ = std::make_unique<GradientBlocks>(runtime, std::move(layout));
}

Tensor Exchange::owned_gradients() const {
  if (!unique_) return owners_memory();
  return Tensor(of_owned_->data(), TensorSpec(shape_.dtype, {unique_->gradients(), 1, piece_dim_}),
                of_owned_->device());
}

KeyGradients Exchange::key_gradients(int buffer) const {
  if (!unique_) return {};
  return {unique_->key_gradients(buffer), unique_->gradients()};
}

void Exchange::expect_gradients(Context& ctx) {
  if (!unique_) to_owners_->begin_write(ctx);
}

void Exchange::send_gradients(Context& ctx, int buffer, Tensor dy, ops::OverflowSearch search) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  if (blocks_ && !search.found && dy.dtype() == shape_.dtype && blocks_->takes(dy))
    blocks_->send(ctx, dy);
  else
    ops::split_gradients(ctx, at.mine, at.split, shape_.combiner, dy, search);
  unique_ ? unique_->send_gradients(ctx, buffer, unique_memory(), search) : to_owners_->end_write(ctx);
}

void Exchange::receive_gradients(Context& ctx, int buffer) {
  unique_ ? unique_->receive_gradients(ctx, buffer, unique_memory()) : to_owners_->wait(ctx);
}

}  // namespace hctr
