// Admission: which unknown keys of a batch get a row, and what the others use.
//
//   keys of batch ─index_find─> rows; 0: unknown ─select─> unknown ─admit_keys, select─> admitted ─index_insert─> table
//                                    ^                                                       │
//                                    └────────── hand_out_rows <──index_find── unknown <─────┘
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/embedding/hash_index.h"

namespace hctr::ops {

/// On the device, written by the host between steps and by hand_out_rows.
struct GateState {
  uint32_t closed = 0;         ///< 1: no key gets a row; keys without one use shared_row
  uint32_t shared_row = 0;     ///< used by unknown keys in lookups; 0: they have no row there
  uint64_t on_shared_row = 0;  ///< occurrences in training batches that used it
  uint64_t without_row = 0;    ///< occurrences in training batches that had none
};

/// A selection of the keys of a batch, in order: a batch whose slots have one bag each.
struct KeySelection {
  int64_t* keys = nullptr;       // [key_capacity]
  int32_t* positions = nullptr;  // [key_capacity] the position of each in the original batch
  int32_t* offsets = nullptr;    // [slots + 1]

  KeyBatch batch(const KeyBatch& of) const {
    return {keys, offsets, of.slots, 1, of.key_capacity, of.slots, {}, of.slot_numbers};
  }
};

/// The number of a batch row in the stream of all samples. A batch may hold the rows of several ranks, those of rank 0
/// first, each with padding at its end: of the `samples` of all ranks, rank r has those from samples * r / ranks on.
struct SampleOrder {
  int64_t samples = 0;
  int32_t rank = 0, ranks = 1;  // `rank`: whose first_sample is given

  HCTR_HD int64_t operator()(int64_t first_sample, int64_t row, int64_t rows) const {
    if (ranks == 1) return first_sample + row;
    const int64_t of_rank = rows / ranks;
    return first_sample - samples * rank / ranks + samples * (row / of_rank) / ranks + row % of_rank;
  }
};

/// An unknown key gets a row when one of its occurrences is admitted.
struct AdmissionRule {
  /// By count: the occurrences of candidates with at least min_count.
  const uint32_t* occurrences = nullptr;  // [candidates + 1]; null: not counted
  uint32_t min_count = 1;
  /// By chance: if bits of philox(random_key mixed with the slot, key, sample) are below the threshold. One draw a bag,
  /// since a rank may have only some keys of a bag and does not know their positions. A pure function of the data,
  /// independent of order, device and rank.
  uint64_t random_key = 0, threshold = uint64_t{1} << 32;
  SampleOrder order{};

  static uint64_t threshold_of(double probability);
  HCTR_HD bool drawn(int64_t key, int64_t slot, int64_t sample) const {
    if (threshold >> 32 != 0) return true;
    const uint64_t stream = mix64(random_key ^ static_cast<uint64_t>(slot) << 32);
    return philox(stream, static_cast<uint64_t>(key), static_cast<uint64_t>(sample)).v[0] < threshold;
  }
  /// The same for a key of a bag of the batch.
  HCTR_HD bool drawn(int64_t key, const KeyBatch& batch, int64_t bag, int64_t first_sample) const {
    return drawn(key, batch.slot_number(bag / batch.samples), order(first_sample, bag % batch.samples, batch.samples));
  }
};

/// Makes `all` the state of an index in which all assigned rows are visible, also those of batches not computed yet.
/// index_find with it must run on the stream that inserts.
HCTR_OP(void see_all_rows(Context&, HashIndex, IndexState* all))

/// wanted[p] = 1 for keys with row 0, else 0; up to key_capacity.
HCTR_OP(void mark_unknown(Context&, KeyBatch, const int32_t* rows, uint8_t* wanted))

/// Selects the keys p of the batch with wanted[p] = 1. Scratch: select_keys_bytes().
HCTR_OP(void select_keys(Context&, KeyBatch, const uint8_t* wanted, KeySelection, std::byte* scratch))
size_t select_keys_bytes(Device, int64_t key_capacity);
namespace cuda {
size_t select_keys_bytes(int64_t key_capacity);
}

/// wanted[i] = 1 for the occurrences i of `unknown`, taken from `batch`, that are admitted; 0 when the gate is closed.
/// `candidates`: the row of each among the candidates, where they are counted. Needs ctx.state().
HCTR_OP(void admit_keys(Context&, KeyBatch batch, KeySelection unknown, const int32_t* candidates, AdmissionRule,
                        const GateState*, uint8_t* wanted))

/// Resets the count of admitted keys to 0: they are no longer candidates.
HCTR_OP(void forget_admitted(Context&, KeyBatch unknown, const int32_t* candidates, const uint8_t* wanted,
                             uint32_t* occurrences))

/// Writes the rows found for the keys of `unknown` to their positions in the batch. Keys without one get the shared row
/// if the gate is closed, and are counted.
HCTR_OP(void hand_out_rows(Context&, KeyBatch unknown, const int32_t* positions, const int32_t* found, GateState*,
                           int32_t* rows))

/// In a lookup: replaces row 0 by the shared row, if there is one, for keys of the batch.
HCTR_OP(void share_row(Context&, KeyBatch, const GateState*, int32_t* rows))

}  // namespace hctr::ops
