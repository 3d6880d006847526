#include "ops/embedding/embedding_group.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hctr::ops {

size_t group_scratch_bytes(Device device, int64_t key_capacity) {
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) return cuda::group_scratch_bytes(key_capacity);
  }
  return cpu::group_scratch_bytes(key_capacity);
}

void group_by_row(Context& ctx, KeyBatch batch, const int32_t* rows, int row_bits, RowGroups groups,
                  std::byte* scratch) {
  HCTR_ON_DEVICE(ctx, group_by_row(ctx, batch, rows, row_bits, groups, scratch));
}

namespace cpu {
namespace {

constexpr int kDigitBits = 11;
constexpr int64_t kBuckets = int64_t{1} << kDigitBits;
constexpr int64_t kMostParts = 64;

/// One stable pass of a radix sort: each thread counts the digits of its part of the items, then scatters these items.
void sort_pass(Context& ctx, const uint64_t* from, uint64_t* to, int64_t count, int shift, uint32_t* buckets) {
  const int64_t parts = std::clamp<int64_t>(count / 8192, 1, std::min<int64_t>(ctx.threads().threads(), kMostParts));
  const auto digit = [shift](uint64_t item) { return (item >> shift) & (kBuckets - 1); };
  const auto each_part = [&](auto&& body) {
    ctx.threads().parallel_for(parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part)
        body(buckets + part * kBuckets, count * part / parts, count * (part + 1) / parts);
    });
  };
  each_part([&](uint32_t* mine, int64_t begin, int64_t end) {
    std::fill(mine, mine + kBuckets, 0);
    for (int64_t i = begin; i < end; ++i) ++mine[digit(from[i])];
  });
  uint32_t at = 0;
  for (int64_t b = 0; b < kBuckets; ++b)
    for (int64_t part = 0; part < parts; ++part) at += std::exchange(buckets[part * kBuckets + b], at);
  each_part([&](uint32_t* mine, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[mine[digit(from[i])]++] = from[i];
  });
}

void find_runs(const KeyBatch& batch, const RowGroups& groups, int64_t first_with_row) {
  GroupCounts counts{};
  for (int64_t i = first_with_row; i < batch.key_capacity; ++i)
    if (i == first_with_row || groups.rows[i] != groups.rows[i - 1])
      groups.run_begin[counts.runs++] = static_cast<int32_t>(i);
  *groups.counts = counts;
  for (int32_t run = 0; run < counts.runs; ++run) {
    const int64_t begin = groups.run_begin[run], end = groups.run_end(run, batch.key_capacity);
    if (end - begin <= kPiece) continue;
    const auto pieces = static_cast<int32_t>((end - begin + kPiece - 1) / kPiece);
    groups.long_runs[counts.long_runs++] = {run, counts.pieces, pieces};
    for (int64_t at = begin; at < end; at += kPiece)
      groups.pieces[counts.pieces++] = {static_cast<int32_t>(at), static_cast<int32_t>(std::min(at + kPiece, end))};
  }
  *groups.counts = counts;
}

}  // namespace

size_t group_scratch_bytes(int64_t key_capacity) {
  return static_cast<size_t>(2 * key_capacity) * sizeof(uint64_t) +
         static_cast<size_t>(kMostParts * kBuckets) * sizeof(uint32_t);
}

void group_by_row(Context& ctx, KeyBatch batch, const int32_t* rows, int, RowGroups groups, std::byte* scratch) {
  auto* from = reinterpret_cast<uint64_t*>(scratch);  // items: row in the upper half, bag in the lower half
  auto* to = from + batch.key_capacity;
  auto* buckets = reinterpret_cast<uint32_t*>(to + batch.key_capacity);
  const int64_t count = batch.size();
  int32_t last_row = 0;
  for (int64_t bag = 0; bag < batch.bags(); ++bag)
    for (int64_t p = batch.offsets[bag]; p < batch.offsets[bag + 1]; ++p) {
      from[p] = static_cast<uint64_t>(rows[p]) << 32 | static_cast<uint64_t>(batch.gradient_of(bag, p));
      last_row = std::max(last_row, rows[p]);
    }
  const int bits = std::bit_width(static_cast<uint32_t>(last_row));
  for (int bit = 0; bit < bits; bit += kDigitBits) {
    sort_pass(ctx, from, to, count, 32 + bit, buckets);
    std::swap(from, to);
  }
  const int64_t padding = batch.key_capacity - count;
  std::fill(groups.rows, groups.rows + padding, 0);
  ctx.threads().parallel_for(count, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      groups.rows[padding + i] = static_cast<int32_t>(from[i] >> 32);
      groups.bags[padding + i] = static_cast<int32_t>(from[i]);
    }
  });
  find_runs(batch, groups, std::upper_bound(groups.rows, groups.rows + batch.key_capacity, 0) - groups.rows);
}

}  // namespace cpu
}  // namespace hctr::ops
