// Plans a UniqueExchange and allocates its memory.
#include "engine/exchange/unique_exchange.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace hctr {
namespace {

TensorSpec array_of(DType dtype, int64_t count) { return TensorSpec(dtype, {std::max<int64_t>(1, count)}); }

template <class T>
int64_t words_for(int64_t count) {
  return count * static_cast<int64_t>(sizeof(T) / sizeof(int32_t));
}
int64_t words_holding(size_t bytes) { return static_cast<int64_t>(bytes / sizeof(int32_t)) + 1; }

}  // namespace

UniqueExchange::UniqueExchange(Runtime& runtime, Communicator& comm, const HostGroups& groups, const Layout& layout,
                               int ring)
    : comm_(comm),
      groups_(groups),
      layout_(layout),
      on_host_(runtime.device()),
      host_counts_(runtime.device(), static_cast<size_t>(2 * comm.size() * here()) * sizeof(int32_t)),
      host_first_(runtime.device(), static_cast<size_t>(here() + 1) * sizeof(int32_t)),
      host_sizes_(runtime.device(), 2 * static_cast<size_t>(comm.size()) * sizeof(ops::HostMessageSizes)),
      host_summed_(runtime.device(), sizeof(int32_t)),
      host_refused_(runtime.device(), groups_.hosts().size() * sizeof(int32_t)) {
  const int64_t ranks = comm.size(), bags = layout.split.count * layout.samples;
  for (const int owner : groups_.owners_through(comm.rank())) {
    columns_through_ += layout.owners[static_cast<size_t>(owner)].count;
    most_keys_ += layout.most_keys[static_cast<size_t>(owner)] * here();
  }
  most_keys_ = std::min(most_keys_, layout.key_capacity * here());
  most_items_ = std::min(columns_through_ * here() * layout.samples, most_keys_);
  first_received_ = here() * layout.samples * layout.owned_columns;
  most_received_ = (ranks - here()) * layout.samples * layout.owned_columns;
  most_answered_ = std::min(most_received_, layout.owned_key_capacity);
  add_batches(ring);
  const auto add = [&](DType dtype, int64_t count) { return arena_.add(array_of(dtype, count)); };
  sent_keys_ = add(DType::i64, layout.key_capacity);
  sent_bags_ = add(DType::i32, layout.key_capacity);
  keys_here_ = add(DType::i64, most_keys_);
  bags_here_ = add(DType::i32, most_keys_);
  counts_ = add(DType::i32, 2 * ranks);
  counts_here_ = add(DType::i32, 2 * ranks * here());
  first_ = add(DType::i32, here() + 1);
  items_ = add(DType::i32, most_items_);
  first_keys_ = add(DType::i32, most_answered_);
  plan_asked(runtime);
  plan_answered(runtime);
  expect_countable();
  const int64_t joined = first_received_ + most_received_;
  const size_t scratch =
      std::max({ops::packed_keys_scratch_bytes(runtime.device(), bags),
                ops::packed_keys_scratch_bytes(runtime.device(), asked_.all.all_bags()),
                ops::host_keys_scratch_bytes(runtime.device(), asked_.all.all_bags(), most_keys_),
                ops::host_keys_scratch_bytes(runtime.device(), std::max(answered_.all.all_bags(), joined), joined)});
  scratch_ = add(DType::i32, words_holding(scratch));

  const auto of_vectors = [&](int64_t count) { return add(DType::i32, (count * layout.vector_bytes() + 3) / 4); };
  bags_ = of_vectors(std::min(bags, layout.key_capacity));
  through_ = of_vectors(most_items_);
  asked_vectors_ = of_vectors(most_items_ + 1);
  owned_vectors_ = of_vectors(most_answered_);
  answered_rows_ = add(DType::i32, layout.owned_key_capacity);
  if (layout.sums_gradients()) add_sums(runtime);
  in_context([] { return "allocating messages to other hosts"; }, [&] { arena_.build(runtime.device()); });
  count_full_size();
}

/// Adds to the arena the arrays of every batch of the ring. A batch uses its arrays until its step ends.
void UniqueExchange::add_batches(int ring) {
  const auto add = [&](int64_t count) { return arena_.add(array_of(DType::i32, count)); };
  for (int s = 0; s < ring; ++s) {
    Batch batch{.requested = add(std::min(layout_.split.count * layout_.samples, layout_.key_capacity)),
                .bag_offsets = add(most_items_ + 1),
                .bag_vectors = add(most_keys_),
                .bag_gradients = add(layout_.sums_gradients() ? 0 : most_items_),
                .own = add(most_items_),
                .owner_offsets = add(most_answered_ + 1),
                .owner_keys = add(layout_.owned_key_capacity),
                .key_gradients = add(layout_.gradients ? layout_.owned_key_capacity : 0)};
    if (layout_.sums_gradients())
      batch.groups = {.rows = add(most_keys_),
                      .bags = add(most_keys_),
                      .run_begin = add(most_keys_),
                      .long_runs = add(words_for<ops::LongRun>(ops::RowGroups::most_long_runs(most_keys_))),
                      .pieces = add(words_for<ops::Piece>(ops::RowGroups::most_pieces(most_keys_))),
                      .counts = add(words_for<ops::GroupCounts>(1))};
    batches_.push_back(batch);
  }
}

void UniqueExchange::add_sums(Runtime& runtime) {
  const auto add = [&](DType dtype, int64_t count) { return arena_.add(array_of(dtype, count)); };
  sums_ = add(DType::f32, layout_.dtype == DType::f32 ? 1 : (most_items_ + 1) * layout_.dim);
  piece_sums_ = add(DType::f32, ops::RowGroups::most_pieces(most_keys_) * layout_.dim);
  group_scratch_ = add(DType::i32, words_holding(ops::group_scratch_bytes(runtime.device(), most_keys_)));
}

/// Checks that the numbers of keys, bags, vectors and words fit in 32 bits.
void UniqueExchange::expect_countable() const {
  const int64_t most = std::numeric_limits<int32_t>::max() - 1;
  const auto expect = [&](const Messages& messages, int64_t keys, const char* what) {
    const int64_t bags = messages.all.all_bags(), words = messages.most_words;
    if (std::max({keys, bags, words}) > most)
      throw Error(
          Kind::config,
          cat("a batch may need ", keys, " keys of ", bags, " bags, in ", words, " words that rank ", comm_.rank(),
              what, "; each of these three numbers must be at most ", most, ": set a smaller \"batchsize\""));
  };
  expect(asked_, most_keys_, " may gather for other hosts");
  expect(answered_, layout_.owned_key_capacity, " may receive from all hosts");
}

ops::HostColumn UniqueExchange::column_of(int32_t c, size_t message, int64_t ranks, bool answered) const {
  const int32_t most = layout_.keys_of_bag[static_cast<size_t>(c)];
  return {.message = static_cast<int32_t>(message),
          .most_keys = most,
          .bags = static_cast<int32_t>(ranks * layout_.samples),
          .sums_of_keys = layout_.exact() || layout_.sums_in_hosts || most <= 1,
          .answered = answered};
}

/// `first`: the first column of each message. The last element of `first` is the end of the last message.
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
                            .sums_gradients = layout_.sums_gradients()}};
  messages.most_words = ops::most_host_words(messages.all.columns, all_bags, keys);
  const auto add = [&](DType dtype, int64_t count) { return arena_.add(array_of(dtype, count)); };
  messages.offsets = add(DType::i32, messages.all.all_bags() + 1);
  messages.keys = add(DType::i64, sends ? keys : 0);
  messages.first = add(DType::i32, sends ? keys : 0);
  messages.places = add(DType::i32, keys);
  messages.bag_numbers = add(DType::i32, messages.all.all_bags() + 1);
  messages.columns = add(DType::i64, messages.all.columns * static_cast<int64_t>(sizeof(ops::HostColumnPlan) / 8));
  messages.sizes = add(DType::i32, messages.all.messages * ops::kHostMessageSizes);
  messages.refused = add(DType::i32, messages.all.messages);
  messages.words = add(DType::i64, messages.most_words);
  return messages;
}

/// Plans the messages in which this rank sends keys, one message for each owner. The first message is for this rank
/// itself and has the columns that this rank owns. Each further message is for an owner on another host for which this
/// rank gathers keys, and has the columns of that owner.
void UniqueExchange::plan_asked(Runtime& runtime) {
  const std::vector<int>& owners = groups_.owners_through(comm_.rank());
  std::vector<ops::HostColumn> columns;
  std::vector<int32_t> first{0};
  for (size_t m = 0; m < owners.size(); ++m) {
    const ops::OwnerKeys& of = layout_.owners[static_cast<size_t>(owners[m])];
    for (int32_t c = of.first; c < of.first + of.count; ++c)
      columns.push_back(column_of(c, m, here(), owners[m] != comm_.rank()));
    first.push_back(static_cast<int32_t>(columns.size()));
  }
  asked_ = plan_messages(runtime, columns, first, here() * layout_.samples, most_keys_, true);
  asked_.ranks = owners;
}

/// Plans the messages that this rank answers as owner. There is one message per host, with the columns of this rank.
void UniqueExchange::plan_answered(Runtime& runtime) {
  const ops::OwnerKeys& own = layout_.owners[static_cast<size_t>(comm_.rank())];
  std::vector<ops::HostColumn> columns;
  std::vector<int32_t> first{0};
  std::vector<ops::RankInMessage> of_rank(static_cast<size_t>(comm_.size()));
  std::vector<int> senders;
  size_t most_ranks = 0;
  for (size_t h = 0; h < groups_.hosts().size(); ++h) {
    const std::vector<int>& ranks = groups_.hosts()[h];
    const bool other = static_cast<int>(h) != groups_.host();
    most_ranks = std::max(most_ranks, ranks.size());
    for (int32_t c = own.first; c < own.first + own.count; ++c)
      columns.push_back(column_of(c, h, static_cast<int64_t>(ranks.size()), other));
    first.push_back(static_cast<int32_t>(columns.size()));
    senders.push_back(other ? groups_.gathering_rank(h, comm_.rank()) : comm_.rank());
    for (size_t i = 0; i < ranks.size(); ++i)
      of_rank[static_cast<size_t>(ranks[i])] = {static_cast<int32_t>(h), static_cast<int32_t>(i)};
  }
  answered_ = plan_messages(runtime, columns, first, static_cast<int64_t>(most_ranks) * layout_.samples,
                            layout_.owned_key_capacity, false);
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
          .sizes = reinterpret_cast<ops::HostMessageSizes*>(arena_.get(messages.sizes).bytes()),
          .refused = list(messages.refused)};
}

ops::BagLists UniqueExchange::bag_lists(const Batch& at) const {
  return {.offsets = list(at.bag_offsets),
          .vectors = list(at.bag_vectors),
          .gradients = layout_.sums_gradients() ? nullptr : list(at.bag_gradients),
          .own = list(at.own)};
}

ops::OwnerLists UniqueExchange::owner_lists(const Batch& at) const {
  const std::vector<int64_t>& vectors = at.sizes.vectors_answered.count;
  return {.vectors = std::accumulate(vectors.begin(), vectors.end(), int64_t{0}),
          .offsets = list(at.owner_offsets),
          .keys = list(at.owner_keys),
          .first = list(first_keys_),
          .gradients = layout_.gradients ? list(at.key_gradients) : nullptr,
          .received = static_cast<int32_t>(first_received_),
          .zero = static_cast<int32_t>(first_received_ + most_received_)};
}

ops::RowGroups UniqueExchange::groups_of(const Batch& at) const {
  return {.rows = list(at.groups.rows),
          .bags = list(at.groups.bags),
          .run_begin = list(at.groups.run_begin),
          .long_runs = reinterpret_cast<ops::LongRun*>(list(at.groups.long_runs)),
          .pieces = reinterpret_cast<ops::Piece*>(list(at.groups.pieces)),
          .counts = reinterpret_cast<ops::GroupCounts*>(list(at.groups.counts))};
}

/// The bags whose gradients this rank sums, as a batch in which each key is the index of a gradient.
ops::KeyBatch UniqueExchange::summed_bags(const Batch& at) const {
  return {.offsets = list(at.bag_offsets),
          .slots = 1,
          .samples = end_of(at.sizes.items),
          .key_capacity = at.sizes.summed,
          .columns = 1};
}

}  // namespace hctr
