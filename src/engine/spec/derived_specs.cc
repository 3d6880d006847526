#include "engine/spec/derived_specs.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {

TableSpec owner_spec(const TableSpec& whole, const Placement& placement, const OwnedBatches& owned) {
  const int64_t pieces = placement.pieces;
  HCTR_EXPECT(pieces == 1 || (whole.may_be_cut() && whole.dim % (4 * pieces) == 0), "table '", whole.name,
              "': rows of ", whole.dim, " elements in ", pieces, " pieces");
  TableSpec spec = whole;
  spec.ranks = static_cast<int>(placement.ranks);
  spec.pieces = pieces;
  spec.slots = whole.slots * pieces;
  spec.dim = whole.dim / pieces;
  spec.slot_bounds.clear();
  for (const float bound : whole.slot_bounds)
    spec.slot_bounds.insert(spec.slot_bounds.end(), static_cast<size_t>(pieces), bound);
  spec.combiner = ops::Combiner::sum;
  spec.slot_keys.clear();
  spec.batch_slots = owned.slots;
  spec.samples = owned.samples;
  spec.key_capacity = owned.key_capacity;
  spec.eval_samples = owned.eval_samples;
  spec.eval_key_capacity = owned.eval_key_capacity;
  return spec;
}

TableSpec replicated_slots_spec(const TableSpec& whole, const Placement& placement) {
  HCTR_EXPECT(!whole.direct.empty() && whole.identity_by_slot, "table '", whole.name,
              "': slots can be replicated only if their keys are known");
  TableSpec spec = whole;
  spec.direct = replicated_keys(whole.direct, placement);
  return spec;
}

TableSpec frequent_rows_spec(const TableSpec& whole, int64_t most_rows) {
  TableSpec spec = whole;
  spec.direct = {};
  spec.fixed_keys = true;
  spec.row_hint = 0;
  spec.row_limit = std::max<int64_t>(1, most_rows);
  return spec;
}

TableSpec counting_spec(const TableSpec& whole) {
  TableSpec spec = whole;
  spec.policy.finds_frequent = whole.replication.keys_file.empty();
  return spec;
}

TableSpec candidate_spec(const TableSpec& whole) {
  TableSpec spec;
  spec.name = "candidates of " + whole.name;
  spec.rank = whole.rank;
  spec.slots = whole.slots;
  spec.identity_by_slot = whole.identity_by_slot;
  spec.most_key_capacity = whole.most_key_capacity;
  spec.row_limit = whole.policy.max_candidates;
  spec.limit_setting = "max_candidates";
  spec.policy.when_full = WhenFull::evict_lru;
  spec.policy.of_candidates = true;
  spec.marks_changes = whole.marks_changes;
  spec.memory = whole.memory;
  spec.policy.expire_after = whole.policy.expire_after;
  return spec;
}

}  // namespace hctr
