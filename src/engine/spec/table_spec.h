// The specification of an embedding table. EmbeddingSection::table_spec() builds a spec, or derived_specs.h derives a
// spec from another spec. A spec is const after that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/device/row_budget.h"
#include "engine/placement/replication.h"
#include "engine/spec/direct_keys.h"
#include "engine/spec/row_policy.h"
#include "ops/embedding/embedding_rows.h"
#include "ops/embedding/key_batch.h"
#include "ops/optimizer/optimizer_rules.h"
#include "ops/optimizer/update_type.h"

namespace hctr {

class Runtime;

/// maximum rows of a table, because row numbers are signed 32-bit integers
inline constexpr int64_t kMostRows = (int64_t{1} << 31) - 2;

struct TableSpec {
  std::string name;         ///< name of the layer, and of its random stream
  int rank = 0, ranks = 1;  ///< `ranks`: number of ranks whose samples a batch contains, in rank order
  int64_t batch = 0;        ///< samples of all ranks together, if there are several ranks
  int64_t dim = 0;
  int64_t slots = 0;  ///< number of slots of the layer
  /// Pieces per row, each with `dim` elements. Slot s of this table has piece s % pieces of the rows of the whole
  /// table's slot s / pieces.
  int64_t pieces = 1;
  int64_t samples = 0, key_capacity = 0;            ///< sizes of a training batch
  int64_t eval_samples = 0, eval_key_capacity = 0;  ///< sizes of an evaluation batch; 0: no evaluation
  /// Maximum keys to which the batches may grow. Addresses are reserved for this number. 0: batches do not grow. Must
  /// be 0 if rows may be on disk.
  int64_t most_key_capacity = 0;
  /// Whether a row belongs to (slot, key). If false, a row belongs to the key alone, in any slot.
  bool identity_by_slot = false;
  /// The existing keys, which all have a row from the start. If empty, rows are added with their keys, and a hash index
  /// finds the rows.
  DirectKeys direct;
  ops::Combiner combiner = ops::Combiner::sum;
  /// If batches have only the slots of this rank, [slot of a batch]: the slot's index in the table, from 0 to `slots` -
  /// 1. nullopt: a batch has all slots, in order.
  std::optional<std::vector<int32_t>> batch_slots{};
  /// [slots]: maximum keys per bag of each slot. Required with Combiner::none, and for tables on several ranks.
  std::vector<int64_t> slot_keys;
  float init_bound = 0.05f;                                ///< uniform initial values are in [-bound, bound)
  ops::InitialKind init_kind = ops::InitialKind::uniform;  ///< distribution of initial values, with init_bound
  /// [slots]: replaces init_bound if not empty; only with identity_by_slot
  std::vector<float> slot_bounds;
  ops::Optimizer optimizer;
  UpdateType update = UpdateType::local;
  DType storage = DType::f32;        ///< dtype of vectors: f32 f16 bf16
  DType state_storage = DType::f32;  ///< dtype of optimizer states; f32 if a row has one element
  DType exchange = DType::f32;       ///< dtype of vectors and gradients in exchanges between ranks: f32 f16 bf16
  /// Whether each host sums before it sends to other hosts: the gradients of each row, and the vectors of each bag
  /// (UniqueExchange::Layout). Default: true on GPUs, false on a CPU. On a CPU, results should equal those of a single
  /// rank, but the sums would change the order of additions.
  std::optional<bool> sums_in_hosts{};
  int64_t row_hint = 0;   ///< initial capacity in rows, if memory is sufficient
  int64_t row_limit = 0;  ///< maximum number of rows; 0: only memory limits the rows
  /// name of the setting that defines row_limit, for messages
  std::string limit_setting = "max_vocabulary_size_per_gpu";
  /// whether rows are only loaded from files; if so, memory is reserved for loaded rows, but not for rows that batches
  /// add
  bool loads_only = false;
  /// keys are assigned to rows between steps (RowStore::assign_rows), and batches add no rows
  bool fixed_keys = false;
  Replication replication;  ///< used by the embedding on several ranks, not by the table itself
  RowPolicy policy;         ///< which keys get rows, and which rows are removed
  /// whether rows may move between device and host; false if row numbers must be equal on every rank
  bool rows_move = true;
  /// A separate budget for this table. Null: the table uses the run's budget, which it shares with other tables. The
  /// table's stores and the specs derived from this spec share the pointer.
  std::shared_ptr<RowMemory> memory{};
  bool marks_changes = false;  ///< whether changed rows are marked, for incremental checkpoints

  /// The number of slots of a batch.
  int64_t slots_of_batch() const { return batch_slots ? static_cast<int64_t>(batch_slots->size()) : slots; }
  /// The number of vectors per sample: the columns of a batch.
  int64_t columns() const {
    return combiner == ops::Combiner::none ? std::accumulate(slot_keys.begin(), slot_keys.end(), int64_t{0})
                                           : slots_of_batch();
  }
  /// Whether splitting rows into pieces leaves the results unchanged. True if no computation needs a whole row, and
  /// nothing is rounded stochastically.
  bool may_be_cut() const {
    return identity_by_slot && !optimizer.row_wise && !policy.any() && storage == DType::f32 &&
           stored_states() == DType::f32;
  }
  /// Whether every row changes in every step. False for global updates if a zero gradient changes nothing, because they
  /// equal local updates then.
  bool changes_every_row() const { return update == UpdateType::global && !optimizer.zero_gradient_is_noop(); }
  /// The maximum keys of any batch.
  int64_t most_batch_keys() const { return std::max<int64_t>({key_capacity, most_key_capacity, 1}); }
  /// Elements per row of each optimizer state, and the dtype of these elements.
  int64_t state_dim() const { return optimizer.row_wise ? 1 : dim; }
  DType stored_states() const { return optimizer.row_wise ? DType::f32 : state_storage; }
};

/// The budget for a table's rows: the table's own, or the run's.
RowMemory& budget_of(Runtime&, const TableSpec&);

/// number_bytes_of_row(): bytes of a row's vector and optimizer states, which may be in host memory. bytes_of_row():
/// all bytes of a row, including key, marks, access statistics and index entries.
int64_t number_bytes_of_row(const TableSpec&);
int64_t bytes_of_row(const TableSpec&);
/// The row capacity of a growing table with an index when the table has `rows` rows, if memory is sufficient. The
/// capacity starts with `hint` rows, or with the keys of `most_queued` queued batches, and grows by half. When it grows
/// depends on the number of queued batches. This function assumes two queued batches, so the result may be one growth
/// step too high or too low.
int64_t rows_with_memory(int64_t rows, int64_t hint, int64_t batch_keys, int64_t most_queued);
/// Extra device bytes per row of a table that has rows in host memory and moves rows. These are an access count and,
/// with direct keys, the entries of places() and numbers().
constexpr int64_t bytes_of_moving_row(bool direct) { return direct ? 1 + 4 + 4 : 1; }

}  // namespace hctr
