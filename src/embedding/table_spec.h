// What an embedding table is, before there is one. Built whole by EmbeddingSection::table_spec(), or derived from
// another by a function of derived_specs.h; const from then on.
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "device/dtype.h"
#include "embedding/direct_keys.h"
#include "embedding/replication.h"
#include "embedding/row_policy.h"
#include "ops/embedding/key_batch.h"
#include "ops/optimizer_rules.h"
#include "optim/optimizer_section.h"

namespace hctr {

inline constexpr int64_t kMostRows = (int64_t{1} << 31) - 2;  ///< of a table: row numbers are 32-bit and signed

struct TableSpec {
  std::string name;         ///< of the layer; names the random stream and stands in messages
  int rank = 0, ranks = 1;  ///< ranks: those whose samples a batch holds, one rank's behind the other's
  int64_t batch = 0;        ///< samples of all ranks together; with several ranks
  int64_t dim = 0;
  int64_t slots = 0;  ///< that there are
  int64_t pieces =
      1;  ///< that rows are cut into: slot s holds piece s % pieces, `dim` elements, of the rows of slot s / pieces
  int64_t samples = 0, key_capacity = 0;            ///< of a training batch
  int64_t eval_samples = 0, eval_key_capacity = 0;  ///< of an evaluation batch; 0: none comes
  /// A row belongs to (slot, key); else to the key alone, whatever its slot.
  bool identity_by_slot = false;
  DirectKeys
      direct;  ///< the keys there are, each with a row from the start; empty: rows come with their keys, found by hash
  ops::Combiner combiner = ops::Combiner::sum;
  /// The slots of a batch by number, where it does not hold all, or holds one several times: what a rank owns of the
  /// batches of all.
  std::optional<std::vector<int32_t>> batch_slots{};
  /// [slots] most keys of a bag of each slot. Needed with Combiner::none and by tables with rows on several ranks.
  std::vector<int64_t> slot_keys;
  float init_bound = 0.05f;        ///< initial values are uniform on [-bound, bound)
  std::vector<float> slot_bounds;  ///< per slot instead, where given; for identity_by_slot only
  ops::Optimizer optimizer;
  UpdateType update = UpdateType::local;
  DType storage = DType::f32;        ///< of vectors: f32 f16 bf16
  DType state_storage = DType::f32;  ///< of the optimizer's states; where a row has one number it is f32
  DType exchange = DType::f32;       ///< that vectors and gradients travel in between ranks: f32 f16 bf16
  int64_t row_hint = 0;              ///< rows to have room for from the start, as far as memory is plenty
  int64_t row_limit = 0;             ///< 0: memory is the limit
  std::string limit_setting = "max_vocabulary_size_per_gpu";  ///< where the limit stands, for messages
  bool fixed_keys =
      false;  ///< rows are those of the keys that are set between steps (RowStore::assign_rows); no batch adds one
  Replication replication;  ///< on several ranks; a table knows nothing of it
  RowPolicy policy;         ///< what happens at the limit; which keys get rows, which rows leave

  /// Slots of a batch.
  int64_t slots_of_batch() const { return batch_slots ? static_cast<int64_t>(batch_slots->size()) : slots; }
  /// Vectors that a sample gets: the columns of a batch.
  int64_t columns() const {
    return combiner == ops::Combiner::none ? std::accumulate(slot_keys.begin(), slot_keys.end(), int64_t{0})
                                           : slots_of_batch();
  }
  /// Whether rows can be cut into pieces and give the same numbers: where nothing looks at a whole row, and no rounding
  /// is drawn for it.
  bool may_be_cut() const {
    return identity_by_slot && !optimizer.row_wise && !policy.any() && storage == DType::f32 &&
           stored_states() == DType::f32;
  }
  /// Elements of a row in each optimizer state, and their type.
  int64_t state_dim() const { return optimizer.row_wise ? 1 : dim; }
  DType stored_states() const { return optimizer.row_wise ? DType::f32 : state_storage; }
};

}  // namespace hctr
