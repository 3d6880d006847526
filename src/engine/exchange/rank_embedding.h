// The interface of an embedding to the model of a rank, for any placement of rows.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/comm/communicator.h"
#include "core/device/recording.h"
#include "engine/exchange/unique_exchange.h"
#include "engine/placement/placement.h"
#include "engine/table/table.h"
#include "ops/common/loss_scale.h"

namespace hctr {

/// The calls of EmbeddingTable for the samples of this rank, and the exchange of vectors and gradients between ranks.
/// Each call documents the streams on which it may run. Calls are collective. `buffer`: the index of the batch in the
/// ring.
class Embedding {
 public:
  virtual ~Embedding() = default;
  /// Reserves the memory that reserve_rows() will need. Call on the host before reserve_rows(). Changes no row; not
  /// collective. Returns whether a table has grown.
  virtual bool reserve_memory() { return table().reserve_memory(); }
  virtual void reserve_rows(int64_t step) { table().reserve_rows(step); }
  /// Whether reserve_rows() has changed the work of a step, so that the step must be recorded again. The call resets
  /// this state.
  virtual bool consume_rerecord_flag() { return false; }
  /// Whether only prepare() must be recorded again. Used with exchanges_by_kernels(), where each rank can record
  /// prepare() again without the other ranks. Resets the flag.
  virtual bool consume_look_up_flag() { return false; }
  void confirm_capacity(int buffer) { table().confirm_capacity(buffer); }
  void enforce_limit(int buffer) { table().enforce_limit(buffer); }
  virtual void check_keys() { table().check_keys(); }
  /// Prefetches from disk the rows that this rank owns among `keys`: (key, slot) pairs of an upcoming batch, from
  /// samples of any rank. Does not change results. Thread-safe at any time; not collective.
  void look_ahead(std::span<const ops::RowOwner> keys);
  // These three calls send the keys of a batch to the owners of their rows. Make each call for all tables before the
  // next call, because ranks wait for each other in send_keys() and gather_keys(). Between hosts, the host waits for
  // counts in gather_keys() and receive_keys(). In this case none of the three calls can be recorded, and each call
  // begins a new piece of the recording. `recording`: the recording in progress, or null.
  virtual void send_keys(Context&, Recording*, int /*buffer*/, Tensor /*keys*/, Tensor /*offsets*/) {}
  virtual void gather_keys(Context&, Recording*, int /*buffer*/) {}
  virtual void receive_keys(Context&, Recording*, int /*buffer*/) {}
  /// Whether all calls of a step, beginning with send_keys(), only queue copies and kernels (core/device/launch.cuh).
  /// False if rows can be on disk. The same on every rank.
  virtual bool exchanges_by_kernels() const { return false; }
  /// If rows may be on disk, queues the search for keys that have no row in memory. Call before prepare(), on the
  /// stream of prepare(). Returns whether work was queued. If so, synchronize the stream, so that bring_rows() does not
  /// wait.
  virtual bool list_missing(Context&, int /*buffer*/, Tensor /*keys*/, Tensor /*offsets*/) { return false; }
  /// Calls EmbeddingTable::bring_rows(). Call before prepare(), on the stream of prepare(). Neither list_missing() nor
  /// bring_rows() can be recorded, because both need the host.
  virtual void bring_rows(Context&, int /*buffer*/, Tensor /*keys*/, Tensor /*offsets*/) {}
  /// Looks up, inserts and sorts the keys that this rank has received. Call after receive_keys() and bring_rows() of
  /// the same batch.
  virtual void prepare(Context&, int buffer, Tensor keys, Tensor offsets) = 0;
  // send_vectors() and fill_local_vectors() may run on a side stream. Call forward() after both functions. On a single
  // rank, only forward() does work.

  /// Starts to send vectors from the owners of rows to the ranks of samples. From now on other ranks may write to `y`
  /// of this rank, so all readers of the previous batch's vectors must be complete.
  virtual void send_vectors(Context&, int buffer) = 0;
  /// Writes the vectors of `y` that no other rank sends: pooled vectors of replicated rows, and zeros. forward() may
  /// add further vectors to the same elements.
  virtual void fill_local_vectors(Context&, int buffer, Tensor y) = 0;
  virtual void forward(Context&, int buffer, Tensor y) = 0;
  /// Tells other ranks that they may write gradients of this batch to this rank, because this rank has read the
  /// gradients of the previous batch. Call on a side stream, after the previous update() and before send_gradients().
  virtual void expect_gradients(Context&) {}
  /// Whether some rows are replicated, so that sum_gradients() has work to do.
  virtual bool has_replicated_rows() const { return false; }
  // Once `dy` is complete, the following calls may run on a side stream, in this order.

  /// Sums the gradients of replicated rows over the batch, then over the ranks by an all-reduce. May run concurrently
  /// with send_gradients() and receive_gradients().
  virtual void sum_gradients(Context&, int, Tensor /*dy*/) {}
  /// Starts to send the gradients to the owners of rows. Checks all of `dy` for overflow if search.found is set.
  virtual void send_gradients(Context&, int buffer, Tensor dy, ops::OverflowSearch) = 0;
  /// Whether copy engines of a GPU send the gradients instead of multiprocessors. They do so only if `dy` permits it
  /// and there is no overflow check.
  virtual bool sends_gradients_by_engines() const { return false; }
  /// Waits for the gradients of owned rows, and calls EmbeddingTable::sum_long_runs(). Required even if the step is
  /// skipped.
  virtual void receive_gradients(Context&, int buffer, Tensor dy) = 0;
  virtual void update(Context&, int buffer, Tensor dy) = 0;
  /// Calls EmbeddingTable::freeze() for all rows. `frozen` must be the same on every rank.
  virtual void freeze(bool frozen) { table().freeze(frozen); }
  virtual void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) = 0;
  /// Creates a reader with its own memory, for lookups in a table that no longer changes. Requires a single rank.
  std::unique_ptr<TableReader> reader(Runtime& runtime, int64_t samples, int64_t key_capacity) {
    return table().reader(runtime, samples, key_capacity);
  }

  /// Whether all calls above can be recorded. False between hosts, where message sizes depend on the batch. In that
  /// case only prepare(), fill_local_vectors(), forward() and sum_gradients() can be recorded.
  virtual bool fixed_sizes() const { return true; }
  /// The bytes of keys, vectors and gradients that this rank has sent to other hosts so far.
  virtual BytesBetweenHosts bytes_between_hosts() const { return {}; }

  /// The spec of the whole embedding, with the batch sizes of this rank.
  virtual const TableSpec& spec() const = 0;
  /// The total number of rows on all ranks.
  virtual int64_t rows() = 0;
  /// For each of this rank's keys: whether any rank has a row that lookup() would find. Not collective. Waits for
  /// queued steps.
  virtual std::vector<uint8_t> have_rows(std::span<const SlotKey> keys) { return table().have_rows(keys); }
  virtual std::map<std::string, int64_t> counts() = 0;
  /// The number and bytes of this rank's rows in host memory. Not collective. Waits for queued steps.
  virtual HostRows host_rows() { return table().host_rows(); }
  /// The device memory of the embedding on this rank, as budgets count it. Not collective.
  virtual DeviceBytes device_bytes() { return table().device_bytes(); }
  /// EmbeddingTable::index_places() of this rank, without replicated rows.
  int64_t index_places() { return table().index_places(); }
  bool may_be_on_disk() { return table().may_be_on_disk(); }
  /// Rows of this rank on disk (disk_use), and bytes read from disk (disk_fetched). Not collective.
  DiskUse disk_use() { return table().disk_use(); }
  DiskRows::Fetched disk_fetched() { return table().disk_fetched(); }
  /// Whether keys on any rank have used the shared row, which model files do not contain.
  virtual bool uses_shared_row() { return table().uses_shared_row(); }
  /// Equal on every rank; see EmbeddingTable.
  int64_t counted_steps() { return table().counted_steps(); }
  void continue_access_stats(int64_t steps) { table().continue_access_stats(steps); }
  /// Passes the rows of all ranks to `sink` on rank 0, sorted by (slot, key). Does not call `sink` on other ranks.
  virtual void export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) = 0;
  /// An upper bound of the host memory in bytes that export_rows() needs on this rank, as if every row with allocated
  /// memory were in use. Not collective.
  virtual int64_t bytes_to_export(bool with_states, int ranks) { return table().bytes_to_export(with_states, ranks); }
  /// The maximum device memory in bytes that export_rows() needs on this rank. Not collective.
  int64_t device_bytes_to_export(bool with_states) { return table().device_bytes_to_export(with_states); }
  void load_export_kernels() { table().load_export_kernels(); }
  // For model deltas: the changes since the last saved model or delta. No work may be queued.

  /// Records that a saved model contains the current state of all rows.
  virtual void note_model() { table().note_model(); }
  /// The keys of rows that the last model contained and that were removed since, sorted. Returned on rank 0; empty on
  /// other ranks. Collective.
  virtual std::vector<SlotKey> removed_keys() { return table().removed_keys(); }
  /// Every rank passes the same rows and imports the rows that it owns.
  virtual void import_rows(const RowBlock&) = 0;
  /// Calls EmbeddingTable::reserve_import() if this rank holds all rows.
  virtual void reserve_import(int64_t /*rows*/) {}

  // For checkpoints. No work may be queued.

  /// Saves the state of this rank. Not collective.
  virtual void save_state(StateWriter to) { table().save_state(to.in(kOwnState)); }
  /// Restores the state, exactly if from.exact(), otherwise by key. Errors: those of StateReader and of import_rows().
  void load_state(const StateReader& from) { from.exact() ? load_exactly(from) : load_by_key(from); }
  /// Whether this rank owns the row of a key. True if every rank has all rows.
  virtual bool owns(int64_t /*key*/, int32_t /*slot*/) const { return true; }

 protected:
  /// This rank's rows.
  virtual EmbeddingTable& table() = 0;
  /// Names in checkpoints. kOwnState: the rows that have one owner. kReplicatedState: the replicated rows, which rank 0
  /// saves.
  static constexpr const char *kOwnState = "own", *kReplicatedState = "replicated";
  virtual void load_exactly(const StateReader& from) { table().load_state(from.in(kOwnState)); }
  /// Loads the state of an embedding with the same rows and any placement.
  virtual void load_by_key(const StateReader&);
};

/// The output tensors `y` of all later calls of an embedding, if known at creation. Their memory must outlive the
/// embedding. The row stride must be the same on every rank.
struct EmbeddingOutputs {
  std::optional<Tensor> training{}, evaluation{};
};

/// `spec` describes the whole table, with the batch sizes of this rank.
std::unique_ptr<Embedding> make_embedding(Runtime&, Communicator&, Placement, const TableSpec& spec, int ring_size,
                                          const EmbeddingOutputs& = {});

}  // namespace hctr
