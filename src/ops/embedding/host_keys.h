// Messages with the keys that the ranks of a host request from owners on other hosts: each distinct key of a column
// once, and for each occurrence the position of its key, from which the owner rebuilds the batch of every rank. See
// docs/distributed.md.
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

/// The properties of a column that sender and owner know before a message.
struct HostColumn {
  int32_t message = 0;
  int32_t most_keys = 1;     // maximum keys of a bag
  int32_t bags = 0;          // ranks of the sender's host * samples
  bool sums_of_keys = true;  // whether the sum of a bag's sent vectors equals the bag's vector
  // owners answer with vectors. If sender and owner are on one host they do not, and keys are not made unique
  bool answered = true;
};

/// Messages, each of some columns: those of one sender to all of its owners, or those of all hosts to one owner. All
/// on one device, as in everything that follows.
struct HostMessages {
  int32_t messages = 0, columns = 0;
  int64_t bags = 0;                    // stride of a column in the arrays of HostKeys: the maximum over all columns
  const HostColumn* column = nullptr;  // [columns] by message
  const int32_t* first = nullptr;      // [messages + 1] the first column of each
  int64_t vector_bytes = 0;
  bool sums_gradients = false;  // whether the gradients of a key may be sent as their sum

  HCTR_HD int64_t all_bags() const { return columns * bags; }
};

/// The contents of a received message.
struct HostColumnPlan {
  int32_t keys = 0, occurrences = 0, bags = 0;  // sent; all; bags with a key
  // whether a key has a vector or gradient of its own; otherwise a bag has
  bool vector_a_key = false, gradient_a_key = false;
  int32_t first_vector = 0, first_gradient = 0;        // numbered over all messages
  int64_t keys_at = 0, lengths_at = 0, places_at = 0;  // bytes from the first message
  int64_t counted = 0;  // an owner's count of the keys of bags, which should be `occurrences`
};
struct HostMessageSizes {
  int32_t words = 0;                   // words of 64 bits
  int32_t vectors = 0, gradients = 0;  // the owner answers with, and is sent
  int32_t listed = 0;                  // keys whose rows the vectors are sums of

  HCTR_HD bool operator==(const HostMessageSizes& other) const {
    return words == other.words && vectors == other.vectors && gradients == other.gradients && listed == other.listed;
  }
};
inline constexpr int64_t kHostMessageSizes = 4;  // numbers of HostMessageSizes

/// The keys of messages: by column, then bag (rank of the host * samples + sample), as a KeyBatch has them.
struct HostKeys {
  int32_t* offsets = nullptr;         // [all_bags + 1]
  int64_t* keys = nullptr;            // [keys] of each occurrence; of a sender
  int32_t* first = nullptr;           // [keys] the first occurrence of the same key in the column; of a sender
  int32_t* places = nullptr;          // [keys] the number of each occurrence's key in its column
  int32_t* bag_numbers = nullptr;     // [all_bags + 1] bags with a key before each bag
  HostColumnPlan* columns = nullptr;  // [columns]
  HostMessageSizes* sizes = nullptr;  // [messages]
  int32_t* refused = nullptr;         // [messages] of an owner: 1 for a message that no sender can have written, else 0
};

/// Numbers keys in the order of their first occurrences and plans the message for `keys.offsets` and `keys.keys`. A
/// key is sent once unless its column takes fewer bytes otherwise. A column has a vector a key or a vector a bag,
/// whichever are fewer, and with `sums_gradients` as many gradients; else a gradient a bag. `occurrences`:
/// keys.offsets[all_bags]. Scratch is overwritten.
HCTR_OP(void plan_host_keys(Context&, HostMessages, HostKeys keys, int64_t occurrences, std::byte* scratch))
/// Bytes of scratch for any function of this file, with this many bags and keys.
size_t host_keys_scratch_bytes(Device, int64_t bags, int64_t keys);
namespace cpu {
size_t host_keys_scratch_bytes(int64_t bags, int64_t keys);
}
namespace cuda {
size_t host_keys_scratch_bytes(int64_t bags, int64_t keys);
}
/// The most words of such messages.
int64_t most_host_words(int64_t columns, int64_t bags, int64_t keys);

/// Writes the messages, one after the other; in words of 64 bits each is
///
///   int32 [columns, 2]             number of keys, number of occurrences
///   int64 [keys]                   by column
///   by column, in bytes:
///     how many keys each bag has     nothing if each has its only possible key; else, whichever is shorter, bits,
///                                    bytes or words [bags], or the bag of each occurrence [occurrences]
///     place of each occurrence       nothing if keys are as many as occurrences; else 1, 2 or 4 bytes each
///
/// Shapes: words i64 [at least those of keys.sizes].
HCTR_OP(void write_host_keys(Context&, HostMessages, HostKeys keys, Tensor words))

/// Reads messages of keys.sizes, whose words all lie in `words`: all of `keys` except keys.keys and keys.first. A
/// message whose numbers contradict each other, its columns or its sizes is refused and then has no keys. Its numbers
/// are never used as addresses.
HCTR_OP(void read_host_keys(Context&, HostMessages, HostKeys keys, Tensor words, std::byte* scratch))

/// Where the bags of a rank are among messages.
struct RankInMessage {
  int32_t message, index;  // index: among the ranks of its host
};
/// Columns of an owner, all of which are in every message, and the samples of a rank.
struct HostJoin {
  int64_t ranks = 0, columns = 0, samples = 0;
  const RankInMessage* of_rank = nullptr;  // [ranks]
};
/// Messages from and to an owner.
struct OwnerLists {
  int64_t vectors = 0;         // vectors of all messages
  int32_t* offsets = nullptr;  // [vectors + 1] vector v is the sum of the rows of
  int32_t* keys = nullptr;     // [listed] keys offsets[v] to offsets[v + 1]; each a position in the batch
  int32_t* first = nullptr;    // [vectors] overwritten

  /// [keys of the batch] the gradient of each; null: not requested. Gradients are numbered: those of bags of messages
  /// that are not answered, by rank of the host, sample, column; from `received` on those of the others, as they are
  /// sent; `zero`, for a key whose sum is that of an earlier occurrence.
  int32_t* gradients = nullptr;
  int32_t received = 0, zero = 0;
};
/// The batch of all ranks, as ops::merge_keys makes it, of what read_host_keys has read, and its lists. Shapes: offsets
/// i32 [columns * ranks * samples + 1], keys i64 [at least the keys].
HCTR_OP(void join_host_keys(Context&, HostMessages, HostKeys read, Tensor words, HostJoin, Tensor offsets, Tensor keys,
                            OwnerLists lists, std::byte* scratch))

/// The bags with a key of a sender, by rank, then column, then sample.
struct HostBags {
  int64_t count = 0;
  const int32_t* bags = nullptr;  // [count] (rank of the host * samples + sample) * columns + column
  int64_t own_columns = 0;        // the first columns, whose owner the sender is
};
struct BagLists {
  int32_t* offsets = nullptr;    // [count + 1] a bag is the sum of the vectors of
  int32_t* vectors = nullptr;    // [keys] numbers offsets[i] to offsets[i + 1], counted from 1; with `sums_gradients`
                                 // its gradient is part of the gradients of these numbers
  int32_t* gradients = nullptr;  // [count] else the number of its gradient, from 1; 0 if it is not answered
  int32_t* own = nullptr;        // [count] of the first columns: the bag as index in [bags, own_columns]
};
/// Lists what plan_host_keys has decided.
HCTR_OP(void list_host_vectors(Context&, HostMessages, HostKeys planned, HostBags, BagLists lists, std::byte* scratch))

}  // namespace hctr::ops
