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

// Types of embedding layers that have defaults of their own.
inline constexpr std::string_view kDistributedEmbedding = "DistributedSlotSparseEmbeddingHash",
                                  kHybridEmbedding = "HybridSparseEmbedding";

template <>
struct EnumWords<ops::Combiner> {
  static const std::vector<std::pair<std::string, ops::Combiner>>& table();
};
/// A name, or the number that older files use: 0 sum, 1 mean. Newer combiners have only names.
std::string read_value(const Json&, const Range&, ops::Combiner& out);
template <>
struct TypeWord<ops::Combiner> {
  static std::string text() { return "word or number"; }
};

/// How the row of a key is found. automatic: direct if the config gives the key ranges.
enum class IndexKind { automatic, hash, direct };
template <>
struct EnumWords<IndexKind> {
  static const std::vector<std::pair<std::string, IndexKind>>& table();
};
/// The identity of a row: its key, or its slot and key.
enum class Identity { slot_and_key, key };
template <>
struct EnumWords<Identity> {
  static const std::vector<std::pair<std::string, Identity>>& table();
};
template <>
struct EnumWords<PlacementRule> {
  static const std::vector<std::pair<std::string, PlacementRule>>& table();
};
/// The storage type of the elements of a row.
template <>
struct EnumWords<DType> {
  static const std::vector<std::pair<std::string, DType>>& table();
};

/// One name, or an array of names.
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

  /// Whether the stated number of rows is a limit.
  bool limited() const { return !grow || when_full; }
  RowPolicy policy() const;
  /// Whether the sizes of slot_size_array add up to no more rows than a table can have.
  bool sizes_fit() const;
};

/// The inputs of a table's spec other than its section. Batch sizes may be omitted if nothing that depends on them is
/// used.
struct TableSpecInputs {
  const OptimizerSection& optimizer;    ///< the top-level one
  bool schedule_sets_rate = false;      ///< the table's rate is that of the top-level optimizer
  DType exchange = DType::f32;          ///< the solver's; the section may override it
  bool marks_changes = false;           ///< TableSpec::marks_changes
  std::shared_ptr<RowMemory> memory{};  ///< TableSpec::memory
  int rank = 0, ranks = 1;
  Placement placement{};
  int64_t batch = 1;                 ///< samples of all ranks
  std::vector<int64_t> slot_keys{};  ///< [slots] maximum keys of a bag of each slot
  int64_t samples = 0, key_capacity = 0, eval_samples = 0, eval_key_capacity = 0;  ///< sizes of this rank's batches
};

struct EmbeddingSection {
  std::string type;  ///< the type as in the file
  std::string bottom;
  TensorNames tops;  ///< the vectors and, if named, the lengths
  SparseEmbeddingHparam hparam;
  std::optional<OptimizerSection> optimizer;  ///< its own; if absent, the top-level one applies
  std::optional<OwnTableMemory> table_memory;
  std::optional<PlacementRule> placement;  ///< the config's value; placement_rule() is the effective one
  int64_t dim = 0;                         ///< hparam.embedding_vec_size
  bool frozen = false;                     ///< rows are not updated
  /// first key of slot 0, if slot_size_array gives the key ranges: keys of earlier inputs come before it
  int64_t first_key = 0;

  const std::string& top() const { return tops.names[0]; }  ///< also the layer's name
  bool has_lengths() const { return tops.names.size() > 1; }
  bool pooled() const { return hparam.combiner != ops::Combiner::none; }
  /// Whether a row belongs to (slot, key), so that model files hold slots; otherwise it belongs to the key alone.
  bool identity_by_slot() const;
  /// The plan's choices on several ranks: as stated, or the default of the type. Rows that belong to keys alone have
  /// one owner, independent of the slot.
  PlacementRule placement_rule() const;
  /// Which rows are replicated. `batch`: samples of all ranks.
  Replication replication(int64_t batch = 1) const;
  /// Whether every key of slot_size_array has its row from the start.
  bool direct() const;
  /// The number of rows (of pieces, if rows are cut) on `rank` that the section states; 0 if it states none.
  int64_t stated_rows(int64_t rank, const Placement&) const;
  /// The field that states it; empty if none does.
  std::string stated_by() const;
  /// The spec of the whole table, for one rank. The learning rate of a step is that of the top-level optimizer; the
  /// table's rate scales in proportion. Errors: Error(bug) if the placement and replication() disagree.
  TableSpec table_spec(const TableSpecInputs&) const;
};

/// The names an embedding layer's "type" may have.
const std::vector<std::string>& embedding_types();
bool is_embedding_type(std::string_view type);

/// The schema of one of embedding_types(), for parsing and for the manual. Parse with outer key "type".
Schema<EmbeddingSection> embedding_schema(const std::string& type);
/// Parses an embedding layer. `pointer`: the JSON pointer of the layer ("/layers/1"). Errors are added to `problems`.
EmbeddingSection parse_embedding(const Json& layer, const std::string& pointer, Problems& problems);

/// Checks the effective placement and the fields that depend on it. `word`: the pointer of the setting that gives it,
/// the layer's own or the solver's.
void check_placement(const EmbeddingSection&, const std::string& pointer, const std::string& word, Problems&);

/// Checks that need the sparse input: the given sizes must be those of its slots.
void check_slots(const EmbeddingSection&, int64_t slots, const std::string& pointer, Problems&);

}  // namespace hctr
