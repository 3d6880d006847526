// The exchange of keys, vectors and gradients between several hosts. Each host deduplicates keys before sending them,
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
  const int32_t* rows = nullptr;  ///< [key]: its row; 0: none
  ops::RowMemory table;
};

/// The transport of an Exchange between hosts. For each owner on another host, one rank of this host gathers the keys
/// of all local ranks, deduplicates them, and distributes the vectors that the owner returns. Owners get the same
/// batches as from a direct exchange. Without `sums_in_hosts`, vectors and gradients are bitwise equal to those of a
/// direct exchange. The host waits for the counts of keys, so no call can be recorded. Calls are collective. For each
/// batch the order is: send_keys, gather_keys, receive_keys, send_vectors, send_gradients, receive_gradients.
class UniqueExchange {
 public:
  struct Layout {
    ops::KeySplit split;                 ///< splits this rank's batches; the columns are in HostGroups::owner_order()
    std::vector<ops::OwnerKeys> owners;  ///< [ranks]: the messages, each with its maximum size
    std::vector<int64_t> most_keys;      ///< [ranks]: maximum keys of each message
    std::vector<int32_t> keys_of_bag;    ///< [split.count]: maximum keys per bag of each column
    int64_t samples = 0;                 ///< samples of a rank
    int64_t key_capacity = 0;            ///< maximum keys that this rank sends to all owners
    int64_t owned_columns = 0;           ///< columns that this rank owns
    int64_t owned_key_capacity = 0;      ///< maximum keys that this rank receives from all ranks
    int64_t dim = 0;                     ///< elements per vector
    DType dtype = DType::f32;            ///< dtype of exchanged vectors and gradients
    DType storage = DType::f32;          ///< dtype of rows
    bool gradients = true;               ///< whether send_gradients() is ever called
    /// Whether a host sums before it sends: the gradients of each key, and the rounded vectors of each bag. These sums
    /// can change the last bits of results. If false, owners receive the gradients of all bags, and the order of
    /// additions does not change.
    bool sums_in_hosts = false;

    int64_t vector_bytes() const { return dim * static_cast<int64_t>(size_of(dtype)); }
    bool sums_gradients() const { return sums_in_hosts && gradients; }
    /// Whether the sum of a bag's vectors, each rounded to `dtype`, equals the rounded sum of the bag's rows.
    bool exact() const { return dtype == DType::f32 || dtype == storage; }
  };
  /// The memory of vectors. `of_samples` has the order of owners, like `present`. `of_owned` has gradients() vectors.
  /// The first vectors of `of_owned` are for this host's samples, [ranks of this host * samples, owned_columns]. The
  /// last vector of `of_owned` is zero. This rank's own vectors for its own samples stay in `of_owned` and are not
  /// sent.
  struct Memory {
    std::byte *of_samples = nullptr, *of_owned = nullptr;
  };
  UniqueExchange(Runtime&, Communicator&, const HostGroups&, const Layout&, int ring);

  // Exchange the keys of a batch. The host waits at the start of gather_keys() and receive_keys(). With several tables,
  // make each call for all tables before the next call, so that the counts of other tables are sent while the host
  // waits. Errors: Error(comm) naming the sender of an impossible message. On a GPU, an error inside a message is
  // reported with the next batch, and the keys of that message are skipped.

  /// Packs keys and sends their counts within the host. `local_rows`: see ops::KeySplit.
  void send_keys(Context&, int buffer, const ops::KeyBatch& batch, const int32_t* local_rows, uint8_t* present);
  /// Waits for the counts, gathers the keys within the host, and sends the sizes of messages to other hosts.
  void gather_keys(Context&, int buffer);
  /// Waits for the sizes, sends the messages, and joins the received messages. Shapes: see ops::join_host_keys.
  void receive_keys(Context&, int buffer, Tensor owned_offsets, Tensor owned_keys);
  /// Whether send_vectors() reads the pooled vectors for samples of `rank` from Memory::of_owned. This is the case for
  /// ranks of this host. For other hosts, send_vectors() pools the vectors from their rows.
  bool sends_pooled(int rank) const { return comm_.host_of(rank) == groups_.host(); }
  int64_t index_here(int rank) const { return groups_.index_here(rank); }
  /// gradients(): the number of vectors in Memory::of_owned, which contains the gradients after receive_gradients().
  /// key_gradients(): for each key of the joined batch, the index of its gradient; null without gradients.
  int64_t gradients() const { return layout_.gradients ? first_received_ + most_received_ + 1 : first_received_; }
  const int32_t* key_gradients(int buffer) const {
    return layout_.gradients ? list(batches_.at(static_cast<size_t>(buffer)).key_gradients) : nullptr;
  }
  void send_vectors(Context&, int buffer, const Memory&, const OwnedRows&);
  /// `search`: the overflow check, which also checks sums of gradients.
  void send_gradients(Context&, int buffer, const Memory&, const ops::OverflowSearch& search);
  void receive_gradients(Context&, int buffer, const Memory&);

  BytesBetweenHosts bytes() const { return bytes_; }

 private:
  /// Arena tickets of the arrays of ops::HostKeys, and the messages.
  struct Messages {
    ops::HostMessages all;
    std::vector<int> ranks{};  // [message]: its receiver or sender
    int64_t most_words = 0;    // maximum words of all messages together
    size_t offsets = 0, keys = 0, first = 0, places = 0, bag_numbers = 0, columns = 0, sizes = 0, refused = 0,
           words = 0;
  };
  /// The sizes of a batch's messages, counted in vectors, by rank. `bags`, range r: this rank's bags whose rows are
  /// owned by rank r of this host, or by an owner for which rank r gathers. `items`, range r: the bags of rank r of
  /// this host whose rows are owned by this rank, or by an owner for which this rank gathers. `own`: those bags of
  /// `items` whose rows this rank owns. They come first and are not sent to another host. All other ranges count the
  /// vectors and gradients of sent and received messages.
  struct Sizes {
    RankRanges bags, items;
    std::vector<int64_t> own;  // [rank of this host]: how many bags of `items` this rank owns
    int64_t own_bags = 0;
    RankRanges vectors_asked, vectors_answered, gradients_sent, gradients_received;
    int64_t listed = 0;  // keys whose rows are sent
    // number of summands in all gradient sums; the gradient of a bag is a summand once for each key of the bag
    int64_t summed = 0;
  };
  /// Arena tickets of ops::RowGroups.
  struct Groups {
    size_t rows, bags, run_begin, long_runs, pieces, counts;
  };
  struct Batch {
    size_t requested;                                     // bags, as indices in `present`
    size_t bag_offsets, bag_vectors, bag_gradients, own;  // ops::BagLists
    size_t owner_offsets, owner_keys, key_gradients;      // ops::OwnerLists
    Groups groups{};                                      // groups bags by the index of their gradient sum
    Sizes sizes{};
  };
  /// The ranges of keys that this rank exchanges with ranks of its host.
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
  /// Throws Error(comm) if `number`, received from `sender`, is outside [0, most].
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
  /// Views memory, or the array of an arena ticket, as words. `count`: number of vectors.
  Tensor words_at(std::byte* memory, int64_t count) const;
  Tensor words_of(size_t ticket) const;
  /// An all_to_all() of vectors; ranges count vectors.
  void send(Context&, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive);
  /// Copies the vectors or gradients of the bags that this rank requests from other ranks. If `pack`, copies from
  /// `of_samples` to bags_; if not, from bags_ to `of_samples`.
  void copy_bags(Context&, const Batch&, std::byte* of_samples, bool pack);
  /// Removes the first `own` elements of this rank's range: the bags that are not sent to another rank.
  RankRanges without_own(RankRanges, int64_t own) const;
  /// sums[i] = the sum of the table rows in list i, for i in [0, count). List i is rows[offsets[i]] to rows[offsets[i +
  /// 1] - 1].
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
  // most_answered_: maximum vectors that this rank sends to other hosts as owner. first_received_: the index of the
  // first received gradient in Memory::of_owned. most_received_: the maximum number of received gradients.
  int64_t most_answered_ = 0, first_received_ = 0, most_received_ = 0;
  // Arena tickets used on the prepare stream: packed keys, sent and received within the host, and the counts of these
  // keys.
  size_t sent_keys_, sent_bags_, keys_here_, bags_here_, counts_, counts_here_, first_, items_, first_keys_, scratch_;
  size_t group_scratch_ = 0;
  Event on_host_;  // recorded after the counts or sizes of the current batch were copied to the host
  HostBuffer host_counts_, host_first_, host_sizes_, host_summed_, host_refused_;
  // Arena tickets used on the exchange stream. bags_: vectors of this rank's bags. through_: vectors of bags for which
  // this rank gathers. asked_vectors_: vectors of the messages that this rank exchanges with owners as gathering rank;
  // vector 0 is not part of a message. owned_vectors_: vectors that this rank returns as owner.
  size_t bags_, through_, asked_vectors_, owned_vectors_, answered_rows_, sums_ = 0, piece_sums_ = 0;

  BytesBetweenHosts bytes_;
  // bytes to other hosts if every message had its maximum size
  int64_t full_keys_ = 0, full_vectors_ = 0, full_gradients_ = 0;
};

}  // namespace hctr
