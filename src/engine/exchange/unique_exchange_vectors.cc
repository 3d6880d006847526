// The exchange of vectors and gradients in a UniqueExchange.
#include <algorithm>

#include "engine/exchange/unique_exchange.h"
#include "ops/common/copy.h"
#include "ops/embedding/embedding_pool.h"
#include "ops/embedding/embedding_update.h"

namespace hctr {
namespace {

/// Shifts the ranges by one vector, because vector 0 of asked_vectors_ is not part of a message.
RankRanges after_one(RankRanges ranges) {
  for (int64_t& begin : ranges.begin) ++begin;
  return ranges;
}

}  // namespace

Tensor UniqueExchange::words_at(std::byte* memory, int64_t count) const {
  const DType word = layout_.vector_bytes() % 4 == 0 ? DType::i32 : DType::f16;
  return Tensor(memory, TensorSpec(word, {count * layout_.vector_bytes() / static_cast<int64_t>(size_of(word))}),
                arena_.get(bags_).device());
}

Tensor UniqueExchange::words_of(size_t ticket) const {
  const Tensor memory = arena_.get(ticket);
  return words_at(memory.bytes(), static_cast<int64_t>(memory.spec().bytes()) / layout_.vector_bytes());
}

void UniqueExchange::send(Context& ctx, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive) {
  const int64_t words = layout_.vector_bytes() / static_cast<int64_t>(size_of(in.dtype()));
  const auto in_words = [&](RankRanges ranges) {
    for (int64_t& begin : ranges.begin) begin *= words;
    for (int64_t& count : ranges.count) count *= words;
    return ranges;
  };
  all_to_all(ctx, in, in_words(send), out, in_words(receive));
}

void UniqueExchange::sum_lists(Context& ctx, const int32_t* offsets, const int32_t* rows, int64_t count,
                               ops::RowMemory table, std::byte* sums) const {
  if (count == 0) return;
  ops::pool(ctx, {.offsets = offsets, .slots = 1, .samples = count, .columns = 1}, rows, table, ops::Combiner::sum,
            Tensor(sums, TensorSpec(layout_.dtype, {count, 1, layout_.dim}), ctx.device()));
}

RankRanges UniqueExchange::without_own(RankRanges ranges, int64_t own) const {
  const auto me = static_cast<size_t>(comm_.rank());
  ranges.begin[me] += own;
  ranges.count[me] -= own;
  return ranges;
}

void UniqueExchange::copy_bags(Context& ctx, const Batch& at, std::byte* of_samples, bool pack) {
  const auto part = [&](int64_t begin, int64_t end) {
    const ops::ListedVectors some{of_samples, list(at.requested) + begin}, dense{vector(bags_, begin)};
    ops::copy_listed(ctx, pack ? some : dense, pack ? dense : some, end - begin, layout_.vector_bytes());
  };
  const int64_t own = at.sizes.bags.begin[static_cast<size_t>(comm_.rank())];
  part(0, own);
  part(own + at.sizes.own_bags, end_of(at.sizes.bags));
}

void UniqueExchange::send_vectors(Context& ctx, int buffer, const Memory& memory, const OwnedRows& rows) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  answer(ctx, at, rows);
  hand_out(ctx, at, memory);
  copy_bags(ctx, at, memory.of_samples, false);
  bytes_.of_full_size += full_vectors_;
}

/// Between hosts, sends the vectors that the gathering ranks have requested.
void UniqueExchange::answer(Context& ctx, const Batch& at, const OwnedRows& owned) {
  const ops::OwnerLists lists = owner_lists(at);
  if (at.sizes.listed > 0)
    ops::copy_rows(ctx, lists.keys, at.sizes.listed, owned.rows, sizeof(int32_t), list(answered_rows_));
  sum_lists(ctx, lists.offsets, list(answered_rows_), lists.vectors, owned.table, vector(owned_vectors_, 0));
  send(ctx, words_of(owned_vectors_), at.sizes.vectors_answered, words_of(asked_vectors_),
       after_one(at.sizes.vectors_asked));
}

/// Within the host, sends each rank the vectors of its bags. Vectors of this rank's own rows come first.
void UniqueExchange::hand_out(Context& ctx, const Batch& at, const Memory& memory) {
  for (size_t h = 0; h < groups_.here().size(); ++h) {
    const int rank = groups_.here()[h];
    const int64_t begin = at.sizes.items.begin[static_cast<size_t>(rank)], own = at.sizes.own[h],
                  others = at.sizes.items.count[static_cast<size_t>(rank)] - own;
    if (rank != comm_.rank())
      ops::copy_listed(ctx, {memory.of_owned, list(at.own) + begin}, {vector(through_, begin)}, own,
                       layout_.vector_bytes());
    sum_lists(ctx, list(at.bag_offsets) + begin + own, list(at.bag_vectors), others,
              {arena_.get(asked_vectors_).bytes(), layout_.dtype}, vector(through_, begin + own));
  }
  send(ctx, words_of(through_), without_own(at.sizes.items, at.sizes.own_bags), words_of(bags_),
       without_own(at.sizes.bags, at.sizes.own_bags));
}

/// Sends gradients in two stages. Within the host, the gathering ranks receive the gradients. If
/// layout_.sums_gradients(), they sum these gradients. Between hosts, the gathering ranks send the results to the
/// owners.
void UniqueExchange::send_gradients(Context& ctx, int buffer, const Memory& memory, const ops::OverflowSearch& search) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  copy_bags(ctx, at, memory.of_samples, true);
  send(ctx, words_of(bags_), without_own(at.sizes.bags, at.sizes.own_bags), words_of(through_),
       without_own(at.sizes.items, at.sizes.own_bags));
  if (layout_.sums_gradients())
    sum_gradients(ctx, at, search);
  else
    copy_gradients(ctx, at);
  send(ctx, words_of(asked_vectors_), after_one(at.sizes.gradients_sent),
       words_at(memory.of_owned + first_received_ * layout_.vector_bytes(), most_received_),
       at.sizes.gradients_received);
  bytes_.of_full_size += full_gradients_;
}

/// Copies the gradient of each bag to its position in a message.
void UniqueExchange::copy_gradients(Context& ctx, const Batch& at) {
  for (size_t h = 0; h < groups_.here().size(); ++h) {
    const auto rank = static_cast<size_t>(groups_.here()[h]);
    const int64_t begin = at.sizes.items.begin[rank] + at.sizes.own[h],
                  count = at.sizes.items.count[rank] - at.sizes.own[h];
    ops::copy_listed(ctx, {vector(through_, begin)}, {vector(asked_vectors_, 0), list(at.bag_gradients) + begin}, count,
                     layout_.vector_bytes());
  }
}

/// Sums the gradients of each index in f32, in the order of ranks and samples, as a table sums the gradients of a row.
/// Rounds the sums afterwards. Index 0 is not sent.
void UniqueExchange::sum_gradients(Context& ctx, const Batch& at, const ops::OverflowSearch& search) {
  if (at.sizes.summed == 0) return;
  const int64_t gradients = end_of(at.sizes.gradients_sent);
  const ops::KeyBatch batch = summed_bags(at);
  const ops::RowGroups groups = groups_of(at);
  const auto with_first = [&](size_t ticket, DType dtype) {
    return Tensor(arena_.get(ticket).bytes(), TensorSpec(dtype, {gradients + 1, layout_.dim}), ctx.device());
  };
  const Tensor dy(arena_.get(through_).bytes(), TensorSpec(layout_.dtype, {batch.samples, 1, layout_.dim}),
                  ctx.device()),
      sent = with_first(asked_vectors_, layout_.dtype),
      sums = layout_.dtype == DType::f32 ? sent : with_first(sums_, DType::f32);
  auto* const piece_sums = arena_.get(piece_sums_).data<float>();
  ops::sum_long_runs(ctx, batch, groups, ops::Combiner::sum, dy, piece_sums);
  ops::sum_row_gradients(ctx, batch, groups, ops::Combiner::sum, dy, piece_sums, sums);
  ops::find_overflow(ctx,
                     Tensor(sums.bytes() + layout_.dim * static_cast<int64_t>(sizeof(float)),
                            TensorSpec(DType::f32, {gradients, layout_.dim}), ctx.device()),
                     search);
  if (layout_.dtype != DType::f32) ops::copy(ctx, sums, sent);
}

/// Copies gradients from ranks of this host. Gradients from other hosts were received in place by send_gradients().
void UniqueExchange::receive_gradients(Context& ctx, int buffer, const Memory& memory) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  for (size_t h = 0; h < groups_.here().size(); ++h) {
    const int rank = groups_.here()[h];
    if (rank == comm_.rank()) continue;
    const int64_t begin = at.sizes.items.begin[static_cast<size_t>(rank)];
    ops::copy_listed(ctx, {vector(through_, begin)}, {memory.of_owned, list(at.own) + begin}, at.sizes.own[h],
                     layout_.vector_bytes());
  }
}

}  // namespace hctr
