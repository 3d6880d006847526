// Admission: which unknown keys of a batch get a row, and which row the other unknown keys read.
//
//   keys of batch ─index_find─> rows; 0: unknown ─select─> unknown ─admit_keys, select─> admitted ─index_insert─> table
//                                    ^                                                       │
//                                    └────────── hand_out_rows <──index_find── unknown <─────┘
#pragma once

#include <cstddef>

#include "core/device/op.h"
#include "ops/embedding/hash_index.h"

namespace hctr::ops {

/// The state of the admission gate, on the device. Written by the host between steps and by hand_out_rows().
struct GateState {
  uint32_t closed = 0;         ///< 1: no new key gets a row; unknown keys use shared_row
  uint32_t shared_row = 0;     ///< row of unknown keys in lookups; 0: no row
  uint64_t on_shared_row = 0;  ///< occurrences in training batches that used shared_row
  uint64_t without_row = 0;    ///< occurrences in training batches that had no row
};

/// Selected keys of a batch, in batch order. batch() views the keys as a batch with one bag per slot.
struct KeySelection {
  int64_t* keys = nullptr;       // [key_capacity]
  int32_t* positions = nullptr;  // [key_capacity] position of each key in the original batch
  int32_t* offsets = nullptr;    // [slots + 1]

  KeyBatch batch(const KeyBatch& of) const {
    return {keys, offsets, of.slots, 1, of.key_capacity, of.slots, {}, of.slot_numbers};
  }
};

/// Maps a batch row to its global sample number. With several ranks, the batch contains the rows of all ranks in rank
/// order, and each rank's rows end with padding. Rank r has the global samples from samples * r / ranks on.
struct SampleOrder {
  int64_t samples = 0;
  int32_t rank = 0, ranks = 1;  // rank: the rank whose first sample is passed as first_sample

  HCTR_HD int64_t operator()(int64_t first_sample, int64_t row, int64_t rows) const {
    if (ranks == 1) return first_sample + row;
    const int64_t of_rank = rows / ranks;
    return first_sample - samples * rank / ranks + samples * (row / of_rank) / ranks + row % of_rank;
  }
};

/// The rule of admission. An unknown key gets a row if at least one of its occurrences is admitted.
struct AdmissionRule {
  /// Admission by count: admits candidates with at least min_count occurrences.
  const uint32_t* occurrences = nullptr;  // [candidates + 1]; null: admission by chance
  uint32_t min_count = 1;
  /// Admission by chance: admits a key if the bits of philox(random_key mixed with slot, key, sample) are below the
  /// threshold. All occurrences of a key in a bag get the same draw, because a rank may have only some keys of a bag
  /// and does not know their positions. The draw is a pure function of the data, independent of order, device and rank.
  uint64_t random_key = 0, threshold = uint64_t{1} << 32;
  SampleOrder order{};

  static uint64_t threshold_of(double probability);
  HCTR_HD bool drawn(int64_t key, int64_t slot, int64_t sample) const {
    if (threshold >> 32 != 0) return true;
    const uint64_t stream = mix64(random_key ^ static_cast<uint64_t>(slot) << 32);
    return philox(stream, static_cast<uint64_t>(key), static_cast<uint64_t>(sample)).v[0] < threshold;
  }
  /// Calls drawn() for a key of bag `bag` of the batch.
  HCTR_HD bool drawn(int64_t key, const KeyBatch& batch, int64_t bag, int64_t first_sample) const {
    return drawn(key, batch.slot_number(bag / batch.samples), order(first_sample, bag % batch.samples, batch.samples));
  }
};

/// Writes to `all` an index state in which every assigned row is visible, including rows of batches whose step has not
/// run. index_find() with this state must run on the stream that inserts.
HCTR_OP(void see_all_rows(Context&, HashIndex, IndexState* all))

/// wanted[p] = 1 if rows[p] is 0, else 0, for p < key_capacity; 0 past the last key.
HCTR_OP(void mark_unknown(Context&, KeyBatch, const int32_t* rows, uint8_t* wanted))

/// Selects the keys p of the batch with wanted[p] = 1. Scratch: select_keys_bytes().
HCTR_OP(void select_keys(Context&, KeyBatch, const uint8_t* wanted, KeySelection, std::byte* scratch))
size_t select_keys_bytes(Device, int64_t key_capacity);
namespace cuda {
size_t select_keys_bytes(int64_t key_capacity);
}

/// wanted[i] = 1 if occurrence i of `unknown` is admitted, else 0. A closed gate admits no key. `unknown` is a
/// selection from `batch`. candidates[i]: row of the key among the candidates, for admission by count. Needs
/// ctx.state().
HCTR_OP(void admit_keys(Context&, KeyBatch batch, KeySelection unknown, const int32_t* candidates, AdmissionRule,
                        const GateState*, uint8_t* wanted))

/// Resets the occurrence counts of admitted keys to 0, because admitted keys are no longer candidates.
HCTR_OP(void forget_admitted(Context&, KeyBatch unknown, const int32_t* candidates, const uint8_t* wanted,
                             uint32_t* occurrences))

/// rows[positions[i]] = found[i], or shared_row if found[i] is 0 and the gate is closed. Counts the occurrences with
/// found[i] = 0 in GateState.
HCTR_OP(void hand_out_rows(Context&, KeyBatch unknown, const int32_t* positions, const int32_t* found, GateState*,
                           int32_t* rows))

/// In a lookup, replaces row 0 of the batch's keys by shared_row, if shared_row is not 0.
HCTR_OP(void share_row(Context&, KeyBatch, const GateState*, int32_t* rows))

}  // namespace hctr::ops
