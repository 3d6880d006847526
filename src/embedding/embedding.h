// The embedding of a layer as a rank's model uses it: its table on one rank, or spread over all of them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "embedding/placement.h"
#include "embedding/table.h"
#include "ops/loss_scale.h"

namespace hctr {

/// The calls of EmbeddingTable for this rank's samples, and between them what ranks send each other; each says on which
/// streams it may run. Collective: every rank makes the same ones.
class Embedding {
 public:
  virtual ~Embedding() = default;
  virtual void reserve_rows(int64_t step) { table().reserve_rows(step); }
  /// Whether reserve_rows() has changed what steps do, so that those that are recorded must be recorded again. Asked
  /// once.
  virtual bool consume_rerecord_flag() { return false; }
  void confirm_capacity(int buffer) { table().confirm_capacity(buffer); }
  void enforce_limit(int buffer) { table().enforce_limit(buffer); }
  virtual void check_keys() { table().check_keys(); }
  virtual void prepare(Context&, int buffer, Tensor keys, Tensor offsets) = 0;
  // Both may run beside the compute stream; forward() must follow them. (Tables that are whole here do all of it in
  // forward().)
  /// Begins the way of vectors from the owners of rows to the ranks of their samples. From here on other ranks may
  /// write to this one's `y`: whatever reads the vectors of the batch before must be done.
  virtual void send_vectors(Context&, int buffer) = 0;
  /// What of `y` nobody sends: vectors of rows that every rank has, to which forward() may add the others, and zeros.
  virtual void fill_local_vectors(Context&, int buffer, Tensor y) = 0;
  virtual void forward(Context&, int buffer, Tensor y) = 0;
  virtual bool has_replicated_rows() const { return false; }
  // Once `dy` is there, all of the following may run beside the compute stream, in this order.
  /// The gradients of rows that every rank has, summed over the batch and then over the ranks; beside the two calls
  /// that follow, if one likes.
  virtual void sum_gradients(Context&, int, Tensor /*dy*/) {}
  /// Begins the way of gradients to the owners of rows. All of `dy` is searched for overflow.
  virtual void send_gradients(Context&, int buffer, Tensor dy, ops::OverflowSearch) = 0;
  /// Ends it, and does what need not know whether the step is one to skip.
  virtual void receive_gradients(Context&, int buffer, Tensor dy) = 0;
  virtual void update(Context&, int buffer, Tensor dy) = 0;
  virtual void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) = 0;

  /// Of the whole embedding, for batches of this rank.
  virtual const TableSpec& spec() const = 0;
  /// Of all ranks together.
  virtual int64_t rows() = 0;
  virtual std::map<std::string, int64_t> counts() = 0;
  /// Whether keys have used a row, of any rank, that files of models do not hold.
  virtual bool uses_shared_row() { return table().uses_shared_row(); }
  /// The same on every rank, see EmbeddingTable.
  int64_t counted_steps() { return table().counted_steps(); }
  void continue_access_stats(int64_t steps) { table().continue_access_stats(steps); }
  /// On rank 0 `sink` gets the rows of all ranks, sorted by (slot, key); on the others it is not called.
  virtual void export_rows(bool with_states, const std::function<void(const RowBlock&)>& sink) = 0;
  /// Every rank gives the same rows; each keeps its own.
  virtual void import_rows(const RowBlock&) = 0;

 protected:
  /// This rank's rows.
  virtual EmbeddingTable& table() = 0;
};

/// What the calls of an embedding will be given as `y` each time, where that is known when it is made. It outlives the
/// embedding, and has the same row stride on every rank.
struct EmbeddingOutputs {
  std::optional<Tensor> training{}, evaluation{};
};

/// `spec` is that of one rank's samples, as if it were alone.
std::unique_ptr<Embedding> make_embedding(Runtime&, Communicator&, Placement, const TableSpec& spec, int ring_size,
                                          const EmbeddingOutputs& = {});

}  // namespace hctr
