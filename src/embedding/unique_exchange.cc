#include "embedding/unique_exchange.h"

#include <algorithm>
#include <cstring>

#include "ops/embedding/embedding_pool.h"

namespace hctr {
namespace {

template <class T>
T* at_least(std::vector<T>& memory, int64_t count) {
  if (static_cast<int64_t>(memory.size()) < count) memory.resize(static_cast<size_t>(count));
  return memory.data();
}

template <class T>
Tensor tensor_of(std::vector<T>& memory) {
  return {memory.data(), TensorSpec(kDTypeOf<T>, {static_cast<int64_t>(memory.size())}), Device{}};
}

/// Nothing to or from any rank.
RankRanges none(int ranks) { return RankRanges::equal(ranks, 0); }

void set(RankRanges& ranges, int rank, int64_t begin, int64_t count) {
  ranges.begin[static_cast<size_t>(rank)] = begin;
  ranges.count[static_cast<size_t>(rank)] = count;
}

}  // namespace

UniqueExchange::UniqueExchange(Runtime& runtime, Communicator& comm, const Layout& layout, int ring)
    : PackedExchange(runtime, comm, layout, ring),
      host_(comm.host_of(comm.rank())),
      owners_through_(static_cast<size_t>(comm.size())),
      unique_(static_cast<size_t>(ring)) {
  for (int r = 0; r < comm.size(); ++r) {
    const auto host = static_cast<size_t>(comm.host_of(r));
    if (hosts_.size() <= host) hosts_.resize(host + 1);
    hosts_[host].push_back(r);
  }
  for (int owner = 0; owner < comm.size(); ++owner) {
    const int through = comm.host_of(owner) == host_ ? owner : gathering_rank(static_cast<size_t>(host_), owner);
    owners_through_[static_cast<size_t>(through)].push_back(owner);
  }
  for (UniqueBatch& batch : unique_) {
    batch.asked.resize(owners().size());
    batch.to_answer.resize(hosts_.size());
  }
}

/// A sum of rows that have been rounded is not the rounded sum.
HostKeysShape UniqueExchange::shape_for(size_t host, int owner) const {
  const bool exact = layout_.dtype == DType::f32 || layout_.dtype == layout_.storage;
  HostKeysShape shape{.ranks = static_cast<int64_t>(hosts_[host].size()),
                      .samples = layout_.samples,
                      .vector_bytes = layout_.vector_bytes()};
  const ops::OwnerKeys& columns = layout_.owners[static_cast<size_t>(owner)];
  for (int32_t c = columns.first; c < columns.first + columns.count; ++c) {
    const int32_t most = layout_.keys_of_bag[static_cast<size_t>(c)];
    shape.columns.push_back({.most_keys = most, .sums_of_keys = exact || most <= 1});
  }
  return shape;
}

void UniqueExchange::carry_keys(Context& ctx, Batch& at) {
  UniqueBatch& unique = of(at);
  gather_keys(ctx, at);
  ask(ctx, unique);
  rebuild_batch(at, unique);
}

/// In the host: counts, then keys and their bags, to the rank that has or gathers for their owner.
void UniqueExchange::gather_keys(Context& ctx, Batch& at) {
  const int ranks = comm_.size(), row = 2 * ranks;
  RankRanges mine = none(ranks), theirs = none(ranks);
  for (size_t h = 0; h < here().size(); ++h) {
    set(mine, here()[h], 0, row);
    set(theirs, here()[h], static_cast<int64_t>(h) * row, row);
  }
  counts_here_.resize(here().size() * static_cast<size_t>(row));
  all_to_all(ctx, arena_.get(counts_), mine, tensor_of(counts_here_), theirs);

  const auto* counts = arena_.get(counts_).data<const int32_t>();
  const RankRanges packed = consecutive(counts, ranks);
  at.requested_of = consecutive(counts + 1, ranks);
  RankRanges to = none(ranks), from = none(ranks);
  int64_t sent = 0, received = 0;
  const int64_t all = packed.begin.back() + packed.count.back();
  auto *keys = at_least(keys_out_, all), *sent_keys = arena_.get(sent_keys_).data<int64_t>();
  auto *bags = at_least(bags_out_, all), *sent_bags = arena_.get(sent_bags_).data<int32_t>();
  for (const int rank : here()) {
    const int64_t before = sent;
    for (const int owner : owners_through_[static_cast<size_t>(rank)]) {
      const int64_t begin = packed.begin[static_cast<size_t>(owner)], count = packed.count[static_cast<size_t>(owner)];
      std::copy_n(sent_keys + begin, count, keys + sent);
      std::copy_n(sent_bags + begin, count, bags + sent);
      sent += count;
    }
    set(to, rank, before, sent - before);
  }
  gathered_from_.clear();
  for (size_t h = 0; h < here().size(); ++h) {
    const int64_t before = received;
    for (const int owner : owners()) {
      gathered_from_.push_back(received);
      received += counts_here_[h * static_cast<size_t>(row) + 2 * static_cast<size_t>(owner)];
    }
    gathered_from_.push_back(received);
    set(from, here()[h], before, received - before);
  }
  at_least(keys_in_, received);
  at_least(bags_in_, received);
  all_to_all(ctx, tensor_of(keys_out_), to, tensor_of(keys_in_), from);
  all_to_all(ctx, tensor_of(bags_out_), to, tensor_of(bags_in_), from);
}

RankKeys UniqueExchange::gathered(size_t rank_here, size_t owner) const {
  const int64_t* begin = gathered_from_.data() + rank_here * (owners().size() + 1) + owner;
  const auto at = static_cast<size_t>(begin[0]), count = static_cast<size_t>(begin[1] - begin[0]);
  return {std::span(keys_in_).subspan(at, count), std::span(bags_in_).subspan(at, count)};
}

/// Between hosts: the sizes of messages, then the messages, from the gathering ranks to owners.
void UniqueExchange::ask(Context& ctx, UniqueBatch& unique) {
  const int ranks = comm_.size();
  std::vector<std::vector<int64_t>> messages(owners().size());
  ctx.threads().parallel_for(static_cast<int64_t>(messages.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto o = static_cast<size_t>(begin); o < static_cast<size_t>(end); ++o) {
      if (owners()[o] == comm_.rank()) continue;
      const HostKeysShape shape = shape_for(static_cast<size_t>(host_), owners()[o]);
      std::vector<RankKeys> of_ranks;
      for (size_t h = 0; h < here().size(); ++h) of_ranks.push_back(gathered(h, o));
      unique.asked[o].keys = HostKeys(shape, of_ranks);
      unique.asked[o].of_ranks = unique.asked[o].keys.vectors_of_bags(shape);
      messages[o] = unique.asked[o].keys.message(shape);
    }
  });

  std::vector<int32_t> sizes_out(static_cast<size_t>(ranks), 0), sizes_in(static_cast<size_t>(ranks), 0);
  RankRanges to = none(ranks), from = none(ranks);
  for (size_t o = 0; o < messages.size(); ++o) {
    if (owners()[o] == comm_.rank()) continue;
    sizes_out[static_cast<size_t>(owners()[o])] = static_cast<int32_t>(messages[o].size());
    set(to, owners()[o], owners()[o], 1);
  }
  const auto other_hosts = [&](const auto& body) {  // body(host, the rank that asks for it)
    for (size_t h = 0; h < hosts_.size(); ++h)
      if (static_cast<int>(h) != host_) body(h, gathering_rank(h, comm_.rank()));
  };
  other_hosts([&](size_t, int rank) { set(from, rank, rank, 1); });
  all_to_all(ctx, tensor_of(sizes_out), to, tensor_of(sizes_in), from);

  int64_t sent = 0, received = 0;
  for (size_t o = 0; o < messages.size(); ++o) {
    if (owners()[o] == comm_.rank()) continue;
    const auto size = static_cast<int64_t>(messages[o].size());
    std::copy(messages[o].begin(), messages[o].end(), at_least(words_out_, sent + size) + sent);
    set(to, owners()[o], sent, size);
    sent += size;
  }
  other_hosts([&](size_t, int rank) {
    const int64_t size = sizes_in[static_cast<size_t>(rank)];
    set(from, rank, received, size);
    received += size;
  });
  at_least(words_in_, received);
  all_to_all(ctx, tensor_of(words_out_), to, tensor_of(words_in_), from);
  other_hosts([&](size_t host, int rank) {
    const auto r = static_cast<size_t>(rank);
    unique.to_answer[host] = HostKeys::read(
        shape_for(host, comm_.rank()),
        std::span(words_in_).subspan(static_cast<size_t>(from.begin[r]), static_cast<size_t>(from.count[r])));
  });
}

/// The keys of every rank for this owner, as ops::merge_packed_keys takes them.
void UniqueExchange::rebuild_batch(Batch& at, const UniqueBatch& unique) {
  const auto ranks = static_cast<size_t>(comm_.size());
  const auto own = static_cast<size_t>(std::find(owners().begin(), owners().end(), comm_.rank()) - owners().begin());
  std::vector<int32_t> counts(2 * ranks, 0);
  const auto rank_of = [&](size_t host, const HostKeys::Occurrence& key) {
    return static_cast<size_t>(hosts_[host][static_cast<size_t>(key.rank)]);
  };
  const auto for_each_of_others = [&](const auto& body) {
    for (size_t h = 0; h < hosts_.size(); ++h)
      if (static_cast<int>(h) != host_)
        unique.to_answer[h].for_each(layout_.samples,
                                     [&](const HostKeys::Occurrence& key) { body(rank_of(h, key), key); });
  };
  for (size_t h = 0; h < here().size(); ++h)
    for (const size_t i : {0, 1}) {
      const size_t at_owner = 2 * static_cast<size_t>(comm_.rank()) + i;
      counts[2 * static_cast<size_t>(here()[h]) + i] = counts_here_[h * 2 * ranks + at_owner];
    }
  for_each_of_others([&](size_t rank, const HostKeys::Occurrence& key) {
    ++counts[2 * rank];
    counts[2 * rank + 1] += key.in_bag == 0;
  });
  const RankRanges keys_of = consecutive(counts.data(), comm_.size());
  at.owned_of = consecutive(counts.data() + 1, comm_.size());

  auto* const keys = arena_.get(received_keys_).data<int64_t>();
  int32_t *const bags = list(received_bags_), *const first = list(first_);
  for (size_t r = 0; r < ranks; ++r) first[r] = static_cast<int32_t>(keys_of.begin[r]);
  first[ranks] = static_cast<int32_t>(keys_of.begin.back() + keys_of.count.back());
  for (size_t h = 0; h < here().size(); ++h) {
    const RankKeys of = gathered(h, own);
    const int64_t begin = keys_of.begin[static_cast<size_t>(here()[h])];
    std::copy(of.keys.begin(), of.keys.end(), keys + begin);
    std::copy(of.bags.begin(), of.bags.end(), bags + begin);
  }
  std::vector<int64_t> next = keys_of.begin;
  for_each_of_others([&](size_t rank, const HostKeys::Occurrence& key) {
    keys[next[rank]] = key.key;
    bags[next[rank]++] = static_cast<int32_t>(key.column * layout_.samples + key.sample);
  });
}

Tensor UniqueExchange::vectors(std::byte* memory, int64_t count) const {
  return {memory, TensorSpec(layout_.dtype, {count * layout_.dim}), Device{}};
}

void UniqueExchange::sum_lists(Context& ctx, const std::vector<int32_t>& offsets, const std::vector<int32_t>& rows,
                               ops::RowMemory table, Tensor out) const {
  const auto count = static_cast<int64_t>(offsets.size()) - 1;
  if (count == 0) return;
  ops::pool(ctx, {.offsets = offsets.data(), .slots = 1, .samples = count, .columns = 1}, rows.data(), table,
            ops::Combiner::sum, out.reshaped({count, 1, layout_.dim}));
}

void UniqueExchange::carry_vectors(Context& ctx, Batch& at, const Memory& memory, const OwnedRows& rows) {
  answer(ctx, of(at), rows);
  hand_out(ctx, at, of(at), memory);
}

/// Between hosts: the vectors that the gathering ranks have asked for, the first of which is left free in vectors_in_.
void UniqueExchange::answer(Context& ctx, const UniqueBatch& unique, const OwnedRows& owned) {
  const int ranks = comm_.size();
  RankRanges to = none(ranks), from = none(ranks);
  std::vector<int32_t> offsets{0}, rows, of_occurrences;
  const int64_t samples = layout_.samples;
  for (size_t h = 0; h < hosts_.size(); ++h) {
    if (static_cast<int>(h) == host_) continue;
    const auto before = static_cast<int64_t>(offsets.size()) - 1;
    of_occurrences.clear();
    unique.to_answer[h].for_each(samples, [&](const HostKeys::Occurrence& key) {
      const int64_t rank = hosts_[h][static_cast<size_t>(key.rank)],
                    bag = (key.column * ranks + rank) * samples + key.sample;
      of_occurrences.push_back(owned.rows[owned.batch.offsets[bag] + key.in_bag]);
    });
    const NumberLists lists = unique.to_answer[h].occurrences_of_vectors();
    const auto first = static_cast<int32_t>(rows.size());
    for (const int32_t occurrence : lists.numbers) rows.push_back(of_occurrences[static_cast<size_t>(occurrence)]);
    for (int64_t i = 1; i <= lists.size(); ++i) offsets.push_back(first + lists.offsets[static_cast<size_t>(i)]);
    set(to, gathering_rank(h, comm_.rank()), before * layout_.dim, lists.size() * layout_.dim);
  }
  const auto count = static_cast<int64_t>(offsets.size()) - 1;
  const Tensor sent = vectors(at_least(vectors_out_, (count + 1) * layout_.vector_bytes()), count);
  sum_lists(ctx, offsets, rows, owned.table, sent);

  int64_t received = 1;
  for (size_t o = 0; o < owners().size(); ++o) {
    if (owners()[o] == comm_.rank()) continue;
    set(from, owners()[o], received * layout_.dim, unique.asked[o].keys.vectors() * layout_.dim);
    received += unique.asked[o].keys.vectors();
  }
  all_to_all(ctx, sent, to, vectors(at_least(vectors_in_, received * layout_.vector_bytes()), received), from);
}

/// In the host: to each rank the vectors of its bags, by owner.
void UniqueExchange::hand_out(Context& ctx, const Batch& at, const UniqueBatch& unique, const Memory& memory) {
  const int64_t bytes = layout_.vector_bytes();
  RankRanges to = none(comm_.size());
  const auto count_for = [&](size_t h, size_t o) {
    if (owners()[o] != comm_.rank()) return unique.asked[o].of_ranks[h].size();
    return here()[h] == comm_.rank() ? 0 : at.owned_of.count[static_cast<size_t>(here()[h])];
  };
  int64_t all = 0;
  for (size_t h = 0; h < here().size(); ++h)
    for (size_t o = 0; o < owners().size(); ++o) all += count_for(h, o);
  std::byte* const out = at_least(vectors_out_, (all + 1) * bytes);
  int64_t sent = 0;
  for (size_t h = 0; h < here().size(); ++h) {
    const int64_t before = sent;
    int64_t first = 1;  // vector in vectors_in_
    for (size_t o = 0; o < owners().size(); ++o) {
      const int64_t count = count_for(h, o);
      if (owners()[o] == comm_.rank()) {
        const int64_t begin = at.owned_of.begin[static_cast<size_t>(here()[h])];
        ops::copy_listed(ctx, {memory.of_owned, list(at.owned) + begin}, {out + sent * bytes}, count, bytes);
      } else {
        const NumberLists& lists = unique.asked[o].of_ranks[h];
        std::vector<int32_t> rows;  // row 0 is none
        for (const int32_t vector : lists.numbers) rows.push_back(static_cast<int32_t>(first + vector));
        sum_lists(ctx, lists.offsets, rows, {vectors_in_.data(), layout_.dtype}, vectors(out + sent * bytes, count));
        first += unique.asked[o].keys.vectors();
      }
      sent += count;
    }
    set(to, here()[h], before * layout_.dim, (sent - before) * layout_.dim);
  }
  const RankRanges from = vectors_from_host(at);
  const int64_t received = (from.begin.back() + from.count.back()) / layout_.dim;
  all_to_all(ctx, vectors(out, sent), to, vectors(arena_.get(of_samples_).bytes(), received), from);
}

RankRanges UniqueExchange::vectors_from_host(const Batch& at) const {
  RankRanges from;
  int64_t begin = 0;
  for (int r = 0; r < comm_.size(); ++r) {
    int64_t count = 0;
    for (const int owner : owners_through_[static_cast<size_t>(r)])
      if (owner != comm_.rank()) count += at.requested_of.count[static_cast<size_t>(owner)] * layout_.dim;
    from.add(begin, count);
    begin += count;
  }
  return from;
}

void UniqueExchange::receive_vectors(Context& ctx, int buffer, const Memory& memory) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  int64_t first = 0;
  for (const int rank : here())
    for (const int owner : owners_through_[static_cast<size_t>(rank)]) {
      if (owner == comm_.rank()) continue;
      const int64_t begin = at.requested_of.begin[static_cast<size_t>(owner)],
                    count = at.requested_of.count[static_cast<size_t>(owner)];
      ops::copy_listed(ctx, {arena_.get(of_samples_).bytes() + first * layout_.vector_bytes()},
                       {memory.of_samples, list(at.requested) + begin}, count, layout_.vector_bytes());
      first += count;
    }
}

}  // namespace hctr
