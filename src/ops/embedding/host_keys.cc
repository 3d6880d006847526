#include "ops/embedding/host_keys.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "ops/embedding/host_keys_rules.h"
#include "ops/embedding/host_list_rules.h"

namespace hctr::ops {

size_t host_keys_scratch_bytes(Device device, int64_t bags, int64_t keys) {
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) return cuda::host_keys_scratch_bytes(bags, keys);
  }
  return cpu::host_keys_scratch_bytes(bags, keys);
}

int64_t most_host_words(int64_t columns, int64_t bags, int64_t keys) {
  return 2 * columns + keys + (4 * bags + 4 * keys) / 8 + 1;
}

void plan_host_keys(Context& ctx, HostMessages all, HostKeys keys, int64_t occurrences, std::byte* scratch) {
  HCTR_ON_DEVICE(ctx, plan_host_keys(ctx, all, keys, occurrences, scratch));
}

void write_host_keys(Context& ctx, HostMessages all, HostKeys keys, Tensor words) {
  HCTR_ON_DEVICE(ctx, write_host_keys(ctx, all, keys, words));
}

void read_host_keys(Context& ctx, HostMessages all, HostKeys keys, Tensor words, std::byte* scratch) {
  HCTR_ON_DEVICE(ctx, read_host_keys(ctx, all, keys, words, scratch));
}

void join_host_keys(Context& ctx, HostMessages all, HostKeys read, Tensor words, HostJoin join, Tensor offsets,
                    Tensor keys, OwnerLists lists, std::byte* scratch) {
  expect_shape("join_host_keys offsets", offsets, {join.columns * join.ranks * join.samples + 1});
  HCTR_ON_DEVICE(ctx, join_host_keys(ctx, all, read, words, join, offsets, keys, lists, scratch));
}

void list_host_vectors(Context& ctx, HostMessages all, HostKeys planned, HostBags bags, BagLists lists,
                       std::byte* scratch) {
  HCTR_ON_DEVICE(ctx, list_host_vectors(ctx, all, planned, bags, lists, scratch));
}

namespace cpu {
namespace {

constexpr int64_t kBagsAtOnce = 4096;
constexpr int32_t kNoKey = -1;

void number_bags(const HostMessages& all, const HostKeys& keys) {
  int32_t number = 0;
  for (int64_t i = 0; i < all.all_bags(); ++i) {
    keys.bag_numbers[i] = number;
    number += keys.offsets[i + 1] > keys.offsets[i];
  }
  keys.bag_numbers[all.all_bags()] = number;
}

void place_messages(const HostMessages& all, const HostKeys& keys) {
  for (int32_t m = 0; m < all.messages; ++m) place_columns(all, m, keys.sizes, keys.columns);
}

/// Computes keys.first for column c with open addressing. `table` has a power-of-two size, at least twice the number of
/// keys.
void find_first(const HostMessages& all, const HostKeys& keys, int32_t c, std::vector<int32_t>& table) {
  const int32_t begin = keys.offsets[c * all.bags], end = keys.offsets[(c + 1) * all.bags];
  table.assign(std::bit_ceil(2 * static_cast<size_t>(end - begin) + 1), kNoKey);
  const size_t mask = table.size() - 1;
  for (int32_t p = begin; p < end; ++p) {
    size_t at = first_slot(keys.keys[p], c) & mask;
    while (table[at] != kNoKey && keys.keys[table[at]] != keys.keys[p]) at = (at + 1) & mask;
    if (table[at] == kNoKey) table[at] = p;
    keys.first[p] = table[at];
  }
}

/// Exclusive prefix sums: values[i] = the sum of values[0, i).
void prefix_sums(int32_t* values, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += std::exchange(values[i], sum);
}

}  // namespace

size_t host_keys_scratch_bytes(int64_t, int64_t keys) { return static_cast<size_t>(keys + 1) * sizeof(int32_t); }

void plan_host_keys(Context& ctx, HostMessages all, HostKeys keys, int64_t occurrences, std::byte* scratch) {
  auto* const unique_before = reinterpret_cast<int32_t*>(scratch);
  number_bags(all, keys);
  ctx.threads().parallel_for(all.columns, 1, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> table;
    for (auto c = static_cast<int32_t>(begin); c < end; ++c)
      if (all.column[c].answered)
        find_first(all, keys, c, table);
      else
        for (int32_t p = keys.offsets[c * all.bags]; p < keys.offsets[(c + 1) * all.bags]; ++p) keys.first[p] = p;
  });
  for (int64_t p = 0; p < occurrences; ++p) unique_before[p] = keys.first[p] == p;
  unique_before[occurrences] = 0;
  prefix_sums(unique_before, occurrences + 1);
  for (int32_t c = 0; c < all.columns; ++c) plan_column(all, keys, unique_before, c);
  for (int32_t m = 0; m < all.messages; ++m) keys.sizes[m] = sizes_of(all, m, keys.columns);
  place_messages(all, keys);
  ctx.threads().parallel_for(all.all_bags(), kBagsAtOnce, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) number_bag(all, keys, unique_before, i);
  });
}

void write_host_keys(Context& ctx, HostMessages all, HostKeys keys, Tensor words) {
  for (int32_t c = 0; c < all.columns; ++c) write_head(all, keys, words.bytes(), c);
  ctx.threads().parallel_for(all.all_bags(), kBagsAtOnce, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) write_bag(all, keys, words.bytes(), i);
  });
}

void read_host_keys(Context& ctx, HostMessages all, HostKeys keys, Tensor words, std::byte*) {
  for (int32_t m = 0; m < all.messages; ++m) read_heads(all, keys, words.bytes(), m);
  for (int32_t c = 0; c < all.columns; ++c) {
    const ColumnFindings found = look_at_column(all, keys, words.bytes(), c, 0, 1);
    keys.columns[c].counted = found.keys;
    keys.columns[c].bags = found.bags;
    if (!found.good) keys.refused[all.column[c].message] = 1;
  }
  for (int32_t m = 0; m < all.messages; ++m) finish_message(all, keys, m);
  keys.offsets[0] = 0;
  for (int64_t i = 0; i < all.all_bags(); ++i)
    keys.offsets[i + 1] = keys.offsets[i] + length_of(all, keys, words.bytes(), i);
  number_bags(all, keys);
  ctx.threads().parallel_for(all.all_bags(), kBagsAtOnce, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) read_places(all, keys, words.bytes(), i);
  });
}

void join_host_keys(Context&, HostMessages all, HostKeys read, Tensor words, HostJoin join, Tensor offsets, Tensor keys,
                    OwnerLists lists, std::byte*) {
  auto* const offset = offsets.data<int32_t>();
  const int64_t bags = join.columns * join.ranks * join.samples;
  const auto least = [](int32_t& at, int32_t value) { at = std::min(at, value); };
  offset[0] = 0;
  for (int64_t i = 0; i < bags; ++i) {
    const int64_t bag = JoinedBag(all, join, i).bag;
    offset[i + 1] = offset[i] + read.offsets[bag + 1] - read.offsets[bag];
  }
  std::fill_n(lists.first, lists.vectors, std::numeric_limits<int32_t>::max());
  std::fill_n(lists.offsets, lists.vectors + 1, 0);
  for (int64_t i = 0; i < bags; ++i)
    join_bag(all, read, words.bytes(), join, offset, keys.data<int64_t>(), lists, i, least);
  prefix_sums(lists.offsets, lists.vectors + 1);
  for (int64_t i = 0; i < bags; ++i) list_joined_bag(all, read, join, offset, lists, i);
}

void list_host_vectors(Context&, HostMessages all, HostKeys planned, HostBags bags, BagLists lists, std::byte*) {
  for (int64_t i = 0; i < bags.count; ++i) list_bag(all, planned, bags, lists, i);
  lists.offsets[bags.count] = 0;
  prefix_sums(lists.offsets, bags.count + 1);
  for (int64_t i = 0; i < bags.count; ++i) list_vectors(all, planned, bags, lists, i);
}

}  // namespace cpu
}  // namespace hctr::ops
