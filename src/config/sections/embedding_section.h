// The embedding layers of a config.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/schema.h"
#include "config/sections/optimizer_section.h"
#include "config/sections/table_memory.h"
#include "engine/placement/placement.h"
#include "engine/spec/table_spec.h"

namespace hctr {

// Embedding layer types with type-specific defaults.
inline constexpr std::string_view kDistributedEmbedding = "DistributedSlotSparseEmbeddingHash",
                                  kHybridEmbedding = "HybridSparseEmbedding";

template <>
struct EnumWords<ops::Combiner> {
  static const std::vector<std::pair<std::string, ops::Combiner>>& table();
};
/// Reads a combiner's name. Older files have numbers for two combiners: 0 for sum, 1 for mean.
std::string read_value(const Json&, const Range&, ops::Combiner& out);
template <>
struct TypeWord<ops::Combiner> {
  static std::string text() { return "word or number"; }
};

/// The map from keys to rows. automatic: a direct index if the config gives the key ranges, else a hash index.
enum class IndexKind { automatic, hash, direct };
template <>
struct EnumWords<IndexKind> {
  static const std::vector<std::pair<std::string, IndexKind>>& table();
};
/// What identifies a row: the key alone, or slot and key.
enum class Identity { slot_and_key, key };
template <>
struct EnumWords<Identity> {
  static const std::vector<std::pair<std::string, Identity>>& table();
};
template <>
struct EnumWords<PlacementRule> {
  static const std::vector<std::pair<std::string, PlacementRule>>& table();
};
/// The storage type of row elements.
template <>
struct EnumWords<DType> {
  static const std::vector<std::pair<std::string, DType>>& table();
};

/// Tensor names: a string or an array of strings in JSON.
struct TensorNames {
  std::vector<std::string> names;
};
Misfit read_value(const Json&, const Range&, TensorNames& out);
Json to_json(const TensorNames&);
template <>
struct TypeWord<TensorNames> {
  static std::string text() { return "string or array of string"; }
};

/// The object "sparse_embedding_hparam".
struct SparseEmbeddingHparam {
  int64_t embedding_vec_size = 0;
  ops::Combiner combiner = ops::Combiner::sum;
  std::optional<int64_t> vocabulary_size, max_vocabulary_size_per_gpu;
  std::optional<double> workspace_size_per_gpu_in_mb;
  std::vector<int64_t> slot_size_array;
  bool grow = true;
  IndexKind index = IndexKind::automatic;
  std::optional<Identity> identity;
  DType storage = DType::f32, state_storage = DType::f32;
  std::optional<DType> exchange_precision;
  std::optional<WhenFull> when_full;
  std::optional<int64_t> expire_after, min_count, max_candidates;
  std::optional<double> admit_probability;
  bool count_keys = false;
  std::string frequent_keys;
  std::optional<int64_t> num_iterations_statistics, max_num_frequent_categories;

  /// Whether the configured number of rows limits the table.
  bool limited() const { return !grow || when_full; }
  RowPolicy policy() const;
  /// Whether the sum of slot_size_array is at most the maximum rows of a table.
  bool sizes_fit() const;
};

/// The inputs of table_spec(), except the section. A caller that uses no field that depends on batch sizes may omit
/// them.
struct TableSpecInputs {
  const OptimizerSection& optimizer;    ///< the top-level optimizer
  bool schedule_sets_rate = false;      ///< whether the table uses the top-level learning rate
  DType exchange = DType::f32;          ///< the solver's exchange dtype; the section may override it
  bool marks_changes = false;           ///< TableSpec::marks_changes
  std::shared_ptr<RowMemory> memory{};  ///< TableSpec::memory
  int rank = 0, ranks = 1;
  Placement placement{};
  int64_t batch = 1;                 ///< batch size over all ranks
  std::vector<int64_t> slot_keys{};  ///< [slots] maximum keys per bag of each slot
  /// sizes of this rank's batches in training and evaluation
  int64_t samples = 0, key_capacity = 0, eval_samples = 0, eval_key_capacity = 0;
};

struct EmbeddingSection {
  std::string type;  ///< the layer's "type" in the config
  std::string bottom;
  TensorNames tops;  ///< output names: the vectors and, optionally, the bag lengths
  SparseEmbeddingHparam hparam;
  std::optional<OptimizerSection> optimizer;  ///< the layer's optimizer; if absent, the top-level optimizer applies
  std::optional<OwnTableMemory> table_memory;
  std::optional<PlacementRule> placement;  ///< "placement" in the config; placement_rule() is the effective rule
  int64_t dim = 0;                         ///< hparam.embedding_vec_size
  bool frozen = false;                     ///< training does not update the rows
  /// The first key of slot 0 if slot_size_array gives the key ranges. Keys of earlier sparse inputs precede it.
  int64_t first_key = 0;

  const std::string& top() const { return tops.names[0]; }  ///< also the name of the layer
  bool has_lengths() const { return tops.names.size() > 1; }
  bool pooled() const { return hparam.combiner != ops::Combiner::none; }
  /// Whether (slot, key) identifies a row, in which case model files contain slots. If not, the key alone identifies a
  /// row.
  bool identity_by_slot() const;
  /// The placement rule on several ranks: the configured rule or, without one, the default of the layer's type. If the
  /// key alone identifies a row, the row has the same owner for all slots.
  PlacementRule placement_rule() const;
  /// Which rows are replicated. `batch`: batch size over all ranks.
  Replication replication(int64_t batch = 1) const;
  /// Whether the table has a direct index, in which every key of slot_size_array has a row from the start.
  bool direct() const;
  /// The number of rows that the section configures for `rank`, or 0 if it configures none. With column-sharded rows,
  /// each piece of a row counts as one.
  int64_t stated_rows(int64_t rank, const Placement&) const;
  /// The field that configures stated_rows(); empty if no field does.
  std::string stated_by() const;
  /// The table spec for one rank. The spec's learning rate is relative to the top-level optimizer's rate of each step.
  /// Errors: Error(bug) if the placement contradicts replication().
  TableSpec table_spec(const TableSpecInputs&) const;
};

/// The allowed values of an embedding layer's "type".
const std::vector<std::string>& embedding_types();
bool is_embedding_type(std::string_view type);

/// The schema of one of embedding_types(), for parsing and for the manual. Parsing needs "type" in `outer_keys`.
Schema<EmbeddingSection> embedding_schema(const std::string& type);
/// Parses an embedding layer. `pointer`: the layer's JSON pointer ("/layers/1"). Errors are added to `problems`.
EmbeddingSection parse_embedding(const Json& layer, const std::string& pointer, Problems& problems);

/// Checks the effective placement and the fields that depend on it. `word`: the JSON pointer of the placement setting,
/// in the layer or in the solver.
void check_placement(const EmbeddingSection&, const std::string& pointer, const std::string& word, Problems&);

/// Checks that slot_size_array has one size per slot of the sparse input.
void check_slots(const EmbeddingSection&, int64_t slots, const std::string& pointer, Problems&);

}  // namespace hctr
