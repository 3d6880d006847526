#include "engine/table/batch_memory.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace hctr {
namespace {

int64_t words_of(size_t bytes) { return static_cast<int64_t>((bytes + sizeof(int32_t) - 1) / sizeof(int32_t)); }

/// Collects tensors for an arena. add() adds a tensor of `count` elements of T, and build() sets `pointer` to the
/// tensor's memory.
class Parts {
 public:
  explicit Parts(Arena& arena) : arena_(arena) {}
  template <class T>
  void add(T*& pointer, int64_t count) {
    add_bytes(pointer, static_cast<size_t>(count) * sizeof(T));
  }
  template <class T>
  void add_bytes(T*& pointer, size_t bytes) {
    parts_.push_back({arena_.add(TensorSpec(DType::i32, {words_of(bytes)})),
                      [&pointer](std::byte* at) { pointer = reinterpret_cast<T*>(at); }});
  }
  void build(Device device) {
    arena_.build(device);
    for (const Part& part : parts_) part.set(arena_.get(part.ticket).bytes());
  }

 private:
  struct Part {
    size_t ticket;
    std::function<void(std::byte*)> set;
  };
  Arena& arena_;
  std::vector<Part> parts_;
};

}  // namespace

BatchMemory::BatchMemory(Device device, int64_t keys) : keys_(std::max<int64_t>(keys, 1)) {
  Parts parts(arena_);
  parts.add(rows, keys_);
  parts.add(groups.rows, keys_);
  parts.add(groups.bags, keys_);
  parts.add(groups.run_begin, keys_);
  parts.add(groups.long_runs, ops::RowGroups::most_long_runs(keys_));
  parts.add(groups.pieces, ops::RowGroups::most_pieces(keys_));
  parts.add(groups.counts, 1);
  parts.add(rows_after, 1);
  parts.build(device);
}

BatchScratch::BatchScratch(Device device, int64_t keys, int64_t eval_keys, int64_t dim) {
  keys = std::max<int64_t>(keys, 1);
  Parts parts(arena_);
  parts.add(piece_sums, ops::RowGroups::most_pieces(keys) * dim);
  parts.add(eval_rows, std::max<int64_t>(eval_keys, 1));
  parts.add_bytes(group, ops::group_scratch_bytes(device, keys) + sizeof(int32_t));
  parts.build(device);
}

}  // namespace hctr
