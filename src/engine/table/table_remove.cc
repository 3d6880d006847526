// Removes rows of a table by key.
#include <algorithm>
#include <utility>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/table/remove_rows.h"
#include "engine/table/table.h"

namespace hctr {

int64_t EmbeddingTable::remove_rows(std::span<const int64_t> keys) {
  if (store_.rows().direct())
    throw Error(Kind::usage, cat("rows of table '", spec_.name,
                                 "' cannot be removed: its keys are row numbers, and every row "
                                 "exists"));
  if (may_be_on_disk())
    throw Error(Kind::usage, cat("rows of table '", spec_.name,
                                 "' cannot be removed by key, because rows may be "
                                 "on disk"));
  const StreamRef stream = runtime_.compute_stream();
  Context ctx(runtime_, stream);
  constexpr size_t kAtOnce = size_t{1} << 20;
  int64_t gone = 0;
  for (size_t first = 0; first < keys.size(); first += kAtOnce) {
    const auto some = keys.subspan(first, std::min(kAtOnce, keys.size() - first));
    const int32_t offsets[] = {0, static_cast<int32_t>(some.size())};
    const Buffer device_keys(ctx.device(), some.size_bytes()), device_offsets(ctx.device(), sizeof offsets),
        rows(ctx.device(), some.size() * sizeof(int32_t));
    copy_bytes(stream, device_keys.data(), some.data(), some.size_bytes());
    copy_bytes(stream, device_offsets.data(), offsets, sizeof offsets);
    const ops::KeyBatch batch{.keys = reinterpret_cast<const int64_t*>(device_keys.data()),
                              .offsets = reinterpret_cast<const int32_t*>(device_offsets.data()),
                              .slots = 1,
                              .samples = 1,
                              .key_capacity = static_cast<int64_t>(some.size())};
    auto* const of_keys = reinterpret_cast<int32_t*>(rows.data());
    ops::index_find(ctx, store_.rows().index().view(), batch, of_keys);
    gone += remove_listed_rows(store_, of_keys, batch.key_capacity);
  }
  if (admission_ && admission_->closed() && this->rows() < spec_.row_limit) admission_->close(false);
  return gone;
}

}  // namespace hctr
