// The specification of an embedding table. Built whole by EmbeddingSection::table_spec(), or derived from another by a
// function of derived_specs.h; const from then on.
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

inline constexpr int64_t kMostRows = (int64_t{1} << 31) - 2;  ///< of a table: row numbers are 32-bit and signed

struct TableSpec {
  std::string name;         ///< of the layer; also names the random stream
  int rank = 0, ranks = 1;  ///< ranks: whose samples a batch holds, those of rank 0 first
  int64_t batch = 0;        ///< samples of all ranks together; with several ranks
  int64_t dim = 0;
  int64_t slots = 0;  ///< all slots of the layer
  int64_t pieces =
      1;  ///< that rows are cut into: slot s holds piece s % pieces, `dim` elements, of the rows of slot s / pieces
  int64_t samples = 0, key_capacity = 0;            ///< of a training batch
  int64_t eval_samples = 0, eval_key_capacity = 0;  ///< of an evaluation batch; 0: no evaluation
  /// Batches may grow up to so many keys: addresses are reserved for them. 0: they do not grow. Only where no row can
  /// be on a disk.
  int64_t most_key_capacity = 0;
  /// A row belongs to (slot, key); else to the key alone, whatever its slot.
  bool identity_by_slot = false;
  DirectKeys direct;  ///< the keys that exist, each with a row from the start; empty: rows are added with their keys,
                      ///< found by hash
  ops::Combiner combiner = ops::Combiner::sum;
  /// The number of each slot of a batch, if these are not just all slots in order: the slots that a rank owns.
  std::optional<std::vector<int32_t>> batch_slots{};
  /// [slots] most keys of a bag of each slot. Needed with Combiner::none and by tables with rows on several ranks.
  std::vector<int64_t> slot_keys;
  float init_bound = 0.05f;                                ///< initial values are uniform on [-bound, bound)
  ops::InitialKind init_kind = ops::InitialKind::uniform;  ///< or others, with that bound
  std::vector<float> slot_bounds;                          ///< per slot instead, where given; for identity_by_slot only
  ops::Optimizer optimizer;
  UpdateType update = UpdateType::local;
  DType storage = DType::f32;        ///< of vectors: f32 f16 bf16
  DType state_storage = DType::f32;  ///< of the optimizer's states; f32 if a row has one number
  DType exchange = DType::f32;       ///< of vectors and gradients in exchanges between ranks: f32 f16 bf16
  /// Whether gradients for rows on other hosts are added up in their host first, and vectors of bags there
  /// (UniqueExchange::Layout); not set: on GPUs. On a CPU sums then lose the order that makes them equal to those of
  /// one rank.
  std::optional<bool> sums_in_hosts{};
  int64_t row_hint = 0;   ///< initial capacity in rows, if there is plenty of memory
  int64_t row_limit = 0;  ///< 0: memory is the limit
  std::string limit_setting = "max_vocabulary_size_per_gpu";  ///< the setting that gives the limit, for messages
  bool loads_only = false;  ///< rows come from files alone: there is memory for those, and none for batches to add
  bool fixed_keys = false;  ///< rows are assigned between steps (RowStore::assign_rows); batches do not add rows
  Replication replication;  ///< on several ranks; not used by the table itself
  RowPolicy policy;         ///< which keys get rows, and which rows are removed
  bool rows_move = true;    ///< between the device and its host; false where row numbers are the same on every rank
  /// The budget of this table alone; null: the run's, which it shares with others. Shared by the stores of the table
  /// and the specs derived from this one.
  std::shared_ptr<RowMemory> memory{};
  bool marks_changes = false;  ///< rows that change are marked, for checkpoints with what has changed

  /// Slots of a batch.
  int64_t slots_of_batch() const { return batch_slots ? static_cast<int64_t>(batch_slots->size()) : slots; }
  /// Vectors that a sample gets: the columns of a batch.
  int64_t columns() const {
    return combiner == ops::Combiner::none ? std::accumulate(slot_keys.begin(), slot_keys.end(), int64_t{0})
                                           : slots_of_batch();
  }
  /// Whether rows can be cut into pieces with the same results: if nothing is computed of a whole row, and nothing is
  /// rounded at random.
  bool may_be_cut() const {
    return identity_by_slot && !optimizer.row_wise && !policy.any() && storage == DType::f32 &&
           stored_states() == DType::f32;
  }
  /// Whether every row changes in every step. If a zero gradient is a no-op, global updates equal local ones.
  bool changes_every_row() const { return update == UpdateType::global && !optimizer.zero_gradient_is_noop(); }
  /// The most keys that a batch ever has.
  int64_t most_batch_keys() const { return std::max<int64_t>({key_capacity, most_key_capacity, 1}); }
  /// Elements of a row in each optimizer state, and their type.
  int64_t state_dim() const { return optimizer.row_wise ? 1 : dim; }
  DType stored_states() const { return optimizer.row_wise ? DType::f32 : state_storage; }
};

/// The budget of the rows of a table: its own, or that of the run.
RowMemory& budget_of(Runtime&, const TableSpec&);

/// Bytes of the vector and the optimizer states of a row: what may be in host memory. And of all that a row takes, with
/// its key, marks, access statistics and entries of the index.
int64_t number_bytes_of_row(const TableSpec&);
int64_t bytes_of_row(const TableSpec&);
/// The rows that a growing table with an index has memory for once it has `rows` of them, where memory is plentiful. It
/// begins with `hint` rows, or with the keys of the `most_queued` batches that may be under way, and grows by half.
/// When it grows depends on how many are under way just then: two are assumed, so the result may be one growth off.
int64_t rows_with_memory(int64_t rows, int64_t hint, int64_t batch_keys, int64_t most_queued);
/// What a row takes on the device besides, once some rows of its table are in host memory and rows move: its use, with
/// direct keys also its place and its number.
constexpr int64_t bytes_of_moving_row(bool direct) { return direct ? 1 + 4 + 4 : 1; }

}  // namespace hctr
