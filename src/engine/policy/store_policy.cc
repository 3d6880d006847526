#include "engine/policy/store_policy.h"

#include <algorithm>
#include <utility>

#include "core/base/expect.h"

namespace hctr {
namespace {

/// The maximum number of rows at any time, including the shared row. The rows of a batch can exceed `limit`: other rows
/// are evicted, and rows on disk are counted, only after the batch has inserted its rows.
int64_t most_rows_of(const TableSpec& spec, int64_t limit, int64_t batch_keys, bool on_disk) {
  if (limit == 0) return kMostRows;
  if (spec.policy.when_full == WhenFull::error && !on_disk) return std::min(limit, kMostRows);
  return std::min(limit + batch_keys + spec.policy.shares_row(), kMostRows);
}

int64_t limit_of(const TableSpec& spec) { return spec.direct.empty() ? spec.row_limit : 0; }

}  // namespace

StorePolicy::StorePolicy(const TableSpec& spec, int64_t most_batch_keys, bool on_disk, std::string label,
                         const SettingWords& words)
    : rules_(spec.policy),
      limit_(limit_of(spec)),
      most_rows_(most_rows_of(spec, limit_, most_batch_keys, on_disk)),
      label_(std::move(label)),
      setting_(spec.limit_setting),
      words_(words) {}

int64_t StorePolicy::most_after(int64_t at_most, int64_t batch_keys) const {
  return rows_may_leave() ? std::min(at_most, most_kept() + batch_keys) : at_most;
}

void StorePolicy::check(int64_t rows) const {
  if (!beyond(rows)) return;
  throw Error(Kind::data, cat(label_, ": the data contain more keys than the ", limit_, " rows that \"", setting_,
                              "\" allows (", rows - rules_.shares_row(), " or more); raise the limit, ", words_.full));
}

void StorePolicy::check_batch(int64_t different_keys) const {
  if (different_keys <= limit_) return;
  throw Error(
      Kind::data,
      cat(label_, ": one batch holds ", different_keys, " different keys, more than the ", limit_, " rows that \"",
          setting_, "\" allows, and rows of the batch cannot be evicted; raise the limit, or ", words_.smaller_batch));
}

int64_t StorePolicy::rows_to_evict(const RowCounts& rows, int64_t admitted, int64_t staying) const {
  return std::max<int64_t>(0, rows.all() - admitted - std::max(RowPolicy::rows_left(limit_), staying));
}

}  // namespace hctr
