#include "engine/disk/record_blocks.h"

#include <algorithm>

namespace hctr {
namespace {

constexpr int64_t kDiskBlockBytes = int64_t{16} << 20;  // maximum bytes of records per block
// The blocks for evicted rows together hold about 1/kShareOnItsWay of the rows in memory. An eviction moves more rows
// than the blocks hold.
constexpr int64_t kShareOnItsWay = 32;
constexpr int64_t kLeastBlocks = 2, kMostBlocks = 16;  // limits on the number of blocks for evicted rows
constexpr int64_t kBatchesAhead = 2;
constexpr size_t kRecordAlign = 16;
constexpr size_t kOfNumberAndEntry = sizeof(DiskRows::Row) + sizeof(int32_t);
static_assert(sizeof(DiskRows::Row) % kRecordAlign == 0);

}  // namespace

RecordBlocks::RecordBlocks(Device device, int64_t record_bytes, int64_t most_rows_at_a_time)
    : device_(device),
      record_bytes_(record_bytes),
      rows_at_a_time_(most_rows_at_a_time),
      // A block uses memory that rows could use, so a block has at most a quarter of the rows of a batch.
      block_rows_(std::max<int64_t>(1, std::min(most_rows_at_a_time / 4, kDiskBlockBytes / record_bytes))) {}

int64_t RecordBlocks::blocks(int64_t rows_in_memory) const {
  return 1 + std::clamp(rows_in_memory / kShareOnItsWay / block_rows_, kLeastBlocks, kMostBlocks);
}

int64_t RecordBlocks::most_ahead(int64_t rows_in_memory) const {
  return std::min(rows_in_memory / kShareOnItsWay, kBatchesAhead * rows_at_a_time_);
}

RecordBlocks::Block RecordBlocks::in(std::byte* memory, size_t rows) const {
  std::byte* const records = memory + rows * sizeof(DiskRows::Row);
  const size_t bytes = rows * static_cast<size_t>(record_bytes_);
  return {reinterpret_cast<DiskRows::Row*>(memory), records,
          reinterpret_cast<int32_t*>(records + (bytes + kRecordAlign - 1) / kRecordAlign * kRecordAlign)};
}

size_t RecordBlocks::rows_in(size_t bytes) const {
  return (bytes - kRecordAlign) / (static_cast<size_t>(record_bytes_) + kOfNumberAndEntry);
}

RecordBlocks::Block RecordBlocks::next_leaving(int64_t rows_in_memory) {
  last_left_ = last_left_ % static_cast<size_t>(blocks(rows_in_memory) - 1) + 1;
  return on_host(last_left_);
}

RecordBlocks::Block RecordBlocks::on_host(size_t which) {
  if (memory_.size() <= which) memory_.resize(which + 1);
  if (!memory_[which])
    memory_[which].emplace(device_, rows() * (static_cast<size_t>(record_bytes_) + kOfNumberAndEntry) + kRecordAlign);
  return in(memory_[which]->data(), rows());
}

}  // namespace hctr
