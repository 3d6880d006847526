#include "embedding/packed_exchange.h"

#include <algorithm>

#include "device/copy.h"

namespace hctr {
namespace {

TensorSpec words_of(DType dtype, int64_t count) { return TensorSpec(dtype, {std::max<int64_t>(1, count)}); }

int64_t total_of(const RankRanges& ranges) { return ranges.begin.back() + ranges.count.back(); }

}  // namespace

PackedExchange::PackedExchange(Runtime& runtime, Communicator& comm, const Layout& layout, int ring)
    : comm_(comm), layout_(layout) {
  const int64_t ranks = comm.size(), bags = layout.split.count * layout.samples,
                owned_bags = layout.owned_columns * ranks * layout.samples;
  const int64_t requested = std::min(bags, layout.key_capacity),
                owned = std::min(owned_bags, layout.owned_key_capacity);
  const auto add = [&](DType dtype, int64_t count) { return arena_.add(words_of(dtype, count)); };
  for (int s = 0; s < ring; ++s)
    batches_.push_back({add(DType::i32, requested),
                        add(DType::i32, owned),
                        HostBuffer(runtime.device(), static_cast<size_t>(4 * ranks) * sizeof(int32_t)),
                        HostBuffer(runtime.device(), static_cast<size_t>(ranks + 1) * sizeof(int32_t)),
                        {},
                        {}});
  sent_keys_ = add(DType::i64, layout.key_capacity);
  sent_bags_ = add(DType::i32, layout.key_capacity);
  received_keys_ = add(DType::i64, layout.owned_key_capacity);
  received_bags_ = add(DType::i32, layout.owned_key_capacity);
  counts_ = add(DType::i32, 2 * ranks);
  received_counts_ = add(DType::i32, 2 * ranks);
  first_ = add(DType::i32, ranks + 1);
  const size_t scratch = std::max(ops::packed_keys_scratch_bytes(runtime.device(), bags),
                                  ops::packed_keys_scratch_bytes(runtime.device(), owned_bags));
  scratch_ = add(DType::i32, static_cast<int64_t>(scratch / sizeof(int32_t)) + 1);
  const auto of_vectors = [&](int64_t count) { return add(DType::i32, (count * layout.vector_bytes() + 3) / 4); };
  of_samples_ = of_vectors(requested);
  of_owned_ = of_vectors(owned);
  in_context([] { return "allocating what is sent to other hosts"; }, [&] { arena_.build(runtime.device()); });

  for (int r = 0; r < comm.size(); ++r) {
    if (comm.host_of(r) == comm.host_of(comm.rank())) continue;
    const ops::OwnerKeys& owner = layout.owners[static_cast<size_t>(r)];
    full_keys_ +=
        (owner.keys - owner.begin + layout.most_keys[static_cast<size_t>(r)]) * static_cast<int64_t>(sizeof(int64_t));
    full_vectors_ += layout.owned_columns * layout.samples * layout.vector_bytes();
    full_gradients_ += owner.count * layout.samples * layout.vector_bytes();
  }
}

RankRanges PackedExchange::consecutive(const int32_t* counts, int ranks) {
  RankRanges ranges;
  int64_t at = 0;
  for (int r = 0; r < ranks; ++r) {
    ranges.add(at, counts[2 * r]);
    at += counts[2 * r];
  }
  return ranges;
}

void PackedExchange::all_to_all(Context& ctx, Tensor in, const RankRanges& send, Tensor out,
                                const RankRanges& receive) {
  comm_.all_to_all(ctx, in, send, out, receive);
  for (int r = 0; r < comm_.size(); ++r)
    if (comm_.host_of(r) != comm_.host_of(comm_.rank()))
      bytes_.sent += send.count[static_cast<size_t>(r)] * static_cast<int64_t>(size_of(in.dtype()));
}

void PackedExchange::send_keys(Context& ctx, int buffer, const ops::KeyBatch& batch, const int32_t* local_rows,
                               uint8_t* present, Tensor owned_offsets, Tensor owned_keys) {
  Batch& at = batches_.at(static_cast<size_t>(buffer));
  std::byte* const scratch = arena_.get(scratch_).bytes();
  ops::KeySplit split = layout_.split;
  split.local_rows = local_rows;
  ops::pack_keys(ctx, batch, split, {arena_.get(sent_keys_).data<int64_t>(), list(sent_bags_)}, present,
                 list(at.requested), arena_.get(counts_), scratch);
  carry_keys(ctx, at);
  bytes_.of_full_size += full_keys_;
  ops::merge_packed_keys(ctx, {comm_.size(), layout_.owned_columns, layout_.samples, 0},
                         {arena_.get(received_keys_).data<int64_t>(), list(received_bags_)},
                         arena_.get(first_).data<const int32_t>(), owned_offsets, owned_keys, list(at.owned), scratch);
}

void PackedExchange::carry_keys(Context& ctx, Batch& at) {
  const int ranks = comm_.size();
  const Tensor counts = arena_.get(counts_), received_counts = arena_.get(received_counts_);
  const RankRanges pairs = RankRanges::equal(ranks, 2);
  all_to_all(ctx, counts, pairs, received_counts, pairs);
  auto* const sent = reinterpret_cast<int32_t*>(at.counts.data());
  int32_t* const received = sent + 2 * ranks;
  copy_bytes(ctx.stream(), sent, counts.bytes(), static_cast<size_t>(2 * ranks) * sizeof(int32_t));
  copy_bytes(ctx.stream(), received, received_counts.bytes(), static_cast<size_t>(2 * ranks) * sizeof(int32_t));
  ctx.stream().synchronize();

  const RankRanges keys_to = consecutive(sent, ranks), keys_from = consecutive(received, ranks);
  at.requested_of = consecutive(sent + 1, ranks);
  at.owned_of = consecutive(received + 1, ranks);
  auto* const begins = reinterpret_cast<int32_t*>(at.first.data());
  for (size_t r = 0; r < keys_from.begin.size(); ++r) begins[r] = static_cast<int32_t>(keys_from.begin[r]);
  begins[ranks] = static_cast<int32_t>(total_of(keys_from));
  copy_bytes(ctx.stream(), arena_.get(first_).bytes(), begins, static_cast<size_t>(ranks + 1) * sizeof(int32_t));
  all_to_all(ctx, arena_.get(sent_keys_), keys_to, arena_.get(received_keys_), keys_from);
  all_to_all(ctx, arena_.get(sent_bags_), keys_to, arena_.get(received_bags_), keys_from);
}

void PackedExchange::copy(Context& ctx, const RankRanges& ranges, ops::ListedVectors listed, std::byte* packed,
                          bool pack) {
  const auto own = static_cast<size_t>(comm_.rank());
  const auto part = [&](int64_t begin, int64_t end) {
    const ops::ListedVectors some{listed.vectors, listed.list + begin}, dense{packed + begin * layout_.vector_bytes()};
    ops::copy_listed(ctx, pack ? some : dense, pack ? dense : some, end - begin, layout_.vector_bytes());
  };
  part(0, ranges.begin[own]);
  part(ranges.begin[own] + ranges.count[own], total_of(ranges));
}

void PackedExchange::send(Context& ctx, size_t in, const RankRanges& send, size_t out, const RankRanges& receive) {
  const DType word = layout_.vector_bytes() % 4 == 0 ? DType::i32 : DType::f16;
  const int64_t words = layout_.vector_bytes() / static_cast<int64_t>(size_of(word));
  const auto in_words = [&](RankRanges ranges) {
    ranges.count[static_cast<size_t>(comm_.rank())] = 0;
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

void PackedExchange::send_vectors(Context& ctx, int buffer, const Memory& memory, const OwnedRows& rows) {
  carry_vectors(ctx, batches_.at(static_cast<size_t>(buffer)), memory, rows);
  bytes_.of_full_size += full_vectors_;
}

void PackedExchange::carry_vectors(Context& ctx, Batch& at, const Memory& memory, const OwnedRows&) {
  copy(ctx, at.owned_of, {memory.of_owned, list(at.owned)}, arena_.get(of_owned_).bytes(), true);
  send(ctx, of_owned_, at.owned_of, of_samples_, at.requested_of);
}

void PackedExchange::receive_vectors(Context& ctx, int buffer, const Memory& memory) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  copy(ctx, at.requested_of, {memory.of_samples, list(at.requested)}, arena_.get(of_samples_).bytes(), false);
}

void PackedExchange::send_gradients(Context& ctx, int buffer, const Memory& memory) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  copy(ctx, at.requested_of, {memory.of_samples, list(at.requested)}, arena_.get(of_samples_).bytes(), true);
  send(ctx, of_samples_, at.requested_of, of_owned_, at.owned_of);
  bytes_.of_full_size += full_gradients_;
}

void PackedExchange::receive_gradients(Context& ctx, int buffer, const Memory& memory) {
  const Batch& at = batches_.at(static_cast<size_t>(buffer));
  copy(ctx, at.owned_of, {memory.of_owned, list(at.owned)}, arena_.get(of_owned_).bytes(), false);
}

}  // namespace hctr
