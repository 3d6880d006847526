#include "engine/disk/missing_keys.h"

#include <algorithm>
#include <utility>

#include "core/base/expect.h"
#include "ops/embedding/admit_keys.h"

namespace hctr {

void MissingKeys::start(Context& ctx, const ops::HashIndex& index, const ops::KeyBatch& batch, int32_t* rows) {
  HCTR_EXPECT(!ctx.queue(), "missing keys cannot be read inside a Lockstep: its kernels start only in Lockstep::run()");
  const size_t scratch = ops::missing_scratch_bytes(ctx.device(), batch.key_capacity),
               bytes = (static_cast<size_t>(batch.key_capacity) + 1) * sizeof(ops::MissingKey);
  if (scratch_.bytes() < scratch) scratch_ = Buffer(ctx.device(), scratch);
  if (!list_ || list_->bytes() < bytes) list_.emplace(ctx.device(), bytes);
  auto* const keys = reinterpret_cast<ops::MissingKey*>(list_->data());
  // Search with a copy of the index state in which the rows of all batches exist, including batches whose steps are
  // still running.
  if (!all_) all_.emplace(ctx.device(), sizeof(ops::IndexState));
  ops::HashIndex all = index;
  all.state = reinterpret_cast<ops::IndexState*>(all_->data());
  ops::see_all_rows(ctx, index, all.state);
  ops::index_find(ctx, all, batch, rows);
  ops::list_missing_keys(ctx, batch, rows, scratch_.data(), keys + 1, reinterpret_cast<int32_t*>(keys));
}

std::span<const ops::MissingKey> MissingKeys::different(const ops::HashIndex& index) {
  auto* const keys = reinterpret_cast<ops::MissingKey*>(list_->data()) + 1;
  ops::MissingKey* const end = keys + *reinterpret_cast<const int32_t*>(list_->data());
  const auto identity = [&](const ops::MissingKey& key) { return std::pair(index.identity_slot(key.slot), key.key); };
  std::sort(keys, end, [&](const ops::MissingKey& a, const ops::MissingKey& b) {
    return std::pair(identity(a), a.at) < std::pair(identity(b), b.at);
  });
  return {keys, std::unique(keys, end, [&](const ops::MissingKey& a, const ops::MissingKey& b) {
            return identity(a) == identity(b);
          })};
}

}  // namespace hctr
