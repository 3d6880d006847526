// The vectors and gradients of a UniqueExchange.
#include <algorithm>
#include <bit>
#include <numeric>

#include "device/copy.h"
#include "embedding/unique_exchange.h"
#include "ops/copy.h"
#include "ops/embedding/embedding_pool.h"
#include "ops/embedding/embedding_update.h"

namespace hctr {
namespace {

int64_t end_of(const RankRanges& ranges) {
  int64_t end = 0;
  for (size_t r = 0; r < ranges.begin.size(); ++r) end = std::max(end, ranges.begin[r] + ranges.count[r]);
  return end;
}

/// The same ranges, after a vector that is left free.
RankRanges after_one(RankRanges ranges) {
  for (int64_t& begin : ranges.begin) ++begin;
  return ranges;
}

}  // namespace

void UniqueExchange::send(Context& ctx, size_t in, const RankRanges& send, size_t out, const RankRanges& receive) {
  const DType word = layout_.vector_bytes() % 4 == 0 ? DType::i32 : DType::f16;
  const int64_t words = layout_.vector_bytes() / static_cast<int64_t>(size_of(word));
  const auto in_words = [&](RankRanges ranges) {
    for (int64_t& begin : ranges.begin) begin *= words;
    for (int64_t& count : ranges.count) count *= words;
    return ranges;
  };
  const auto as_words = [&](size_t ticket) {
    const Tensor memory = arena_.get(ticket);
    return Tensor(memory.bytes(), TensorSpec(word, {memory.elements() * 4 / static_cast<int64_t>(size_of(word))}),
                  memory.device());
  };
  all_to_all(ctx, as_words(in), in_words(send), as_words(out), in_words(receive));
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

/// Between hosts: the vectors that the gathering ranks have asked for.
void UniqueExchange::answer(Context& ctx, const Batch& at, const OwnedRows& owned) {
  const ops::OwnerLists lists = owner_lists(at);
  if (at.sizes.listed > 0)
    ops::copy_rows(ctx, lists.keys, at.sizes.listed, owned.rows, sizeof(int32_t), list(answered_rows_));
  sum_lists(ctx, lists.offsets, list(answered_rows_), lists.vectors, owned.table, vector(owned_vectors_, 0));
  send(ctx, owned_vectors_, at.sizes.vectors_answered, asked_vectors_, after_one(at.sizes.vectors_asked));
}

/// In the host: to each rank the vectors of its bags, those of this rank's rows before the others.
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
  send(ctx, through_, without_own(at.sizes.items, at.sizes.own_bags), bags_,
       without_own(at.sizes.bags, at.sizes.own_bags));
}

/// In the host to the gathering ranks, which add them up, then between hosts.
void UniqueExchange::send_gradients(Context& ctx, int buffer, const Memory& memory, const ops::OverflowSearch& search) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  copy_bags(ctx, at, memory.of_samples, true);
  send(ctx, bags_, without_own(at.sizes.bags, at.sizes.own_bags), through_,
       without_own(at.sizes.items, at.sizes.own_bags));
  if (layout_.sums_gradients) {
    sum_items(ctx, at, search);
  } else {
    for (size_t h = 0; h < groups_.here().size(); ++h) {
      const auto rank = static_cast<size_t>(groups_.here()[h]);
      const int64_t begin = at.sizes.items.begin[rank] + at.sizes.own[h],
                    count = at.sizes.items.count[rank] - at.sizes.own[h];
      ops::copy_listed(ctx, {vector(through_, begin)}, {vector(asked_vectors_, 0), list(at.bag_gradients) + begin},
                       count, layout_.vector_bytes());
    }
  }
  send(ctx, asked_vectors_, after_one(at.sizes.gradients_sent), owned_vectors_, at.sizes.gradients_received);
  bytes_.of_full_size += full_gradients_;
}

/// Adds up gradients of one number in f32, in the order of ranks and samples, as a table does with those of a row, and
/// rounds the sum. Number 0 is not sent.
void UniqueExchange::sum_items(Context& ctx, const Batch& at, const ops::OverflowSearch& search) {
  const int64_t items = end_of(at.sizes.items), gradients = end_of(at.sizes.gradients_sent);
  if (items == 0 || gradients == 0) return;
  const ops::KeyBatch batch{
      .offsets = one_key_each_, .slots = 1, .samples = items, .key_capacity = items, .columns = 1};
  const ops::RowGroups groups{.rows = list(groups_of_items_.rows),
                              .bags = list(groups_of_items_.bags),
                              .run_begin = list(groups_of_items_.run_begin),
                              .long_runs = reinterpret_cast<ops::LongRun*>(list(groups_of_items_.long_runs)),
                              .pieces = reinterpret_cast<ops::Piece*>(list(groups_of_items_.pieces)),
                              .counts = reinterpret_cast<ops::GroupCounts*>(list(groups_of_items_.counts))};
  ops::group_by_row(ctx, batch, list(at.bag_gradients), std::bit_width(static_cast<uint64_t>(gradients)), groups,
                    arena_.get(group_scratch_).bytes());
  const auto with_first = [&](size_t ticket, DType dtype) {
    return Tensor(arena_.get(ticket).bytes(), TensorSpec(dtype, {gradients + 1, layout_.dim}), ctx.device());
  };
  const Tensor dy(arena_.get(through_).bytes(), TensorSpec(layout_.dtype, {items, 1, layout_.dim}), ctx.device()),
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

void UniqueExchange::receive_gradients(Context& ctx, int buffer, const Memory& memory) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  const int64_t bytes = layout_.vector_bytes(), of_rank = layout_.samples * layout_.owned_columns * bytes;
  for (size_t h = 0; h < groups_.here().size(); ++h) {
    const int rank = groups_.here()[h];
    if (rank == comm_.rank()) continue;
    const int64_t begin = at.sizes.items.begin[static_cast<size_t>(rank)];
    ops::copy_listed(ctx, {vector(through_, begin)}, {memory.of_owned, list(at.own) + begin}, at.sizes.own[h], bytes);
  }
  // The sum of the gradients of a key is that of its first bag; the others have zero.
  for (int r = 0; r < comm_.size() && layout_.sums_gradients; ++r)
    if (!sends_pooled(r)) zero_bytes(ctx.stream(), memory.of_owned + r * of_rank, static_cast<size_t>(of_rank));
  const ops::OwnerLists lists = owner_lists(at);
  ops::copy_listed(ctx, {vector(owned_vectors_, 0)}, {memory.of_owned, lists.of_bags}, lists.gradients, bytes);
}

}  // namespace hctr
