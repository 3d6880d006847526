// The exchange of keys, vectors and gradients between several hosts: each host deduplicates keys before sending them,
// receives each vector once, and sums gradients before sending them. See docs/distributed.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device/arena.h"
#include "engine/exchange/device_lists.h"
#include "engine/placement/host_groups.h"
#include "ops/common/loss_scale.h"
#include "ops/embedding/embedding_group.h"
#include "ops/embedding/host_keys.h"
#include "ops/embedding/listed_vectors.h"
#include "ops/embedding/row_elements.h"
#include "ops/embedding/wire_keys.h"

namespace hctr {

/// Bytes that a rank has sent to ranks of other hosts.
struct BytesBetweenHosts {
  int64_t sent = 0;
  int64_t of_full_size = 0;  ///< bytes if every message had its maximum size

  BytesBetweenHosts& operator+=(const BytesBetweenHosts& other) {
    sent += other.sent;
    of_full_size += other.of_full_size;
    return *this;
  }
};

/// The rows of the keys that an owner has received.
struct OwnedRows {
  const int32_t* rows = nullptr;  ///< for each key; 0 for none
  ops::RowMemory table;
};

/// The transport of an Exchange between hosts. For each owner on another host, one rank of a host gathers the keys of
/// its ranks, deduplicates them, and distributes the vectors of the owner's answer. Owners see the same batches as
/// without it. Unless `sums_in_hosts`, ranks receive bitwise the same vectors, and rows the same gradients. The host
/// waits for the counts of keys, so no call can be recorded. Calls are collective, in the order send_keys, gather_keys,
/// receive_keys, then for the same batch send_vectors, send_gradients, receive_gradients.
class UniqueExchange {
 public:
  struct Layout {
    ops::KeySplit split;                 ///< for this rank's batches; columns in HostGroups::owner_order()
    std::vector<ops::OwnerKeys> owners;  ///< [ranks] the messages of a full-size exchange
    std::vector<int64_t> most_keys;      ///< [ranks] maximum keys of each message
    std::vector<int32_t> keys_of_bag;    ///< [split.count] maximum keys per bag of each column
    int64_t samples = 0;                 ///< of a rank
    int64_t key_capacity = 0;            ///< maximum keys that this rank sends to all owners together
    int64_t owned_columns = 0;           ///< of this rank as owner
    int64_t owned_key_capacity = 0;      ///< maximum keys that it receives from all ranks together
    int64_t dim = 0;                     ///< of a vector
    DType dtype = DType::f32;            ///< of exchanged vectors and gradients
    DType storage = DType::f32;          ///< of rows
    bool gradients = true;               ///< whether send_gradients() is ever called
    /// Whether hosts may sum, although the last bits may differ then: gradients of a key before they leave a host, and
    /// vectors of a bag whose keys have been rounded. Otherwise owners receive the gradients of all bags, and sums keep
    /// their order.
    bool sums_in_hosts = false;

    int64_t vector_bytes() const { return dim * static_cast<int64_t>(size_of(dtype)); }
    bool sums_gradients() const { return sums_in_hosts && gradients; }
    /// Whether the sum of a bag's vectors, each rounded to `dtype`, equals the rounded sum of its rows.
    bool exact() const { return dtype == DType::f32 || dtype == storage; }
  };
  /// The memory of vectors. `of_samples`: by owner, as in `present`. `of_owned`: [gradients()]; the first are for this
  /// host, [its ranks * samples, owned_columns]. This rank's own vectors for its own samples stay there and are not
  /// sent. The last vector is zero.
  struct Memory {
    std::byte *of_samples = nullptr, *of_owned = nullptr;
  };
  UniqueExchange(Runtime&, Communicator&, const HostGroups&, const Layout&, int ring);

  // Exchange the keys of a batch; the host waits before each of the last two calls. With several tables, make each call
  // for all of them before the next one: while the host waits for one table, the counts of the others are sent. Errors:
  // Error(comm) naming the sender of an impossible message; on a GPU, errors inside a message are reported with the
  // next batch, and its keys are skipped.
  /// Packs keys and sends their counts within the host. `local_rows`: as in ops::KeySplit.
  void send_keys(Context&, int buffer, const ops::KeyBatch& batch, const int32_t* local_rows, uint8_t* present);
  /// Waits for the counts; gathers the keys within the host, and sends the sizes of messages to other hosts.
  void gather_keys(Context&, int buffer);
  /// Waits for the sizes; sends the messages and joins received ones. Shapes: those of ops::join_host_keys.
  void receive_keys(Context&, int buffer, Tensor owned_offsets, Tensor owned_keys);
  /// Whether send_vectors() reads the pooled vectors of the samples of this rank from Memory::of_owned. Vectors for
  /// other hosts are pooled from their rows.
  bool sends_pooled(int rank) const { return comm_.host_of(rank) == groups_.host(); }
  int64_t index_here(int rank) const { return groups_.index_here(rank); }
  /// The number of vectors of Memory::of_owned, which holds the gradients after receive_gradients(); and the index of
  /// the gradient of each key of the batch that send_keys() has joined, null without gradients.
  int64_t gradients() const { return layout_.gradients ? first_received_ + most_received_ + 1 : first_received_; }
  const int32_t* key_gradients(int buffer) const {
    return layout_.gradients ? list(batches_.at(static_cast<size_t>(buffer)).key_gradients) : nullptr;
  }
  void send_vectors(Context&, int buffer, const Memory&, const OwnedRows&);
  /// `search`: also checks sums of gradients for overflow.
  void send_gradients(Context&, int buffer, const Memory&, const ops::OverflowSearch& search);
  void receive_gradients(Context&, int buffer, const Memory&);

  BytesBetweenHosts bytes() const { return bytes_; }

 private:
  /// Tickets of the arrays of ops::HostKeys, and its messages.
  struct Messages {
    ops::HostMessages all;
    std::vector<int> ranks{};  // receiver or sender of each
    int64_t most_words = 0;    // total maximum
    size_t offsets = 0, keys = 0, first = 0, places = 0, bag_numbers = 0, columns = 0, sizes = 0, refused = 0,
           words = 0;
  };
  /// The sizes of a batch in vectors, by rank. `bags`: of this rank, that go through a rank of this host. `items`: of
  /// such a rank, that go through this one. `own`: the first of each, which go through their owner itself and are not
  /// sent. Vectors and gradients: of sent and received messages.
  struct Sizes {
    RankRanges bags, items;
    std::vector<int64_t> own;  // of items
    int64_t own_bags = 0;
    RankRanges vectors_asked, vectors_answered, gradients_sent, gradients_received;
    int64_t listed = 0;  // keys whose rows are sent
    int64_t summed = 0;  // summands in gradient sums: each bag's gradient once per key of the bag
  };
  /// Tickets of ops::RowGroups.
  struct Groups {
    size_t rows, bags, run_begin, long_runs, pieces, counts;
  };
  struct Batch {
    size_t requested;                                     // bags, as indices in `present`
    size_t bag_offsets, bag_vectors, bag_gradients, own;  // ops::BagLists
    size_t owner_offsets, owner_keys, key_gradients;      // ops::OwnerLists
    Groups groups{};                                      // of gradient sums, by their indices
    Sizes sizes{};
  };
  /// The ranges of keys that this rank and the others of its host exchange.
  struct KeyRanges {
    RankRanges to, from;
    int64_t received = 0;
  };
  void add_batches(int ring);
  void add_sums(Runtime&);
  ops::HostColumn column_of(int32_t c, size_t message, int64_t ranks, bool answered) const;
  Messages plan_messages(Runtime&, const std::vector<ops::HostColumn>&, const std::vector<int32_t>& first, int64_t bags,
                         int64_t keys, bool sends);
  void plan_asked(Runtime&);
  void plan_answered(Runtime&);
  void expect_countable() const;
  void count_full_size();
  ops::HostKeys arrays_of(const Messages&) const;

  KeyRanges read_counts(Context&, Batch&);
  void merge_keys(Context&, const KeyRanges&);
  void plan_asking(Context&, const Batch&, int64_t keys);
  void send_sizes(Context&);
  void read_sizes(Batch&) const;
  void exchange_messages(Context&);
  void group_gradients(Context&, const Batch&);
  /// Throws if a number received from a rank is out of range.
  void expect_possible(int sender, int64_t number, int64_t most, const char* what) const;
  void throw_if_refused() const;
  std::string name_of(int rank) const;

  ops::OwnerLists owner_lists(const Batch&) const;
  ops::BagLists bag_lists(const Batch&) const;
  ops::KeyBatch summed_bags(const Batch&) const;
  ops::RowGroups groups_of(const Batch&) const;
  void answer(Context&, const Batch&, const OwnedRows&);
  void hand_out(Context&, const Batch&, const Memory&);
  void copy_gradients(Context&, const Batch&);
  void sum_gradients(Context&, const Batch&, const ops::OverflowSearch&);

  void all_to_all(Context&, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive);
  /// `count` vectors as words; of memory, or of a ticket.
  Tensor words_at(std::byte* memory, int64_t count) const;
  Tensor words_of(size_t ticket) const;
  /// all_to_all of vectors; ranges count vectors.
  void send(Context&, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive);
  /// Copies the vectors of this rank's bags to or from bags_, except those of its own rows.
  void copy_bags(Context&, const Batch&, std::byte* of_samples, bool pack);
  /// The part of the bags of Sizes that is sent to or received from other ranks.
  RankRanges without_own(RankRanges, int64_t own) const;
  /// sum[i] = the sum of the rows of list i, for `count` lists starting at `first`.
  void sum_lists(Context&, const int32_t* offsets, const int32_t* rows, int64_t count, ops::RowMemory table,
                 std::byte* sums) const;
  int32_t* list(size_t ticket) const { return arena_.get(ticket).data<int32_t>(); }
  std::byte* vector(size_t ticket, int64_t i) const { return arena_.get(ticket).bytes() + i * layout_.vector_bytes(); }
  int64_t here() const { return static_cast<int64_t>(groups_.here().size()); }
  static int64_t end_of(const RankRanges&);

  Communicator& comm_;
  HostGroups groups_;
  Layout layout_;
  DeviceLists lists_;
  Arena arena_;
  std::vector<Batch> batches_;
  Messages asked_, answered_;
  const ops::RankInMessage* of_rank_;
  int64_t columns_through_ = 0, most_items_ = 0, most_keys_ = 0;
  // Maximum number of vectors that this rank owns for other hosts; in Memory::of_owned the index of the first received
  // gradient, and their maximum number.
  int64_t most_answered_ = 0, first_received_ = 0, most_received_ = 0;
  // Tickets of the prepare stream: packed keys sent and received within the host, and their counts.
  size_t sent_keys_, sent_bags_, keys_here_, bags_here_, counts_, counts_here_, first_, items_, first_keys_, scratch_;
  size_t group_scratch_ = 0;
  Event on_host_;  // recorded when the counts or sizes of the current batch have been copied to the host
  HostBuffer host_counts_, host_first_, host_sizes_, host_summed_, host_refused_;
  // Tickets of the exchange stream. Vectors: of this rank's bags; of bags that go through it; of messages that it sends
  // as a gathering rank, the first of which stays free; of messages that it answers as owner.
  size_t bags_, through_, asked_vectors_, owned_vectors_, answered_rows_, sums_ = 0, piece_sums_ = 0;

  BytesBetweenHosts bytes_;
  int64_t full_keys_ = 0, full_vectors_ = 0, full_gradients_ = 0;  // bytes to other hosts of a full-size exchange
};

}  // namespace hctr
