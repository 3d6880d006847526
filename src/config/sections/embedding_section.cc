#include "config/sections/embedding_section.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr std::string_view kOneHot = "LocalizedSlotSparseEmbeddingOneHot";

/// A saturating sum, because a config may state arbitrarily large sizes.
int64_t sum_or_most(int64_t a, int64_t b) { return a + std::min(b, std::numeric_limits<int64_t>::max() - a); }
int64_t share_of(int64_t rows, int64_t ranks) { return rows / ranks + (rows % ranks > 0); }

}  // namespace

bool EmbeddingSection::identity_by_slot() const {
  return hparam.identity.value_or(type == kDistributedEmbedding ? Identity::key : Identity::slot_and_key) ==
         Identity::slot_and_key;
}

PlacementRule EmbeddingSection::placement_rule() const {
  const bool may_leave =
      // Replicated rows support no row policy, no row limit and no key counts.
      hparam.policy().any() || hparam.limited() || hparam.count_keys;
  const bool frequent = type == kHybridEmbedding && !may_leave;
  if (placement) return *placement == PlacementRule::automatic && frequent ? PlacementRule::hybrid : *placement;
  if (frequent) return PlacementRule::hybrid;
  if (type == kDistributedEmbedding || !identity_by_slot()) return PlacementRule::distributed;
  return type == kHybridEmbedding ? PlacementRule::automatic : PlacementRule::localized;
}

Replication EmbeddingSection::replication(int64_t batch) const {
  switch (placement_rule()) {
    case PlacementRule::data_parallel:
      return {.of = Replication::Of::all};
    case PlacementRule::hybrid:
      return {Replication::Of::frequent, hparam.frequent_keys, hparam.num_iterations_statistics.value_or(20),
              std::min(hparam.max_num_frequent_categories.value_or(1), kMostRows / batch) * batch};
    default:
      return {};
  }
}

bool SparseEmbeddingHparam::sizes_fit() const {
  int64_t left = kMostRows;
  return std::all_of(slot_size_array.begin(), slot_size_array.end(),
                     [&](int64_t size) { return size <= left && (left -= size) >= 0; });
}

bool EmbeddingSection::direct() const {
  if (hparam.index != IndexKind::automatic) return hparam.index == IndexKind::direct;
  const bool promises_ranges = type == kOneHot || type == kHybridEmbedding;
  return promises_ranges && !hparam.slot_size_array.empty() && hparam.sizes_fit() && !hparam.policy().any();
}

const std::vector<std::string>& embedding_types() {
  static const std::vector<std::string> types = {std::string(kDistributedEmbedding), "LocalizedSlotSparseEmbeddingHash",
                                                 std::string(kOneHot), std::string(kHybridEmbedding)};
  return types;
}

bool is_embedding_type(std::string_view type) {
  const auto& types = embedding_types();
  return std::find(types.begin(), types.end(), type) != types.end();
}

void check_placement(const EmbeddingSection& e, const std::string& pointer, const std::string& word,
                     Problems& problems) {
  const PlacementRule rule = e.placement_rule();
  const SparseEmbeddingHparam& h = e.hparam;
  if (rule == PlacementRule::data_parallel && !e.direct())
    problems.error(word, cat("ranks can replicate all rows of '", e.top(),
                             "' only if the keys are known: \"index\": \"direct\" with \"slot_size_array\""));
  if ((rule == PlacementRule::hybrid || rule == PlacementRule::data_parallel) && h.count_keys)
    problems.error(word,
                   cat("\"count_keys\" needs an owner rank for every row, and replicated rows have no owner: remove "
                       "\"count_keys\" of '",
                       e.top(), "', or use \"localized\" or \"distributed\""));
  if (rule == PlacementRule::hybrid && (h.policy().any() || h.limited()))
    problems.error(word, cat("eviction, admission and row limits are not possible for replicated rows: remove "
                             "these fields of '",
                             e.top(), "', or use \"localized\" or \"distributed\""));
  else if (e.type == kHybridEmbedding && rule == PlacementRule::automatic)
    problems.note(pointer,
                  "hot keys are not replicated, because this table has eviction, admission, counts or a row limit");
  const std::string place = pointer + "/sparse_embedding_hparam/";
  const bool hybrid = e.replication().of == Replication::Of::frequent;
  if (!h.frequent_keys.empty() && !hybrid) problems.error(place + "frequent_keys", "needs \"placement\": \"hybrid\"");
  const auto finds = [&](const char* field, bool given) {
    if (given && !(hybrid && h.frequent_keys.empty()))
      problems.note(place + field, cat("\"", field,
                                       "\" is accepted and has no effect: training searches for hot keys only with "
                                       "\"placement\": \"hybrid\" and without \"frequent_keys\""));
  };
  finds("num_iterations_statistics", h.num_iterations_statistics.has_value());
  finds("max_num_frequent_categories", h.max_num_frequent_categories.has_value());
}

void check_slots(const EmbeddingSection& section, int64_t slots, const std::string& pointer, Problems& problems) {
  const auto sizes = static_cast<int64_t>(section.hparam.slot_size_array.size());
  if (sizes != 0 && sizes != slots)
    problems.error(pointer + "/sparse_embedding_hparam/slot_size_array",
                   cat("has ", sizes, sizes == 1 ? " size" : " sizes", "; sparse input \"", section.bottom, "\" has ",
                       slots, slots == 1 ? " slot" : " slots"));
}

RowPolicy SparseEmbeddingHparam::policy() const {
  RowPolicy policy;
  policy.when_full = when_full.value_or(policy.when_full);
  policy.expire_after = expire_after.value_or(policy.expire_after);
  policy.min_count = min_count.value_or(policy.min_count);
  policy.admit_probability = admit_probability.value_or(policy.admit_probability);
  policy.max_candidates = max_candidates.value_or(policy.max_candidates);
  policy.counts_keys = count_keys;
  return policy;
}

std::string EmbeddingSection::stated_by() const {
  if (!hparam.slot_size_array.empty()) return "slot_size_array";
  if (hparam.workspace_size_per_gpu_in_mb) return "workspace_size_per_gpu_in_mb";
  if (hparam.max_vocabulary_size_per_gpu) return "max_vocabulary_size_per_gpu";
  return hparam.vocabulary_size ? "vocabulary_size" : "";
}

int64_t EmbeddingSection::stated_rows(int64_t rank, const Placement& place) const {
  const int64_t ranks = place.ranks;
  if (!hparam.slot_size_array.empty()) {
    int64_t whole = 0, spread = 0;
    for (int64_t s = 0; s < static_cast<int64_t>(hparam.slot_size_array.size()) * place.pieces; ++s) {
      const int64_t rows = hparam.slot_size_array[static_cast<size_t>(s / place.pieces)];
      if (place.spread(s))
        spread = sum_or_most(spread, rows);
      else if (place.holds(rank, s))
        whole = sum_or_most(whole, rows);
    }
    return sum_or_most(whole, share_of(spread, ranks));
  }
  if (hparam.workspace_size_per_gpu_in_mb)
    return std::clamp<int64_t>(
        static_cast<int64_t>(*hparam.workspace_size_per_gpu_in_mb * 1048576.0 / 4.0 / static_cast<double>(dim)), 1,
        kMostRows);
  if (hparam.max_vocabulary_size_per_gpu) return *hparam.max_vocabulary_size_per_gpu;
  if (hparam.vocabulary_size) return std::min(share_of(*hparam.vocabulary_size, ranks), kMostRows);
  return 0;
}

TableSpec EmbeddingSection::table_spec(const TableSpecInputs& in) const {
  const OptimizerSection& own = optimizer ? *optimizer : in.optimizer;
  const bool everywhere = in.placement.replicated_on(in.ranks);
  TableSpec spec;
  spec.name = top();
  spec.rank = in.rank;
  spec.batch = in.batch;
  spec.dim = dim;
  spec.slots = static_cast<int64_t>(in.slot_keys.size());
  spec.samples = in.samples;
  spec.key_capacity = in.key_capacity;
  spec.eval_samples = in.eval_samples;
  spec.eval_key_capacity = in.eval_key_capacity;
  spec.identity_by_slot = identity_by_slot();
  if (direct())
    spec.direct = direct_keys(hparam.slot_size_array, spec.identity_by_slot, in.placement, in.rank, first_key);
  spec.combiner = hparam.combiner;
  spec.slot_keys = in.slot_keys;
  if (spec.identity_by_slot)
    for (const int64_t size : hparam.slot_size_array)
      spec.slot_bounds.push_back(static_cast<float>(std::sqrt(1.0 / static_cast<double>(size))));
  spec.optimizer = own.rule(in.optimizer.hyper.learning_rate);
  if (in.schedule_sets_rate) spec.optimizer.rate_factor = 1;
  spec.update = own.update();
  if (frozen) {  // SGD with rate 0: w -= 0 * wgrad
    spec.optimizer = {.kind = ops::Optimizer::Kind::sgd, .rate_factor = 0};
    spec.update = UpdateType::local;
  }
  spec.storage = hparam.storage;
  spec.state_storage = hparam.state_storage;
  // Vectors of fully replicated tables are not exchanged, so their exchange dtype is f32.
  spec.exchange = everywhere ? DType::f32 : hparam.exchange_precision.value_or(in.exchange);
  spec.row_hint = stated_rows(in.rank, in.placement);
  spec.row_limit = hparam.limited() ? spec.row_hint : 0;
  spec.limit_setting = stated_by();
  spec.replication = replication(in.batch);
  if (everywhere) spec.replication.of = Replication::Of::all;
  HCTR_EXPECT(in.ranks == 1 || everywhere == (spec.replication.of == Replication::Of::all), "table '", spec.name,
              "' has both a placement with owners and replicated rows");
  spec.policy = hparam.policy();
  spec.marks_changes = in.marks_changes;
  spec.memory = in.memory;
  return spec;
}

}  // namespace hctr
