// The embedding layers of a config.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/schema.h"
#include "embedding/placement.h"
#include "embedding/table_spec.h"
#include "optim/optimizer_section.h"

namespace hctr {

template <>
struct EnumWords<ops::Combiner> {
  static const std::vector<std::pair<std::string, ops::Combiner>>& table();
};
/// A word, or the number of older files: 0 sum, 1 mean; the later combiners have words alone.
std::string read_value(const Json&, const Range&, ops::Combiner& out);
template <>
struct TypeWord<ops::Combiner> {
  static std::string text() { return "word or number"; }
};

/// How a key finds its row: automatic takes direct where the config says which keys there are.
enum class IndexKind { automatic, hash, direct };
template <>
struct EnumWords<IndexKind> {
  static const std::vector<std::pair<std::string, IndexKind>>& table();
};
/// What a row belongs to.
enum class Identity { slot_and_key, key };
template <>
struct EnumWords<Identity> {
  static const std::vector<std::pair<std::string, Identity>>& table();
};
template <>
struct EnumWords<PlacementRule> {
  static const std::vector<std::pair<std::string, PlacementRule>>& table();
};
/// What the numbers of a row are stored as.
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

  /// Whether the rows stated are a limit.
  bool limited() const { return !grow || when_full; }
  RowPolicy policy() const;
};

/// The inputs of a table's spec besides its section. Sizes of batches may be left out if nothing that depends on them
/// is used.
struct TableSpecInputs {
  const OptimizerSection& optimizer;  ///< the top-level one
  bool schedule_sets_rate = false;    ///< the table's rate is that of the top-level optimizer
  DType exchange = DType::f32;        ///< the solver's; the section may have one of its own
  int rank = 0, ranks = 1;
  Placement placement{};
  int64_t batch = 1;                 ///< samples of all ranks
  std::vector<int64_t> slot_keys{};  ///< [slots] most keys of a bag of each slot
  int64_t samples = 0, key_capacity = 0, eval_samples = 0, eval_key_capacity = 0;  ///< of this rank's batches
};

struct EmbeddingSection {
  std::string type;  ///< as in the file
  std::string bottom;
  TensorNames tops;  ///< the vectors and, where it is named, the lengths
  SparseEmbeddingHparam hparam;
  std::optional<OptimizerSection> optimizer;  ///< its own; else the top-level one holds
  std::optional<PlacementRule> placement;     ///< as given; what holds is placement_rule()
  int64_t dim = 0;                            ///< hparam.embedding_vec_size
  int64_t first_key =
      0;  ///< of slot 0, where slot_size_array says which keys there are: those of earlier inputs stand before it

  const std::string& top() const { return tops.names[0]; }  ///< also the layer's name
  bool has_lengths() const { return tops.names.size() > 1; }
  bool pooled() const { return hparam.combiner != ops::Combiner::none; }
  /// Whether a row belongs to slot and key, and so model files name slots; else to the key alone.
  bool identity_by_slot() const;
  /// What the plan may choose where there are several ranks: as given, or as the type says. Rows that belong to keys
  /// alone have one owner whatever the slot.
  PlacementRule placement_rule() const;
  /// Which rows every rank has, for batches of so many samples of all ranks.
  Replication replication(int64_t batch = 1) const;
  /// Whether every key of slot_size_array has its row from the start.
  bool direct() const;
  /// Rows (pieces of them, where they are cut) on `rank` that the section speaks of; 0 when it does not.
  int64_t stated_rows(int64_t rank, const Placement&) const;
  /// The field that says so; empty when none does.
  std::string stated_by() const;
  /// The table of one rank, whole. The rate of a step is that of the top-level optimizer, and the table's follows in
  /// proportion. Errors: Error(bug) if the placement and replication() disagree.
  TableSpec table_spec(const TableSpecInputs&) const;
};

/// The names an embedding layer's "type" may have.
const std::vector<std::string>& embedding_types();
bool is_embedding_type(std::string_view type);

/// The schema of one of embedding_types(), for parsing and for the manual. Parse with outer key "type".
Schema<EmbeddingSection> embedding_schema(const std::string& type);
/// Reads a layer whose "type" is an embedding's. `pointer` is the layer's ("/layers/1"). What is wrong goes to
/// `problems`.
EmbeddingSection parse_embedding(const Json& layer, const std::string& pointer, Problems& problems);

/// Rules of the placement that holds, and of fields that hang on it. `word`: the pointer of what says so, the layer's
/// own or the solver's.
void check_placement(const EmbeddingSection&, const std::string& pointer, const std::string& word, Problems&);

/// Rules that need the sparse input: the sizes given are those of its slots.
void check_slots(const EmbeddingSection&, int64_t slots, const std::string& pointer, Problems&);

}  // namespace hctr
