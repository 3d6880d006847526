// How the batches of all ranks reach the owners of their rows, and the vectors come back. See docs/distributed.md.
//
//   this rank's samples                                       this rank's rows
//   keys, offsets ── split_keys ── all-to-all ── merge_keys ──> keys, offsets of the samples of all ranks
//   y  <── join_vectors ─────────── all-to-all <────────────── their vectors
//   dy ──> split_gradients ──────── all-to-all ──────────────> their gradients
#pragma once

#include <vector>

#include "comm/route.h"
#include "device/arena.h"
#include "embedding/placement.h"
#include "embedding/table_spec.h"
#include "ops/vector_blocks.h"

namespace hctr {

/// The batches of one size, of one embedding. What is sent and received has one size, whatever a batch holds: the most that it may hold.
class Exchange {
 public:
  struct Shape {
    std::vector<int64_t> slot_places;  ///< where keys are not pooled: as in TableSpec; else empty
    std::vector<int64_t> slot_keys;    ///< [slots] most keys of a bag
    int64_t samples = 0, key_capacity = 0, dim = 0;
    ops::Combiner combiner = ops::Combiner::sum;
    DType dtype = DType::f32;  ///< that vectors and gradients travel in
  };
  /// For batches that come in `ring` slots.
  Exchange(Runtime&, Communicator&, const Placement&, const Shape&, int ring);

  /// The slot of each column that this rank owns, numbered as in the placement, and the sizes of the batches it gets.
  const std::vector<int32_t>& owned_slots() const { return owned_slots_; }
  int64_t owned_samples() const { return shape_.samples * comm_.size(); }
  int64_t owned_key_capacity() const;

  /// Keys to their owners. Shapes: keys i64 [key_capacity], offsets i32 [slots * samples + 1]. `local_rows` [key_capacity]: keys that have a
  /// row here (not 0) stay, though bags count them.
  void send_keys(Context&, int slot, Tensor keys, Tensor offsets, const int32_t* local_rows = nullptr);
  /// What came: the keys of the samples of all ranks, [owned_key_capacity] and [owned_slots * owned_samples + 1].
  Tensor owned_keys(int slot) const { return arena_.get(of_slot_[static_cast<size_t>(slot)].keys); }
  Tensor owned_offsets(int slot) const { return arena_.get(of_slot_[static_cast<size_t>(slot)].offsets); }

  /// [owned_samples, owned_slots, dim / pieces], of the type they travel in: to be filled with vectors and sent, or what gradients arrive in.
  Tensor owned_vectors() const;
  /// Of those, the samples of this rank itself: their vectors stay, and are read by receive_vectors() alone.
  ops::SampleRange own_samples() const { return {comm_.rank() * shape_.samples, (comm_.rank() + 1) * shape_.samples}; }
  /// What is in owned_vectors() for other ranks leaves, of bags that have keys here; receive_vectors() makes y of what comes,
  /// add_received_vectors() adds it (ops::add_joined_vectors). Shapes: y [samples, places, dim], as the table's.
  void send_vectors(Context&, int slot);
  void receive_vectors(Context&, int slot, Tensor y);
  void add_received_vectors(Context&, int slot, Tensor y);
  /// After receive_gradients() what comes is in owned_vectors().
  void send_gradients(Context&, int slot, Tensor dy, ops::OverflowSearch);
  void receive_gradients(Context& ctx) { to_owners_->finish(ctx); }

 private:
  struct Slot {
    size_t offsets, keys, sent_present, owned_present;  // tickets
    ops::KeyBatch mine{};                               // set by send_keys, the same each time
  };
  uint8_t* bytes_of(size_t ticket) const { return reinterpret_cast<uint8_t*>(arena_.get(ticket).bytes()); }
  /// Once the vectors of the slot have come: how they lie.
  ops::VectorBlocks finish_vectors(Context&, int slot);
  void make_routes(Runtime&);
  void place_columns(const Placement&);
  void upload(Runtime&);
  int64_t most_keys(const ops::OwnerBlock&) const;

  Communicator& comm_;
  Shape shape_;
  std::vector<ops::BlockColumn> columns_;
  std::vector<ops::OwnerBlock> owners_;
  std::vector<int32_t> column_slots_, owned_slots_, first_of_slot_;
  std::vector<int32_t> first_places_;  // where each column stands at its owners, as in ops::VectorBlocks
  std::vector<ops::PartPlace> places_of_columns_;
  bool owners_are_alike_ = false;                          // every one has every column
  int64_t words_ = 0;                                      // of all blocks sent
  int64_t pieces_ = 1, piece_dim_ = 0;

  Arena arena_;
  std::vector<Slot> of_slot_;
  size_t sent_ = 0, received_ = 0, scratch_ = 0, blocks_memory_ = 0, owners_memory_ = 0, slots_memory_ = 0, places_memory_ = 0,
         first_places_memory_ = 0, column_places_memory_ = 0, alike_memory_ = 0, alike_places_memory_ = 0;
  ops::KeyBlocks key_blocks_;
  ops::VectorBlocks vector_blocks_, gradient_blocks_;
  ops::Places places_;
  std::unique_ptr<Route> to_samples_, to_owners_;  // of vectors, and of gradients; what arrives over one is where the other's come from
};

}  // namespace hctr
