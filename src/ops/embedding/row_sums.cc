#include "ops/embedding/row_sums.h"

#include <algorithm>

namespace hctr::ops {

void number_runs(Context& ctx, RowGroups groups, int64_t key_capacity, int32_t* run_of) {
  HCTR_ON_DEVICE(ctx, number_runs(ctx, groups, key_capacity, run_of));
}
void report_runs(Context& ctx, RowGroups groups, int32_t* host) { HCTR_ON_DEVICE(ctx, report_runs(ctx, groups, host)); }
void keys_of_runs(Context& ctx, RowGroups groups, RowIdentity identity, int64_t key_capacity, int64_t* keys) {
  HCTR_ON_DEVICE(ctx, keys_of_runs(ctx, groups, identity, key_capacity, keys));
}

namespace cpu {

void number_runs(Context&, RowGroups groups, int64_t key_capacity, int32_t* run_of) {
  const int32_t runs = groups.counts->runs;
  std::fill_n(run_of, runs > 0 ? groups.run_begin[0] : key_capacity, 0);
  for (int32_t run = 0; run < runs; ++run)
    std::fill(run_of + groups.run_begin[run], run_of + groups.run_end(run, key_capacity), run);
}

void report_runs(Context&, RowGroups groups, int32_t* host) { *host = groups.counts->runs; }

void keys_of_runs(Context&, RowGroups groups, RowIdentity identity, int64_t, int64_t* keys) {
  for (int32_t run = 0; run < groups.counts->runs; ++run)
    keys[run] = identity.of(groups.rows[groups.run_begin[run]]).key;
}

}  // namespace cpu
}  // namespace hctr::ops
