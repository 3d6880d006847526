// The specification of an embedding table. EmbeddingSection::table_spec() builds it, or derived_specs.h derives it from
// another one; it is const from then on.
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

inline constexpr int64_t kMostRows = (int64_t{1} << 31) - 2;  ///< per table: row numbers are 32-bit and signed

struct TableSpec {
  std::string name;         ///< name of the layer and of its random stream
  int rank = 0, ranks = 1;  ///< ranks: whose samples a batch holds, rank 0's first
  int64_t batch = 0;        ///< samples of all ranks together, if there are several
  int64_t dim = 0;
  int64_t slots = 0;  ///< all slots of the layer
  int64_t pieces =
      1;  ///< number of pieces per row: slot s holds piece s % pieces, `dim` elements, of the rows of slot s / pieces
  int64_t samples = 0, key_capacity = 0;            ///< of a training batch
  int64_t eval_samples = 0, eval_key_capacity = 0;  ///< of an evaluation batch; 0: no evaluation
  /// Maximum keys to which batches may grow: addresses are reserved for them. 0: they do not grow. Only if no row can
  /// be on disk.
  int64_t most_key_capacity = 0;
  /// Whether a row belongs to (slot, key); otherwise to the key alone, in any slot.
  bool identity_by_slot = false;
  DirectKeys direct;  ///< the existing keys, each with a row from the start; empty: rows are added with
                      ///< their keys and found by hash
  ops::Combiner combiner = ops::Combiner::sum;
  /// The slot number of each slot of a batch, if a batch does not have all slots in order: the slots that a rank owns.
  std::optional<std::vector<int32_t>> batch_slots{};
  /// [slots] maximum keys per bag of each slot. Required with Combiner::none and for tables with rows on several ranks.
  std::vector<int64_t> slot_keys;
  float init_bound = 0.05f;                                ///< initial values are uniform on [-bound, bound)
  ops::InitialKind init_kind = ops::InitialKind::uniform;  ///< or others, with that bound
  /// per slot, replaces init_bound if given; for identity_by_slot only
  std::vector<float> slot_bounds;
  ops::Optimizer optimizer;
  UpdateType update = UpdateType::local;
  DType storage = DType::f32;        ///< of vectors: f32 f16 bf16
  DType state_storage = DType::f32;  ///< of optimizer states; f32 if a row has one element
  DType exchange = DType::f32;       ///< of vectors and gradients in exchanges between ranks: f32 f16 bf16
  /// Whether each host sums gradients for rows on other hosts, and vectors of bags, before sending them
  /// (UniqueExchange::Layout). Default: on GPUs. On a CPU it would change the order of sums, which makes them equal to
  /// those of one rank.
  std::optional<bool> sums_in_hosts{};
  int64_t row_hint = 0;                                       ///< initial capacity in rows, if memory is plentiful
  int64_t row_limit = 0;                                      ///< 0: limited by memory only
  std::string limit_setting = "max_vocabulary_size_per_gpu";  ///< the setting that gives the limit, for messages
  bool loads_only = false;  ///< rows are only loaded from files: memory is reserved for these, none for batches to add
  bool fixed_keys = false;  ///< rows are assigned between steps (RowStore::assign_rows); batches do not add rows
  Replication replication;  ///< on several ranks; not used by the table itself
  RowPolicy policy;         ///< which keys get rows, and which rows are removed
  bool rows_move = true;    ///< rows may move between device and host; false if row numbers are the same on every rank
  /// The budget of this table alone; null: the run's, which it shares with others. Shared by the stores of the table
  /// and the specs derived from this one.
  std::shared_ptr<RowMemory> memory{};
  bool marks_changes = false;  ///< whether changed rows are marked, for increments of checkpoints

  /// Slots of a batch.
  int64_t slots_of_batch() const { return batch_slots ? static_cast<int64_t>(batch_slots->size()) : slots; }
  /// Vectors per sample: the columns of a batch.
  int64_t columns() const {
    return combiner == ops::Combiner::none ? std::accumulate(slot_keys.begin(), slot_keys.end(), int64_t{0})
                                           : slots_of_batch();
  }
  /// Whether rows can be cut into pieces without changing results: no computation involves a whole row, and nothing is
  /// rounded at random.
  bool may_be_cut() const {
    return identity_by_slot && !optimizer.row_wise && !policy.any() && storage == DType::f32 &&
           stored_states() == DType::f32;
  }
  /// Whether every row changes in every step. If a zero gradient is a no-op, global updates equal local ones.
  bool changes_every_row() const { return update == UpdateType::global && !optimizer.zero_gradient_is_noop(); }
  /// The maximum keys of any batch.
  int64_t most_batch_keys() const { return std::max<int64_t>({key_capacity, most_key_capacity, 1}); }
  /// Elements per row of each optimizer state, and their type.
  int64_t state_dim() const { return optimizer.row_wise ? 1 : dim; }
  DType stored_states() const { return optimizer.row_wise ? DType::f32 : state_storage; }
};

/// The budget of a table's rows: its own, or the run's.
RowMemory& budget_of(Runtime&, const TableSpec&);

/// Bytes of a row's vector and optimizer states, which may be in host memory; and bytes of everything that a row takes,
/// with its key, marks, access statistics and index entries.
int64_t number_bytes_of_row(const TableSpec&);
int64_t bytes_of_row(const TableSpec&);
/// The number of reserved rows of a growing table with an index once it has `rows` rows and memory is plentiful. It
/// starts with `hint` rows, or with the keys of the `most_queued` batches that may be queued, and grows by half. The
/// time of growth depends on the number of queued batches; two are assumed, so the result may be one growth off.
int64_t rows_with_memory(int64_t rows, int64_t hint, int64_t batch_keys, int64_t most_queued);
/// Extra device bytes of a row once some rows of its table are in host memory and rows move: its access count; with
/// direct keys also its position and its number.
constexpr int64_t bytes_of_moving_row(bool direct) { return direct ? 1 + 4 + 4 : 1; }

}  // namespace hctr
