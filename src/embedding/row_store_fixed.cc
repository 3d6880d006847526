// Assigns rows to keys that are known in advance.
#include <atomic>

#include "base/error.h"
#include "device/copy.h"
#include "embedding/row_store.h"

namespace hctr {

void RowStore::assign_rows(std::span<const int64_t> keys, std::span<const int32_t> slots) {
  const auto rows = static_cast<int64_t>(keys.size());
  HCTR_EXPECT(state().rows == 0 && keys_.empty() && (!index_.row_slots || slots.size() == keys.size()), label_, ": ",
              rows, " keys to be held");
  if (rows > capacity_)
    in_context([&] { return cat("reserving memory for ", rows, " frequent rows of ", label_); },
               [&] { grow_rows(rows); });
  grow_index(rows);
  const StreamRef stream = runtime_.compute_stream();
  copy_bytes(stream, index_.row_keys + 1, keys.data(), keys.size_bytes());
  if (index_.row_slots) copy_bytes(stream, index_.row_slots + 1, slots.data(), slots.size_bytes());
  ops::IndexState now = state();
  now.rows = static_cast<uint32_t>(rows);
  copy_bytes(stream, state_.data(), &now, sizeof now);
  Context ctx(runtime_, stream);
  ops::init_new_rows(ctx, index_, init_, data_);
  now.ready = now.finished = now.rows;
  copy_bytes(stream, state_.data(), &now, sizeof now);
  build_index();
  std::atomic_ref<uint64_t>(*host_word())
      .store(static_cast<uint64_t>(now.batches) << 32 | now.rows, std::memory_order_release);
}

}  // namespace hctr
