// How keys, vectors and gradients travel where ranks are on several hosts: keys are made unique in a host before they
// leave it, vectors are sent to a host once, and gradients are added up in it. See docs/distributed.md.
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
  int64_t of_full_size = 0;  ///< what would have been sent if every message had its largest size

  BytesBetweenHosts& operator+=(const BytesBetweenHosts& other) {
    sent += other.sent;
    of_full_size += other.of_full_size;
    return *this;
  }
};

/// The rows of the keys that an owner has received.
struct OwnedRows {
  const int32_t* rows = nullptr;  ///< of each key; 0 for none
  ops::RowMemory table;
};

/// The transport of an Exchange between hosts. For each owner on another host one rank of a host gathers the keys of
/// its ranks, makes them unique, and hands out the vectors that the owner answers with. Owners see the same batches as
/// without it, and unless `sums_in_hosts` ranks receive the same vectors, and rows the same gradients, bit by bit. The
/// host waits for the counts of keys, so no call can be recorded. Calls are collective, in the order send_keys,
/// gather_keys, receive_keys, then of the same batch send_vectors, send_gradients, receive_gradients.
class UniqueExchange {
 public:
  struct Layout {
    ops::KeySplit split;                 ///< of this rank's batches; columns in HostGroups::owner_order()
    std::vector<ops::OwnerKeys> owners;  ///< [ranks] the messages of a full-size exchange
    std::vector<int64_t> most_keys;      ///< [ranks] of each
    std::vector<int32_t> keys_of_bag;    ///< [split.count] most keys of a bag of each column
    int64_t samples = 0;                 ///< of a rank
    int64_t key_capacity = 0;            ///< keys that this rank sends to all owners together
    int64_t owned_columns = 0;           ///< of this rank as owner
    int64_t owned_key_capacity = 0;      ///< keys that it receives from all ranks together
    int64_t dim = 0;                     ///< of a vector
    DType dtype = DType::f32;            ///< of vectors and gradients in the exchange
    DType storage = DType::f32;          ///< of rows
    bool gradients = true;               ///< whether send_gradients() is ever called
    /// Whether sums may be made in hosts though last bits differ then: gradients of a key before they leave a host, and
    /// vectors of a bag of keys that have been rounded. Else owners receive the gradients of all bags, and sums keep
    /// their order.
    bool sums_in_hosts = false;

    int64_t vector_bytes() const { return dim * static_cast<int64_t>(size_of(dtype)); }
    bool sums_gradients() const { return sums_in_hosts && gradients; }
    /// Whether the sum of the vectors of a bag's keys, each rounded to `dtype`, is that of their rows, rounded.
    bool exact() const { return dtype == DType::f32 || dtype == storage; }
  };
  /// Where the vectors are: of samples, by owner as `present` is; of owned rows, [gradients()], the first of which are
  /// those for this host, [its ranks * samples, owned_columns]. The vectors of this rank's own rows for its own samples
  /// stay there and are not sent. The last one is zero.
  struct Memory {
    std::byte *of_samples = nullptr, *of_owned = nullptr;
  };
  UniqueExchange(Runtime&, Communicator&, const HostGroups&, const Layout&, int ring);

  // The keys of a batch, with a wait of the host before each of the last two. Who has several tables makes each call
  // for all of them before the next one: while the host waits for one table, the counts of the others travel. Errors:
  // Error(comm) naming the sender of a message that cannot be right; on a GPU what is wrong inside one is known with
  // the next batch, and the keys of the message are left out.
  /// Packs keys and sends their counts in the host. `local_rows`: of ops::KeySplit.
  void send_keys(Context&, int buffer, const ops::KeyBatch& batch, const int32_t* local_rows, uint8_t* present);
  /// Waits for the counts; gathers the keys in the host, and sends the sizes of messages to other hosts.
  void gather_keys(Context&, int buffer);
  /// Waits for the sizes; sends the messages and joins those that come. Shapes: those of ops::join_host_keys.
  void receive_keys(Context&, int buffer, Tensor owned_offsets, Tensor owned_keys);
  /// Whether send_vectors() reads the pooled vectors of the samples of this rank from Memory::of_owned. Vectors for
  /// other hosts are pooled from their rows.
  bool sends_pooled(int rank) const { return comm_.host_of(rank) == groups_.host(); }
  int64_t index_here(int rank) const { return groups_.index_here(rank); }
  /// Vectors of Memory::of_owned, where after receive_gradients() the gradients are, and which of them each key of the
  /// batch that send_keys() has joined has; null without gradients.
  int64_t gradients() const { return layout_.gradients ? first_received_ + most_received_ + 1 : first_received_; }
  const int32_t* key_gradients(int buffer) const {
    return layout_.gradients ? list(batches_.at(static_cast<size_t>(buffer)).key_gradients) : nullptr;
  }
  void send_vectors(Context&, int buffer, const Memory&, const OwnedRows&);
  /// `search`: in sums of gradients too.
  void send_gradients(Context&, int buffer, const Memory&, const ops::OverflowSearch& search);
  void receive_gradients(Context&, int buffer, const Memory&);

  BytesBetweenHosts bytes() const { return bytes_; }

 private:
  /// Tickets of the arrays of ops::HostKeys, and its messages.
  struct Messages {
    ops::HostMessages all;
    std::vector<int> ranks{};  // to which each is sent, or from which it is received
    int64_t most_words = 0;    // of all together
    size_t offsets = 0, keys = 0, first = 0, places = 0, bag_numbers = 0, columns = 0, sizes = 0, refused = 0,
           words = 0;
  };
  /// What is known of the sizes of a batch, in vectors, by rank: `bags` of this rank that go through a rank of this
  /// host, `items`: those of such a rank that go through this one. `own`: the first of each, whose owner is the rank
  /// that they go through, which are not sent to oneself. Vectors and gradients: of messages sent and received.
  struct Sizes {
    RankRanges bags, items;
    std::vector<int64_t> own;  // of items
    int64_t own_bags = 0;
    RankRanges vectors_asked, vectors_answered, gradients_sent, gradients_received;
    int64_t listed = 0;  // keys whose rows are sent
    int64_t summed = 0;  // gradients of bags in sums, each as often as its bag has keys
  };
  /// Tickets of ops::RowGroups.
  struct Groups {
    size_t rows, bags, run_begin, long_runs, pieces, counts;
  };
  struct Batch {
    size_t requested;                                     // bags, as indices in `present`
    size_t bag_offsets, bag_vectors, bag_gradients, own;  // ops::BagLists
    size_t owner_offsets, owner_keys, key_gradients;      // ops::OwnerLists
    Groups groups{};                                      // of sums of gradients, by their numbers
    Sizes sizes{};
  };
  /// Keys that this rank and the others of its host send to each other.
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
  /// Throws if a number that a rank has sent is one that it cannot have.
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
  /// `count` vectors as words, and those of a ticket.
  Tensor words_at(std::byte* memory, int64_t count) const;
  Tensor words_of(size_t ticket) const;
  /// all_to_all of vectors; ranges count vectors.
  void send(Context&, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive);
  /// Copies the vectors of this rank's bags to bags_ or from there, but for those of its own rows.
  void copy_bags(Context&, const Batch&, std::byte* of_samples, bool pack);
  /// Of the bags of Sizes, what is sent to or received from other ranks.
  RankRanges without_own(RankRanges, int64_t own) const;
  /// sum[i] = the sum of the rows of list i, for `count` lists from `first` on.
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
  // Vectors that this rank owns for other hosts at most; in Memory::of_owned the first received gradient, and how many
  // there may be.
  int64_t most_answered_ = 0, first_received_ = 0, most_received_ = 0;
  // Tickets of the prepare stream: packed keys sent and received in the host, their counts.
  size_t sent_keys_, sent_bags_, keys_here_, bags_here_, counts_, counts_here_, first_, items_, first_keys_, scratch_;
  size_t group_scratch_ = 0;
  Event on_host_;  // counts or sizes of the batch under way have arrived there
  HostBuffer host_counts_, host_first_, host_sizes_, host_summed_, host_refused_;
  // Of the exchange stream. Vectors of this rank's bags; of those that go through it; of messages sent by this rank as
  // a gathering one, the first of which stays free; of those that it answers as owner.
  size_t bags_, through_, asked_vectors_, owned_vectors_, answered_rows_, sums_ = 0, piece_sums_ = 0;

  BytesBetweenHosts bytes_;
  int64_t full_keys_ = 0, full_vectors_ = 0, full_gradients_ = 0;  // bytes to other hosts of a full-size exchange
};

}  // namespace hctr
