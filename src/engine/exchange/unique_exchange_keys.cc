// The exchange of keys in a UniqueExchange.
#include <algorithm>
#include <bit>

#include "core/device/copy_bytes.h"
#include "engine/exchange/unique_exchange.h"

namespace hctr {
namespace {

/// Returns empty ranges for every rank.
RankRanges none(int ranks) { return RankRanges::equal(ranks, 0); }

void set(RankRanges& ranges, int rank, int64_t begin, int64_t count) {
  ranges.begin[static_cast<size_t>(rank)] = begin;
  ranges.count[static_cast<size_t>(rank)] = count;
}

}  // namespace

int64_t UniqueExchange::end_of(const RankRanges& ranges) {
  int64_t end = 0;
  for (size_t r = 0; r < ranges.begin.size(); ++r) end = std::max(end, ranges.begin[r] + ranges.count[r]);
  return end;
}

void UniqueExchange::all_to_all(Context& ctx, Tensor in, const RankRanges& send, Tensor out,
                                const RankRanges& receive) {
  comm_.all_to_all(ctx, in, send, out, receive);
  for (int r = 0; r < comm_.size(); ++r)
    if (comm_.host_of(r) != groups_.host())
      bytes_.sent += send.count[static_cast<size_t>(r)] * static_cast<int64_t>(size_of(in.dtype()));
}

std::string UniqueExchange::name_of(int rank) const { return cat("rank ", rank, " of host ", comm_.host_of(rank)); }

void UniqueExchange::expect_possible(int sender, int64_t number, int64_t most, const char* what) const {
  if (number >= 0 && number <= most) return;
  throw Error(Kind::comm,
              cat(name_of(sender), " has sent ", name_of(comm_.rank()), " the keys of a batch with ", number, what,
                  ", expected 0 to ", most, ": the message was damaged in transit or in memory"));
}

void UniqueExchange::throw_if_refused() const {
  const auto* const refused = reinterpret_cast<const int32_t*>(host_refused_.data());
  for (size_t m = 0; m < answered_.ranks.size(); ++m)
    if (refused[m] != 0)
      throw Error(Kind::comm,
                  cat(name_of(answered_.ranks[m]), " has sent ", name_of(comm_.rank()),
                      " the keys of a batch in an inconsistent message: the message was damaged in transit or in "
                      "memory"));
}

void UniqueExchange::send_keys(Context& ctx, int buffer, const ops::KeyBatch& batch, const int32_t* local_rows,
                               uint8_t* present) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  ops::KeySplit split = layout_.split;
  split.local_rows = local_rows;
  ops::pack_keys(ctx, batch, split, {arena_.get(sent_keys_).data<int64_t>(), list(sent_bags_)}, present,
                 list(at.requested), arena_.get(counts_), arena_.get(scratch_).bytes());
  const int64_t row = 2 * comm_.size();
  RankRanges mine = none(comm_.size()), theirs = none(comm_.size());
  for (size_t h = 0; h < groups_.here().size(); ++h) {
    set(mine, groups_.here()[h], 0, row);
    set(theirs, groups_.here()[h], static_cast<int64_t>(h) * row, row);
  }
  all_to_all(ctx, arena_.get(counts_), mine, arena_.get(counts_here_), theirs);
  copy_bytes(ctx.stream(), host_counts_.data(), arena_.get(counts_here_).bytes(), host_counts_.bytes());
  on_host_.record(ctx.stream());
}

void UniqueExchange::gather_keys(Context& ctx, int buffer) {
  Batch& at = batches_.at(static_cast<size_t>(buffer));
  on_host_.synchronize();
  throw_if_refused();  // reports an error in a message of an earlier batch
  const KeyRanges keys = read_counts(ctx, at);
  merge_keys(ctx, keys);
  plan_asking(ctx, at, keys.received);
  send_sizes(ctx);
}

void UniqueExchange::receive_keys(Context& ctx, int buffer, Tensor owned_offsets, Tensor owned_keys) {
  Batch& at = batches_.at(static_cast<size_t>(buffer));
  std::byte* const scratch = arena_.get(scratch_).bytes();
  on_host_.synchronize();
  read_sizes(at);
  exchange_messages(ctx);
  bytes_.of_full_size += full_keys_;
  ops::read_host_keys(ctx, answered_.all, arrays_of(answered_), arena_.get(answered_.words), scratch);
  copy_bytes(ctx.stream(), host_refused_.data(), arena_.get(answered_.refused).bytes(), host_refused_.bytes());
  if (!ctx.device().is_cuda()) throw_if_refused();
  ops::join_host_keys(
      ctx, answered_.all, arrays_of(answered_), arena_.get(answered_.words),
      {.ranks = comm_.size(), .columns = layout_.owned_columns, .samples = layout_.samples, .of_rank = of_rank_},
      owned_offsets, owned_keys, owner_lists(at), scratch);
  if (layout_.sums_gradients()) group_gradients(ctx, at);
}

/// Within the host, reads how many keys and bags each rank has for each owner.
UniqueExchange::KeyRanges UniqueExchange::read_counts(Context& ctx, Batch& at) {
  const int ranks = comm_.size(), row = 2 * ranks;
  const auto* const counts = reinterpret_cast<const int32_t*>(host_counts_.data());
  Sizes& sizes = at.sizes;
  sizes = {.bags = none(ranks), .items = none(ranks), .own = {}};
  KeyRanges keys{.to = none(ranks), .from = none(ranks)};
  auto* const first = reinterpret_cast<int32_t*>(host_first_.data());
  const auto sum = [&](int64_t of, int through, int which) {
    int64_t all = 0;
    for (const int owner : groups_.owners_through(through)) {
      const int32_t count = counts[of * row + 2 * owner + which];
      expect_possible(groups_.here()[static_cast<size_t>(of)], count, layout_.most_keys[static_cast<size_t>(owner)],
                      which == 0 ? " keys" : " bags");
      all += count;
    }
    return all;
  };
  const int64_t me = groups_.index_here(comm_.rank());
  int64_t sent = 0, bags = 0, items = 0;
  for (int64_t h = 0; h < here(); ++h) {
    const int rank = groups_.here()[static_cast<size_t>(h)];
    const auto r = static_cast<size_t>(rank);
    set(keys.to, rank, sent, sum(me, rank, 0));
    set(keys.from, rank, keys.received, sum(h, comm_.rank(), 0));
    set(sizes.bags, rank, bags, sum(me, rank, 1));
    set(sizes.items, rank, items, sum(h, comm_.rank(), 1));
    sizes.own.push_back(counts[h * row + 2 * comm_.rank() + 1]);
    expect_possible(rank, keys.from.count[r], most_keys_ - keys.received, " keys");
    expect_possible(rank, sizes.items.count[r], std::min(most_items_ - items, keys.from.count[r]), " bags");
    first[h] = static_cast<int32_t>(keys.received);
    sent += keys.to.count[r], keys.received += keys.from.count[r];
    bags += sizes.bags.count[r], items += sizes.items.count[r];
  }
  first[here()] = static_cast<int32_t>(keys.received);
  sizes.own_bags = sizes.own[static_cast<size_t>(me)];
  copy_bytes(ctx.stream(), arena_.get(first_).bytes(), first, host_first_.bytes());
  return keys;
}

/// Sends keys and their bags within the host. Each key goes to the rank that owns it, or to the rank that gathers keys
/// for its owner. The receiving rank merges the keys.
void UniqueExchange::merge_keys(Context& ctx, const KeyRanges& keys) {
  all_to_all(ctx, arena_.get(sent_keys_), keys.to, arena_.get(keys_here_), keys.from);
  all_to_all(ctx, arena_.get(sent_bags_), keys.to, arena_.get(bags_here_), keys.from);
  const auto first_bag =
      static_cast<int32_t>(layout_.owners[static_cast<size_t>(comm_.rank())].first * layout_.samples);
  ops::merge_packed_keys(ctx, {here(), columns_through_, layout_.samples, 0},
                         {arena_.get(keys_here_).data<int64_t>(), list(bags_here_)}, list(first_), first_bag,
                         arena_.get(asked_.offsets), arena_.get(asked_.keys), list(items_),
                         arena_.get(scratch_).bytes());
}

/// Writes the messages to owners, and lists the vectors that the owners will return.
void UniqueExchange::plan_asking(Context& ctx, const Batch& at, int64_t keys) {
  std::byte* const scratch = arena_.get(scratch_).bytes();
  const ops::HostKeys asked = arrays_of(asked_);
  ops::plan_host_keys(ctx, asked_.all, asked, keys, scratch);
  ops::write_host_keys(ctx, asked_.all, asked, arena_.get(asked_.words));
  const int64_t items = end_of(at.sizes.items);
  ops::list_host_vectors(ctx, asked_.all, asked,
                         {.count = items, .bags = list(items_), .own_columns = layout_.owned_columns}, bag_lists(at),
                         scratch);
  copy_bytes(ctx.stream(), host_summed_.data(), reinterpret_cast<std::byte*>(list(at.bag_offsets) + items),
             host_summed_.bytes());
}

/// Sends the sizes of messages to the owners, and copies all sizes to the host.
void UniqueExchange::send_sizes(Context& ctx) {
  const int ranks = comm_.size();
  RankRanges to = none(ranks), from = none(ranks);
  constexpr int64_t kEach = ops::kHostMessageSizes;
  for (size_t m = 0; m < asked_.ranks.size(); ++m) set(to, asked_.ranks[m], static_cast<int64_t>(m) * kEach, kEach);
  for (size_t m = 0; m < answered_.ranks.size(); ++m)
    set(from, answered_.ranks[m], static_cast<int64_t>(m) * kEach, kEach);
  all_to_all(ctx, arena_.get(asked_.sizes), to, arena_.get(answered_.sizes), from);
  auto* const sizes = reinterpret_cast<ops::HostMessageSizes*>(host_sizes_.data());
  const auto read = [&](const Messages& messages, ops::HostMessageSizes* out) {
    copy_bytes(ctx.stream(), out, arena_.get(messages.sizes).bytes(), messages.ranks.size() * sizeof *out);
  };
  read(asked_, sizes);
  read(answered_, sizes + ranks);
  on_host_.record(ctx.stream());
}

void UniqueExchange::read_sizes(Batch& at) const {
  const int ranks = comm_.size();
  const auto* const sizes = reinterpret_cast<const ops::HostMessageSizes*>(host_sizes_.data());
  const auto* const received = sizes + ranks;
  const auto place = [&](const Messages& messages, const ops::HostMessageSizes* of, RankRanges& vectors,
                         RankRanges& gradients) {
    vectors = gradients = none(ranks);
    int64_t vector = 0, gradient = 0;
    for (size_t m = 0; m < messages.ranks.size(); ++m) {
      set(vectors, messages.ranks[m], vector, of[m].vectors);
      set(gradients, messages.ranks[m], gradient, of[m].gradients);
      vector += of[m].vectors;
      gradient += of[m].gradients;
    }
  };
  ops::HostMessageSizes all;
  for (size_t m = 0; m < answered_.ranks.size(); ++m) {
    const ops::HostMessageSizes& of = received[m];
    const int sender = answered_.ranks[m];
    expect_possible(sender, of.words, answered_.most_words - all.words, " words");
    expect_possible(sender, of.vectors, most_answered_ - all.vectors, " vectors");
    expect_possible(sender, of.gradients, most_answered_ - all.gradients, " gradients");
    expect_possible(sender, of.listed, layout_.owned_key_capacity - all.listed, " keys of vectors");
    all.words += of.words, all.vectors += of.vectors, all.gradients += of.gradients, all.listed += of.listed;
  }
  place(asked_, sizes, at.sizes.vectors_asked, at.sizes.gradients_sent);
  place(answered_, received, at.sizes.vectors_answered, at.sizes.gradients_received);
  at.sizes.listed = all.listed;
  at.sizes.summed = *reinterpret_cast<const int32_t*>(host_summed_.data());
}

void UniqueExchange::exchange_messages(Context& ctx) {
  const int ranks = comm_.size();
  const auto* const sizes = reinterpret_cast<const ops::HostMessageSizes*>(host_sizes_.data());
  const auto ranges = [&](const Messages& messages, const ops::HostMessageSizes* of) {
    RankRanges words = none(ranks);
    int64_t begin = 0;
    for (size_t m = 0; m < messages.ranks.size(); ++m) {
      set(words, messages.ranks[m], begin, of[m].words);
      begin += of[m].words;
    }
    return words;
  };
  all_to_all(ctx, arena_.get(asked_.words), ranges(asked_, sizes), arena_.get(answered_.words),
             ranges(answered_, sizes + ranks));
}

/// Groups the bags of this host. A group has the bags that contribute to the same gradient sum.
void UniqueExchange::group_gradients(Context& ctx, const Batch& at) {
  if (at.sizes.summed == 0) return;
  ops::group_by_row(ctx, summed_bags(at), list(at.bag_vectors),
                    std::bit_width(static_cast<uint64_t>(end_of(at.sizes.gradients_sent))), groups_of(at),
                    arena_.get(group_scratch_).bytes());
}

}  // namespace hctr
