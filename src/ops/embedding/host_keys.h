// Messages with the keys that the ranks of one host request from owners on other hosts. A message contains each
// distinct key of a column once and, for each occurrence of a key, the index of that key. From these indices, the owner
// rebuilds the batch of every rank. See docs/distributed.md.
//
//   sender, a rank that gathers keys of its host        owner
//   plan_host_keys  numbers keys, sizes of messages     read_host_keys  bags and places
//   write_host_keys ─────────── messages ──────────────> join_host_keys  the batch of all ranks
//   list_host_vectors                                   list of rows of each vector, gradient of each key
//     vectors of each bag  <─────── vectors ─────────── ops::pool
//     gradients of bags, summed ──── gradients ────────> ops::update_rows
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/op.h"

namespace hctr::ops {

/// The properties of a column that sender and owner know without a message.
struct HostColumn {
  int32_t message = 0;
  int32_t most_keys = 1;     // maximum number of keys per bag
  int32_t bags = 0;          // number of bags: ranks on the sender's host * samples
  bool sums_of_keys = true;  // whether a bag's vector is the sum of its keys' vectors
  // Whether owners answer with vectors. False if sender and owner are on one host; keys are then not deduplicated
  // either.
  bool answered = true;
};

/// A group of messages, each with some columns: the messages of one sender to all owners for which it gathers keys, or
/// of all hosts to one owner. All arrays of this file are on one device.
struct HostMessages {
  int32_t messages = 0, columns = 0;
  int64_t bags = 0;                    // stride of a column in the arrays of HostKeys: the largest HostColumn::bags
  const HostColumn* column = nullptr;  // [columns] ordered by message
  const int32_t* first = nullptr;      // [messages + 1] first column of each message
  int64_t vector_bytes = 0;
  bool sums_gradients = false;  // whether the sum of a key's gradients may be sent instead of each gradient

  HCTR_HD int64_t all_bags() const { return columns * bags; }
};

/// The layout and the sizes of one column of a message.
struct HostColumnPlan {
  int32_t keys = 0, occurrences = 0, bags = 0;  // numbers of sent keys, of occurrences, and of bags that are not empty
  // True: one vector (gradient) per key. False: one vector (gradient) per bag.
  bool vector_a_key = false, gradient_a_key = false;
  // indices of the column's first vector and first gradient, over all messages
  int32_t first_vector = 0, first_gradient = 0;
  int64_t keys_at = 0, lengths_at = 0, places_at = 0;  // byte offsets from the start of the first message
  int64_t counted = 0;  // number of keys in the bags, as counted by the owner; must equal `occurrences`
};
struct HostMessageSizes {
  int32_t words = 0;                   // message size in 64-bit words
  int32_t vectors = 0, gradients = 0;  // vectors: sent by the owner; gradients: received by the owner
  int32_t listed = 0;                  // total number of rows that are summed into the vectors

  HCTR_HD bool operator==(const HostMessageSizes& other) const {
    return words == other.words && vectors == other.vectors && gradients == other.gradients && listed == other.listed;
  }
};
inline constexpr int64_t kHostMessageSizes = 4;  // number of fields of HostMessageSizes

/// The keys of the messages, in the format of KeyBatch: by column, then bag (rank on the host * samples + sample).
struct HostKeys {
  int32_t* offsets = nullptr;         // [all_bags + 1]
  int64_t* keys = nullptr;            // [keys] key of each occurrence; sender only
  int32_t* first = nullptr;           // [keys] first occurrence of the same key in the column; sender only
  int32_t* places = nullptr;          // [keys] index of each occurrence's key among the sent keys of its column
  int32_t* bag_numbers = nullptr;     // [all_bags + 1] number of non-empty bags before each bag
  HostColumnPlan* columns = nullptr;  // [columns]
  HostMessageSizes* sizes = nullptr;  // [messages]
  int32_t* refused = nullptr;         // [messages] owner only: 1 for a malformed message, else 0
};

/// Numbers keys in the order of their first occurrences, and plans the messages for `keys.offsets` and `keys.keys`. A
/// column sends each distinct key once if this saves bytes; otherwise it sends each occurrence. A column has one vector
/// per key or one vector per bag, whichever needs fewer vectors. With `sums_gradients`, gradients are likewise per key
/// or per bag; otherwise they are per bag. `occurrences` = keys.offsets[all_bags]. Overwrites `scratch`.
HCTR_OP(void plan_host_keys(Context&, HostMessages, HostKeys keys, int64_t occurrences, std::byte* scratch))
/// Bytes of scratch that suffice for each function of this file.
size_t host_keys_scratch_bytes(Device, int64_t bags, int64_t keys);
namespace cpu {
size_t host_keys_scratch_bytes(int64_t bags, int64_t keys);
}
namespace cuda {
size_t host_keys_scratch_bytes(int64_t bags, int64_t keys);
}
/// Upper bound on the 64-bit words of messages with these sizes.
int64_t most_host_words(int64_t columns, int64_t bags, int64_t keys);

/// Writes the messages contiguously. The layout of a message, in 64-bit words:
///
///   int32 [columns, 2]             number of keys, number of occurrences
///   int64 [keys]                   by column
///   by column, in bytes:
///     length of each bag             omitted if most_keys is 1 and every bag has a key; else the shorter of: lengths
///                                    in bits, bytes or 32-bit words [bags], and the bag of each occurrence
///                                    [occurrences]
///     key index of each occurrence   omitted if every occurrence has its own key; else 1, 2 or 4 bytes each
///
/// Shapes: words i64, at least the sum of the message sizes in keys.sizes.
HCTR_OP(void write_host_keys(Context&, HostMessages, HostKeys keys, Tensor words))

/// Parses messages with sizes keys.sizes from `words`; fills all of `keys` except keys.keys and keys.first. Refuses a
/// message if its values contradict each other, the column properties or the message size. A refused message has no
/// keys. No received value is used as an address without a check.
HCTR_OP(void read_host_keys(Context&, HostMessages, HostKeys keys, Tensor words, std::byte* scratch))

/// The position of a rank's bags in the messages.
struct RankInMessage {
  int32_t message, index;  // index: index of the rank on its host
};
/// The sizes of the batch that an owner joins from the messages. Every message contains all `columns`; each rank has
/// `samples` samples.
struct HostJoin {
  int64_t ranks = 0, columns = 0, samples = 0;
  const RankInMessage* of_rank = nullptr;  // [ranks]
};
/// The lists with which an owner computes the vectors that it sends, and applies the gradients that it receives.
struct OwnerLists {
  int64_t vectors = 0;         // number of vectors in all messages
  int32_t* offsets = nullptr;  // [vectors + 1] offsets in `keys`
  // [listed] batch positions; vector v sums the rows of keys[offsets[v]] up to keys[offsets[v + 1]]
  int32_t* keys = nullptr;
  int32_t* first = nullptr;  // [vectors] workspace, overwritten

  /// [keys of the batch] gradient number of each key; null: not requested. An unanswered message has one gradient per
  /// bag, numbered by rank on the host, then sample, then column. Received gradients are numbered from `received` on,
  /// in message order. If the gradient of an earlier occurrence of a key already includes that of this occurrence, this
  /// occurrence has the number `zero`.
  int32_t* gradients = nullptr;
  int32_t received = 0, zero = 0;
};
/// From the output of read_host_keys(), builds the batch of all ranks, like ops::merge_keys(), and the owner's lists.
/// Shapes: offsets i32 [columns * ranks * samples + 1], keys i64 [at least the number of keys].
HCTR_OP(void join_host_keys(Context&, HostMessages, HostKeys read, Tensor words, HostJoin, Tensor offsets, Tensor keys,
                            OwnerLists lists, std::byte* scratch))

/// The non-empty bags of a sender, by rank, then column, then sample.
struct HostBags {
  int64_t count = 0;
  const int32_t* bags = nullptr;  // [count] (rank on the host * samples + sample) * columns + column
  int64_t own_columns = 0;        // number of leading columns that the sender itself owns
};
struct BagLists {
  int32_t* offsets = nullptr;  // [count + 1] offsets in `vectors`
  // [keys] vector numbers, counted from 1; bag i sums the vectors vectors[offsets[i]] up to vectors[offsets[i + 1]].
  // With `sums_gradients`, the bag's gradient is added to the gradients with the same numbers.
  int32_t* vectors = nullptr;
  // [count] Without `sums_gradients`: the number of each bag's gradient, counted from 1. 0: the bag's column is not
  // answered with vectors (HostColumn::answered).
  int32_t* gradients = nullptr;
  // [count] index of the bag in an array [bags, own_columns], if the sender owns the bag's column; else 0
  int32_t* own = nullptr;
};
/// Lists the vectors and gradients of each bag from the plan of plan_host_keys().
HCTR_OP(void list_host_vectors(Context&, HostMessages, HostKeys planned, HostBags, BagLists lists, std::byte* scratch))

}  // namespace hctr::ops
