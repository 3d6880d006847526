// Keys that are made unique in a host before they leave it, and vectors that are sent to a host once. See
// docs/distributed.md.
#pragma once

#include <vector>

#include "embedding/host_keys.h"
#include "embedding/packed_exchange.h"

namespace hctr {

/// The PackedExchange of CPU ranks. For each owner on another host one rank of a host gathers the keys of its ranks,
/// makes them unique, and hands out the vectors that the owner answers with. Owners see the same batches, and ranks
/// receive the same vectors, bit by bit, as without it. Gradients go from ranks to owners.
class UniqueExchange : public PackedExchange {
 public:
  UniqueExchange(Runtime&, Communicator&, const Layout&, int ring);
  /// Vectors for other hosts are pooled from their rows.
  bool sends_pooled(int rank) const override { return comm_.host_of(rank) == host_; }
  void receive_vectors(Context&, int buffer, const Memory&) override;

 private:
  /// What the ranks of this host ask an owner on another host for.
  struct Question {
    HostKeys keys;
    std::vector<NumberLists> of_ranks;  // the vectors of the bags of each
  };
  struct UniqueBatch {
    std::vector<Question> asked;      // by owner, as in owners()
    std::vector<HostKeys> to_answer;  // by host
  };
  UniqueBatch& of(const Batch& at) { return unique_[static_cast<size_t>(&at - batches_.data())]; }

  const std::vector<int>& here() const { return hosts_[static_cast<size_t>(host_)]; }
  /// The rank of a host that gathers its keys for an owner on another one.
  int gathering_rank(size_t host, int owner) const {
    const std::vector<int>& ranks = hosts_[host];
    return ranks[static_cast<size_t>(owner) % ranks.size()];
  }
  /// The owners whose keys this rank gets from the ranks of its host: itself, and those that it gathers for.
  const std::vector<int>& owners() const { return owners_through_[static_cast<size_t>(comm_.rank())]; }
  HostKeysShape shape_for(size_t host, int owner) const;

  void carry_keys(Context&, Batch&) override;
  void gather_keys(Context&, Batch&);
  RankKeys gathered(size_t rank_here, size_t owner) const;
  void ask(Context&, UniqueBatch&);
  void rebuild_batch(Batch&, const UniqueBatch&);
  void carry_vectors(Context&, Batch&, const Memory&, const OwnedRows&) override;
  void answer(Context&, const UniqueBatch&, const OwnedRows&);
  void hand_out(Context&, const Batch&, const UniqueBatch&, const Memory&);
  /// The ranges of what this rank receives from the ranks of its host: vectors from all but its own rows.
  RankRanges vectors_from_host(const Batch&) const;
  Tensor vectors(std::byte* memory, int64_t count) const;
  /// out[i] = the sum of the rows of list i.
  void sum_lists(Context&, const std::vector<int32_t>& offsets, const std::vector<int32_t>& rows, ops::RowMemory table,
                 Tensor out) const;

  int host_;
  std::vector<std::vector<int>> hosts_;           // the ranks of each
  std::vector<std::vector<int>> owners_through_;  // by rank of this host: see owners()
  std::vector<UniqueBatch> unique_;
  // Of one call. Memory grows to the largest size that was needed.
  std::vector<int32_t> counts_here_;  // [ranks of this host, ranks, 2]: keys and vectors, by owner
  std::vector<int64_t> keys_out_, keys_in_, words_out_, words_in_;
  std::vector<int32_t> bags_out_, bags_in_;
  std::vector<int64_t> gathered_from_;  // [ranks of this host, owners() + 1] where their keys begin in keys_in_
  std::vector<std::byte> vectors_out_, vectors_in_;
};

}  // namespace hctr
