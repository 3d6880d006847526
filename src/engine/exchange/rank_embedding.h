// The interface of an embedding to the model of a rank, wherever its rows are.
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

/// The calls of EmbeddingTable for the samples of this rank, and the exchange of vectors and gradients between them.
/// Each call documents the streams on which it may run. Calls are collective. `buffer`: the index of the batch in the
/// ring.
class Embedding {
 public:
  virtual ~Embedding() = default;
  /// On the host, before reserve_rows(): reserves the memory that it will need. Changes no row; not collective. Returns
  /// whether a table has grown.
  virtual bool reserve_memory() { return table().reserve_memory(); }
  virtual void reserve_rows(int64_t step) { table().reserve_rows(step); }
  /// Whether reserve_rows() has changed the work of a step, so that recorded steps must be recorded again. Resets the
  /// flag.
  virtual bool consume_rerecord_flag() { return false; }
  /// The same for prepare() alone, if exchanges_by_kernels(): ranks may record it again independently.
  virtual bool consume_look_up_flag() { return false; }
  void confirm_capacity(int buffer) { table().confirm_capacity(buffer); }
  void enforce_limit(int buffer) { table().enforce_limit(buffer); }
  virtual void check_keys() { table().check_keys(); }
  /// Any thread, any time: prefetches from disk the rows that this rank owns, given the keys of an upcoming batch
  /// (samples of any rank), with their slots. Changes no result. Not collective.
  void look_ahead(std::span<const ops::RowOwner> keys);
  // Send the keys of a batch to the owners of their rows. Make each call for all tables before the next one: ranks wait
  // for each other in the first two. Between hosts the host waits for counts in the last two, so none of the three can
  // be recorded: they begin a new piece. `recording`: the recording in progress, or null.
  virtual void send_keys(Context&, Recording*, int /*buffer*/, Tensor /*keys*/, Tensor /*offsets*/) {}
  virtual void gather_keys(Context&, Recording*, int /*buffer*/) {}
  virtual void receive_keys(Context&, Recording*, int /*buffer*/) {}
  /// Whether all calls of a step, from these on, only queue copies and kernels launched by core/device/launch.cuh;
  /// false if rows can be on disk. The same on every rank.
  virtual bool exchanges_by_kernels() const { return false; }
  /// Before prepare(), on its stream: queues the search for keys without a row in memory, if rows may be on disk.
  /// Returns whether the caller must wait for the stream; bring_rows() does not wait for it.
  virtual bool list_missing(Context&, int /*buffer*/, Tensor /*keys*/, Tensor /*offsets*/) { return false; }
  /// Before prepare(), on its stream: EmbeddingTable::bring_rows(). The host takes part in both, so they are never
  /// recorded.
  virtual void bring_rows(Context&, int /*buffer*/, Tensor /*keys*/, Tensor /*offsets*/) {}
  /// After receive_keys() and bring_rows() of the same batch: looks up, inserts and sorts the keys that this rank has
  /// received.
  virtual void prepare(Context&, int buffer, Tensor keys, Tensor offsets) = 0;
  // The next two may run on a side stream; forward() must follow them. On one rank only forward() has work to do.
  /// Starts to send the vectors from the owners of the rows to the ranks of the samples. From now on other ranks may
  /// write to `y` of this rank: all readers of the previous batch's vectors must be complete.
  virtual void send_vectors(Context&, int buffer) = 0;
  /// Writes the vectors of `y` that are not received: vectors of replicated rows, to which forward() may add others,
  /// and zeros.
  virtual void fill_local_vectors(Context&, int buffer, Tensor y) = 0;
  virtual void forward(Context&, int buffer, Tensor y) = 0;
  /// Signals other ranks that they may write gradients of this batch here, because the previous batch's have been read.
  /// On a side stream, between the previous update() and send_gradients().
  virtual void expect_gradients(Context&) {}
  /// Whether rows are replicated: sum_gradients() then has work to do.
  virtual bool has_replicated_rows() const { return false; }
  // Once `dy` is complete, the following may run on a side stream, in this order.
  /// Sums the gradients of replicated rows over the batch, then over the ranks by an all-reduce. May run concurrently
  /// with the next two calls.
  virtual void sum_gradients(Context&, int, Tensor /*dy*/) {}
  /// Starts to send the gradients to the owners of the rows. Checks all of `dy` for overflow, if search.found is set.
  virtual void send_gradients(Context&, int buffer, Tensor dy, ops::OverflowSearch) = 0;
  /// Whether copy engines of a GPU send gradients if `dy` allows it and there is no overflow check: no multiprocessor
  /// takes part.
  virtual bool sends_gradients_by_engines() const { return false; }
  /// Waits for the gradients of owned rows, and does the work that does not depend on whether the step is skipped.
  virtual void receive_gradients(Context&, int buffer, Tensor dy) = 0;
  virtual void update(Context&, int buffer, Tensor dy) = 0;
  /// EmbeddingTable::freeze() of all its rows. The same on every rank.
  virtual void freeze(bool frozen) { table().freeze(frozen); }
  virtual void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) = 0;
  /// A reader with separate memory, for look-ups in a table that no longer changes. On one rank.
  std::unique_ptr<TableReader> reader(Runtime& runtime, int64_t samples, int64_t key_capacity) {
    return table().reader(runtime, samples, key_capacity);
  }

  /// Whether all calls above can be recorded. Between hosts, message sizes depend on the batch; then only prepare(),
  /// fill_local_vectors(), forward() and sum_gradients() can be recorded.
  virtual bool fixed_sizes() const { return true; }
  /// The bytes that the exchange of keys, vectors and gradients has sent from this rank so far.
  virtual BytesBetweenHosts bytes_between_hosts() const { return {}; }

  /// The spec of the whole embedding, for batches of this rank.
  virtual const TableSpec& spec() const = 0;
  /// The number of rows on all ranks together.
  virtual int64_t rows() = 0;
  /// For each key whether a rank has a row that lookup() would find, for the keys of this rank. Not collective. Waits
  /// for queued steps.
  virtual std::vector<uint8_t> have_rows(std::span<const SlotKey> keys) { return table().have_rows(keys); }
  virtual std::map<std::string, int64_t> counts() = 0;
  /// Rows of this rank in host memory, and their bytes there. Not collective. Waits for queued steps.
  virtual HostRows host_rows() { return table().host_rows(); }
  /// What it takes on the GPU of this rank, as budgets count it. Not collective.
  virtual DeviceBytes device_bytes() { return table().device_bytes(); }
  /// EmbeddingTable::index_places() of this rank, without that of replicated rows.
  int64_t index_places() { return table().index_places(); }
  bool may_be_on_disk() { return table().may_be_on_disk(); }
  /// Rows of this rank on a disk, and bytes that came from there. Not collective.
  DiskUse disk_use() { return table().disk_use(); }
  DiskRows::Fetched disk_fetched() { return table().disk_fetched(); }
  /// Whether keys on any rank have used the shared row, which model files do not hold.
  virtual bool uses_shared_row() { return table().uses_shared_row(); }
  /// The same on every rank; see EmbeddingTable.
  int64_t counted_steps() { return table().counted_steps(); }
  void continue_access_stats(int64_t steps) { table().continue_access_stats(steps); }
  /// Passes the rows of all ranks to `sink` on rank 0, sorted by (slot, key). On other ranks `sink` is not called.
  virtual void export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) = 0;
  /// The maximum host memory that export_rows() takes on this rank, for the rows that it has reserved. Not collective.
  virtual int64_t bytes_to_export(bool with_states, int ranks) { return table().bytes_to_export(with_states, ranks); }
  /// The same for this rank's device memory.
  int64_t device_bytes_to_export(bool with_states) { return table().device_bytes_to_export(with_states); }
  void load_export_kernels() { table().load_export_kernels(); }
  // For deltas of models: the changes since the last model or delta, with nothing queued.
  /// Records that a saved model has all rows as they are.
  virtual void note_model() { table().note_model(); }
  /// The keys of rows that the last model had and that were removed since, sorted; on rank 0, empty on the others.
  /// Collective.
  virtual std::vector<SlotKey> removed_keys() { return table().removed_keys(); }
  /// Every rank passes the same rows and imports those that it owns.
  virtual void import_rows(const RowBlock&) = 0;
  /// EmbeddingTable::reserve_import(), if this rank holds all rows.
  virtual void reserve_import(int64_t /*rows*/) {}

  // For checkpoints, with nothing queued.
  /// Saves this rank's part. Not collective.
  virtual void save_state(StateWriter to) { table().save_state(to.in(kOwnState)); }
  /// Restores the state, exactly or by key, as the reader says. Errors: those of StateReader and of import_rows().
  void load_state(const StateReader& from) { from.exact() ? load_exactly(from) : load_by_key(from); }
  /// Whether this rank holds the row of a key, if not all ranks do.
  virtual bool owns(int64_t /*key*/, int32_t /*slot*/) const { return true; }

 protected:
  /// This rank's rows.
  virtual EmbeddingTable& table() = 0;
  /// Names in checkpoints: of the rows that one rank owns, and of the replicated rows, which rank 0 saves.
  static constexpr const char *kOwnState = "own", *kReplicatedState = "replicated";
  virtual void load_exactly(const StateReader& from) { table().load_state(from.in(kOwnState)); }
  /// Loads from any other embedding of the same rows.
  virtual void load_by_key(const StateReader&);
};

/// The `y` of all later calls of an embedding, if known at creation. Its memory outlives the embedding, and its row
/// stride is the same on every rank.
struct EmbeddingOutputs {
  std::optional<Tensor> training{}, evaluation{};
};

/// `spec` describes the whole table, for batches of the samples of this rank.
std::unique_ptr<Embedding> make_embedding(Runtime&, Communicator&, Placement, const TableSpec& spec, int ring_size,
                                          const EmbeddingOutputs& = {});

}  // namespace hctr
