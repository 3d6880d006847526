#include "embedding/unique_exchange.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "device/copy.h"

namespace hctr {
namespace {

TensorSpec array_of(DType dtype, int64_t count) { return TensorSpec(dtype, {std::max<int64_t>(1, count)}); }

template <class T>
int64_t words_of(int64_t count) {
  return count * static_cast<int64_t>(sizeof(T) / sizeof(int32_t));
}

/// Nothing to or from any rank.
RankRanges none(int ranks) { return RankRanges::equal(ranks, 0); }

void set(RankRanges& ranges, int rank, int64_t begin, int64_t count) {
  ranges.begin[static_cast<size_t>(rank)] = begin;
  ranges.count[static_cast<size_t>(rank)] = count;
}

}  // namespace

UniqueExchange::UniqueExchange(Runtime& runtime, Communicator& comm, const HostGroups& groups, const Layout& layout,
                               int ring)
    : comm_(comm),
      groups_(groups),
      layout_(layout),
      host_counts_(runtime.device(), static_cast<size_t>(2 * comm.size() * here()) * sizeof(int32_t)),
      host_first_(runtime.device(), static_cast<size_t>(here() + 1) * sizeof(int32_t)),
      host_sizes_(runtime.device(), 2 * static_cast<size_t>(comm.size()) * sizeof(ops::HostMessageSizes)) {
  const int64_t ranks = comm.size(), bags = layout.split.count * layout.samples,
                owned_bags = layout.owned_columns * ranks * layout.samples;
  for (const int owner : groups_.owners_through(comm.rank())) {
    columns_through_ += layout.owners[static_cast<size_t>(owner)].count;
    most_keys_ += layout.most_keys[static_cast<size_t>(owner)] * here();
  }
  most_keys_ = std::min(most_keys_, layout.key_capacity * here());
  const int64_t all_items = columns_through_ * here() * layout.samples, most = std::numeric_limits<int32_t>::max() - 1;
  if (most_keys_ > most || all_items > most)
    throw Error(Kind::config,
                cat("a batch may have ", most_keys_, " keys of ", all_items, " bags that rank ", comm.rank(),
                    " gathers for other hosts, and can have ", most, ": give a smaller \"batchsize\""));
  most_items_ = std::min(all_items, most_keys_);
  const int64_t requested = std::min(bags, layout.key_capacity),
                owned = std::min(owned_bags, layout.owned_key_capacity);
  const auto add = [&](DType dtype, int64_t count) { return arena_.add(array_of(dtype, count)); };
  for (int s = 0; s < ring; ++s)
    batches_.push_back({.requested = add(DType::i32, requested),
                        .bag_offsets = add(DType::i32, most_items_ + 1),
                        .bag_vectors = add(DType::i32, most_keys_),
                        .bag_gradients = add(DType::i32, most_items_),
                        .own = add(DType::i32, most_items_),
                        .owner_offsets = add(DType::i32, owned + 1),
                        .owner_keys = add(DType::i32, layout.owned_key_capacity),
                        .of_bags = add(DType::i32, owned)});
  sent_keys_ = add(DType::i64, layout.key_capacity);
  sent_bags_ = add(DType::i32, layout.key_capacity);
  keys_here_ = add(DType::i64, most_keys_);
  bags_here_ = add(DType::i32, most_keys_);
  counts_ = add(DType::i32, 2 * ranks);
  counts_here_ = add(DType::i32, 2 * ranks * here());
  first_ = add(DType::i32, here() + 1);
  items_ = add(DType::i32, most_items_);
  first_keys_ = add(DType::i32, owned);
  plan_asked(runtime);
  plan_answered(runtime);
  const size_t scratch =
      std::max({ops::packed_keys_scratch_bytes(runtime.device(), bags),
                ops::packed_keys_scratch_bytes(runtime.device(), all_items),
                ops::host_keys_scratch_bytes(runtime.device(), all_items, most_keys_),
                ops::host_keys_scratch_bytes(runtime.device(), std::max(answered_.all.all_bags(), owned_bags), owned)});
  scratch_ = add(DType::i32, static_cast<int64_t>(scratch / sizeof(int32_t)) + 1);

  const auto of_vectors = [&](int64_t count) { return add(DType::i32, (count * layout.vector_bytes() + 3) / 4); };
  bags_ = of_vectors(requested);
  through_ = of_vectors(most_items_);
  asked_vectors_ = of_vectors(most_items_ + 1);
  owned_vectors_ = of_vectors(owned);
  answered_rows_ = add(DType::i32, layout.owned_key_capacity);
  if (layout.sums_gradients) {
    std::vector<int32_t> numbers(static_cast<size_t>(most_items_) + 1);
    std::iota(numbers.begin(), numbers.end(), 0);
    one_key_each_ = lists_.put(runtime, numbers);
    const int64_t pieces = ops::RowGroups::most_pieces(most_items_), runs = ops::RowGroups::most_long_runs(most_items_);
    sums_ = add(DType::f32, layout.dtype == DType::f32 ? 1 : (most_items_ + 1) * layout.dim);
    piece_sums_ = add(DType::f32, pieces * layout.dim);
    group_scratch_ =
        add(DType::i32, static_cast<int64_t>(ops::group_scratch_bytes(runtime.device(), most_items_) / 4) + 1);
    groups_of_items_ = {add(DType::i32, most_items_),
                        add(DType::i32, most_items_),
                        add(DType::i32, most_items_),
                        add(DType::i32, words_of<ops::LongRun>(runs)),
                        add(DType::i32, words_of<ops::Piece>(pieces)),
                        add(DType::i32, words_of<ops::GroupCounts>(1))};
  }
  in_context([] { return "allocating what is sent to other hosts"; }, [&] { arena_.build(runtime.device()); });
  count_full_size();
}

/// `first`: the first column of each message, and their end.
UniqueExchange::Messages UniqueExchange::plan_messages(Runtime& runtime, const std::vector<ops::HostColumn>& columns,
                                                       const std::vector<int32_t>& first, int64_t bags, int64_t keys,
                                                       bool sends) {
  int64_t all_bags = 0;
  for (const ops::HostColumn& column : columns) all_bags += column.bags;
  Messages messages{.all = {.messages = static_cast<int32_t>(first.size()) - 1,
                            .columns = static_cast<int32_t>(columns.size()),
                            .bags = bags,
                            .column = lists_.put(runtime, columns),
                            .first = lists_.put(runtime, first),
                            .vector_bytes = layout_.vector_bytes(),
                            .sums_gradients = layout_.sums_gradients}};
  const auto add = [&](DType dtype, int64_t count) { return arena_.add(array_of(dtype, count)); };
  messages.offsets = add(DType::i32, messages.all.all_bags() + 1);
  messages.keys = add(DType::i64, sends ? keys : 0);
  messages.first = add(DType::i32, sends ? keys : 0);
  messages.places = add(DType::i32, keys);
  messages.bag_numbers = add(DType::i32, messages.all.all_bags() + 1);
  messages.columns = add(DType::i64, messages.all.columns * static_cast<int64_t>(sizeof(ops::HostColumnPlan) / 8));
  messages.sizes = add(DType::i32, messages.all.messages * ops::kHostMessageSizes);
  messages.words = add(DType::i64, ops::most_host_words(messages.all.columns, all_bags, keys));
  return messages;
}

/// The columns of this rank, then of the owners that it gathers for.
void UniqueExchange::plan_asked(Runtime& runtime) {
  // A sum of rows that have been rounded is not the rounded sum.
  const bool exact = layout_.dtype == DType::f32 || layout_.dtype == layout_.storage;
  const std::vector<int>& owners = groups_.owners_through(comm_.rank());
  const int64_t bags = here() * layout_.samples;
  std::vector<ops::HostColumn> columns;
  std::vector<int32_t> first{0};
  for (size_t m = 0; m < owners.size(); ++m) {
    const ops::OwnerKeys& of = layout_.owners[static_cast<size_t>(owners[m])];
    for (int32_t c = of.first; c < of.first + of.count; ++c) {
      const int32_t most = layout_.keys_of_bag[static_cast<size_t>(c)];
      columns.push_back({.message = static_cast<int32_t>(m),
                         .most_keys = most,
                         .bags = static_cast<int32_t>(bags),
                         .sums_of_keys = exact || most <= 1,
                         .answered = owners[m] != comm_.rank()});
    }
    first.push_back(static_cast<int32_t>(columns.size()));
  }
  asked_ = plan_messages(runtime, columns, first, bags, most_keys_, true);
  asked_.ranks = owners;
  std::vector<int32_t> ranks_here(groups_.here().begin(), groups_.here().end());
  ranks_here_ = lists_.put(runtime, ranks_here);
}

/// The columns of this rank, once for each host.
void UniqueExchange::plan_answered(Runtime& runtime) {
  const bool exact = layout_.dtype == DType::f32 || layout_.dtype == layout_.storage;
  const ops::OwnerKeys& own = layout_.owners[static_cast<size_t>(comm_.rank())];
  std::vector<ops::HostColumn> columns;
  std::vector<int32_t> first{0};
  std::vector<ops::RankInMessage> of_rank(static_cast<size_t>(comm_.size()));
  std::vector<int> senders;
  int64_t most_bags = 0;
  for (size_t h = 0; h < groups_.hosts().size(); ++h) {
    const std::vector<int>& ranks = groups_.hosts()[h];
    const bool other = static_cast<int>(h) != groups_.host();
    const int64_t bags = static_cast<int64_t>(ranks.size()) * layout_.samples;
    most_bags = std::max(most_bags, bags);
    for (int32_t c = own.first; c < own.first + own.count; ++c) {
      const int32_t most = layout_.keys_of_bag[static_cast<size_t>(c)];
      columns.push_back({.message = static_cast<int32_t>(h),
                         .most_keys = most,
                         .bags = static_cast<int32_t>(bags),
                         .sums_of_keys = exact || most <= 1,
                         .answered = other});
    }
    first.push_back(static_cast<int32_t>(columns.size()));
    senders.push_back(other ? groups_.gathering_rank(h, comm_.rank()) : comm_.rank());
    for (size_t i = 0; i < ranks.size(); ++i)
      of_rank[static_cast<size_t>(ranks[i])] = {static_cast<int32_t>(h), static_cast<int32_t>(i)};
  }
  answered_ = plan_messages(runtime, columns, first, most_bags, layout_.owned_key_capacity, false);
  answered_.ranks = senders;
  of_rank_ = lists_.put(runtime, of_rank);
}

void UniqueExchange::count_full_size() {
  for (int r = 0; r < comm_.size(); ++r) {
    if (comm_.host_of(r) == groups_.host()) continue;
    const ops::OwnerKeys& owner = layout_.owners[static_cast<size_t>(r)];
    full_keys_ +=
        (owner.keys - owner.begin + layout_.most_keys[static_cast<size_t>(r)]) * static_cast<int64_t>(sizeof(int64_t));
    full_vectors_ += layout_.owned_columns * layout_.samples * layout_.vector_bytes();
    full_gradients_ += owner.count * layout_.samples * layout_.vector_bytes();
  }
}

ops::HostKeys UniqueExchange::arrays_of(const Messages& messages) const {
  return {.offsets = list(messages.offsets),
          .keys = arena_.get(messages.keys).data<int64_t>(),
          .first = list(messages.first),
          .places = list(messages.places),
          .bag_numbers = list(messages.bag_numbers),
          .columns = reinterpret_cast<ops::HostColumnPlan*>(arena_.get(messages.columns).bytes()),
          .sizes = reinterpret_cast<ops::HostMessageSizes*>(arena_.get(messages.sizes).bytes())};
}

void UniqueExchange::all_to_all(Context& ctx, Tensor in, const RankRanges& send, Tensor out,
                                const RankRanges& receive) {
  comm_.all_to_all(ctx, in, send, out, receive);
  for (int r = 0; r < comm_.size(); ++r)
    if (comm_.host_of(r) != groups_.host())
      bytes_.sent += send.count[static_cast<size_t>(r)] * static_cast<int64_t>(size_of(in.dtype()));
}

ops::OwnerLists UniqueExchange::owner_lists(const Batch& at) const {
  const auto total = [](const RankRanges& ranges) {
    return std::accumulate(ranges.count.begin(), ranges.count.end(), int64_t{0});
  };
  return {.vectors = total(at.sizes.vectors_answered),
          .offsets = list(at.owner_offsets),
          .keys = list(at.owner_keys),
          .first = list(first_keys_),
          .gradients = total(at.sizes.gradients_received),
          .of_bags = list(at.of_bags)};
}

void UniqueExchange::send_keys(Context& ctx, int buffer, const ops::KeyBatch& batch, const int32_t* local_rows,
                               uint8_t* present, Tensor owned_offsets, Tensor owned_keys) {
  Batch& at = batches_.at(static_cast<size_t>(buffer));
  std::byte* const scratch = arena_.get(scratch_).bytes();
  ops::KeySplit split = layout_.split;
  split.local_rows = local_rows;
  ops::pack_keys(ctx, batch, split, {arena_.get(sent_keys_).data<int64_t>(), list(sent_bags_)}, present,
                 list(at.requested), arena_.get(counts_), scratch);
  gather_keys(ctx, at);
  exchange_sizes(ctx, at);
  exchange_messages(ctx);
  bytes_.of_full_size += full_keys_;
  ops::read_host_keys(ctx, answered_.all, arrays_of(answered_), arena_.get(answered_.words), scratch);
  ops::join_host_keys(
      ctx, answered_.all, arrays_of(answered_), arena_.get(answered_.words),
      {.ranks = comm_.size(), .columns = layout_.owned_columns, .samples = layout_.samples, .of_rank = of_rank_},
      owned_offsets, owned_keys, owner_lists(at), scratch);
}

/// In the host: counts, then keys and their bags, to the rank that has or gathers for their owner, which merges them
/// and writes the messages.
void UniqueExchange::gather_keys(Context& ctx, Batch& at) {
  const int ranks = comm_.size(), row = 2 * ranks;
  RankRanges mine = none(ranks), theirs = none(ranks);
  for (size_t h = 0; h < groups_.here().size(); ++h) {
    set(mine, groups_.here()[h], 0, row);
    set(theirs, groups_.here()[h], static_cast<int64_t>(h) * row, row);
  }
  all_to_all(ctx, arena_.get(counts_), mine, arena_.get(counts_here_), theirs);
  auto* const counts = reinterpret_cast<int32_t*>(host_counts_.data());
  copy_bytes(ctx.stream(), counts, arena_.get(counts_here_).bytes(), host_counts_.bytes());
  ctx.stream().synchronize();

  Sizes& sizes = at.sizes;
  sizes = {.bags = none(ranks), .items = none(ranks), .own = {}};
  RankRanges to = none(ranks), from = none(ranks);
  auto* const first = reinterpret_cast<int32_t*>(host_first_.data());
  int64_t sent = 0, received = 0, bags = 0, items = 0;
  for (size_t h = 0; h < groups_.here().size(); ++h) {
    const int rank = groups_.here()[h];
    const auto sum = [&](size_t of, int through, int which) {
      int64_t all = 0;
      for (const int owner : groups_.owners_through(through))
        all += counts[static_cast<int>(of) * row + 2 * owner + which];
      return all;
    };
    const auto me = static_cast<size_t>(std::find(groups_.here().begin(), groups_.here().end(), comm_.rank()) -
                                        groups_.here().begin());
    set(to, rank, sent, sum(me, rank, 0));
    set(from, rank, received, sum(h, comm_.rank(), 0));
    set(sizes.bags, rank, bags, sum(me, rank, 1));
    set(sizes.items, rank, items, sum(h, comm_.rank(), 1));
    sizes.own.push_back(counts[static_cast<int>(h) * row + 2 * comm_.rank() + 1]);
    if (rank == comm_.rank()) sizes.own_bags = sizes.own.back();
    first[h] = static_cast<int32_t>(received);
    const auto r = static_cast<size_t>(rank);
    sent += to.count[r], received += from.count[r], bags += sizes.bags.count[r], items += sizes.items.count[r];
  }
  first[here()] = static_cast<int32_t>(received);
  copy_bytes(ctx.stream(), arena_.get(first_).bytes(), first, host_first_.bytes());
  all_to_all(ctx, arena_.get(sent_keys_), to, arena_.get(keys_here_), from);
  all_to_all(ctx, arena_.get(sent_bags_), to, arena_.get(bags_here_), from);

  std::byte* const scratch = arena_.get(scratch_).bytes();
  const auto first_bag =
      static_cast<int32_t>(layout_.owners[static_cast<size_t>(comm_.rank())].first * layout_.samples);
  const Tensor offsets = arena_.get(asked_.offsets);
  ops::merge_packed_keys(ctx, {here(), columns_through_, layout_.samples, 0},
                         {arena_.get(keys_here_).data<int64_t>(), list(bags_here_)}, list(first_), first_bag, offsets,
                         arena_.get(asked_.keys), list(items_), scratch);
  ops::plan_host_keys(ctx, asked_.all, arrays_of(asked_), received, scratch);
  ops::write_host_keys(ctx, asked_.all, arrays_of(asked_), arena_.get(asked_.words));
  ops::list_host_vectors(ctx, asked_.all, arrays_of(asked_),
                         {.count = items,
                          .samples = layout_.samples,
                          .bags = list(items_),
                          .ranks = ranks_here_,
                          .own_columns = layout_.owned_columns},
                         {.offsets = list(at.bag_offsets),
                          .vectors = list(at.bag_vectors),
                          .gradients = list(at.bag_gradients),
                          .own = list(at.own)},
                         scratch);
}

/// The sizes of messages, to their owners and to the host.
void UniqueExchange::exchange_sizes(Context& ctx, Batch& at) {
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
  ctx.stream().synchronize();

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
  place(asked_, sizes, at.sizes.vectors_asked, at.sizes.gradients_sent);
  place(answered_, sizes + ranks, at.sizes.vectors_answered, at.sizes.gradients_received);
  for (size_t m = 0; m < answered_.ranks.size(); ++m) at.sizes.listed += sizes[static_cast<size_t>(ranks) + m].listed;
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

}  // namespace hctr
