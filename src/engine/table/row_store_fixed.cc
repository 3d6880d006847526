// Assigns rows to keys that are known in advance.
#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/table/row_store.h"

namespace hctr {

void RowStore::assign_rows(std::span<const int64_t> keys, std::span<const int32_t> slots) {
  const auto rows = static_cast<int64_t>(keys.size());
  HCTR_EXPECT(index_.state().rows == 0 && keys_.empty() && (!arrays_.slots() || slots.size() == keys.size()),
              arrays_.label(), ": ", rows, " keys to be held");
  if (rows > arrays_.capacity())
    in_context([&] { return cat("reserving memory for ", rows, " frequent rows of ", arrays_.label()); },
               [&] { grow_rows(rows); });
  index_.grow(rows);
  const StreamRef stream = runtime_.compute_stream();
  copy_bytes(stream, arrays_.keys() + 1, keys.data(), keys.size_bytes());
  if (arrays_.slots()) copy_bytes(stream, arrays_.slots() + 1, slots.data(), slots.size_bytes());
  ops::IndexState now = index_.state();
  now.rows = static_cast<uint32_t>(rows);
  index_.put_state(now);
  Context ctx(runtime_, stream);
  ops::init_new_rows(ctx, index_.view(), arrays_.init(), arrays_.data());
  now.ready = now.finished = now.rows;
  index_.put_state(now);
  index_.build();
  index_.tell_host({now.batches, now.rows});
}

}  // namespace hctr
