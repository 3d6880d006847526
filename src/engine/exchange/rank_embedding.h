// The interface of an embedding to the model of a rank, whichever ranks its rows are on.
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
  /// Host, before reserve_rows(): reserves the memory that it will need. Changes no row; not collective.
  /// Returns whether a table has got memory for more rows.
  virtual bool reserve_memory() { return table().reserve_memory(); }
  virtual void reserve_rows(int64_t step) { table().reserve_rows(step); }
  /// Whether reserve_rows() has changed the work of a step, so that recorded steps must be recorded again. Resets the
  /// flag.
  virtual bool consume_rerecord_flag() { return false; }
  /// The same of prepare() alone, if exchanges_by_kernels(): ranks need not record it again together.
  virtual bool consume_look_up_flag() { return false; }
  void confirm_capacity(int buffer) { table().confirm_capacity(buffer); }
  void enforce_limit(int buffer) { table().enforce_limit(buffer); }
  virtual void check_keys() { table().check_keys(); }
  /// Any thread, any time: has those rows that this rank owns and that are on a disk read ahead, for a batch that comes
  /// whose keys these are, of the samples of any rank, with their slots. Changes no number. Not collective.
  void look_ahead(std::span<const ops::RowOwner> keys);
  // The keys of a batch to the owners of their rows, each called for all tables before the next one: ranks wait for
  // each other in the first two. Between hosts the host waits for counts in the last two, so all three are outside of
  // the recording, and a new piece begins then. `recording`: that of the program under way, or null.
  virtual void send_keys(Context&, Recording*, int /*buffer*/, Tensor /*keys*/, Tensor /*offsets*/) {}
  virtual void gather_keys(Context&, Recording*, int /*buffer*/) {}
  virtual void receive_keys(Context&, Recording*, int /*buffer*/) {}
  /// Whether all calls of a step, from these on, only start kernels, by core/device/launch.cuh, and copies, where no
  /// row can be on a disk. The same on every rank.
  virtual bool exchanges_by_kernels() const { return false; }
  /// Before prepare(), on its stream: queues the search for keys that have no row in memory where some may be on a
  /// disk. Returns whether the stream must be waited for then; bring_rows() does not wait for it.
  virtual bool list_missing(Context&, int /*buffer*/, Tensor /*keys*/, Tensor /*offsets*/) { return false; }
  /// Before prepare(), on its stream: EmbeddingTable::bring_rows(). The host takes part in both: they are never
  /// recorded.
  virtual void bring_rows(Context&, int /*buffer*/, Tensor /*keys*/, Tensor /*offsets*/) {}
  /// After receive_keys() and bring_rows() of the same batch: looks up, inserts and sorts the keys that this rank has
  /// received.
  virtual void prepare(Context&, int buffer, Tensor keys, Tensor offsets) = 0;
  // The next two may run on a side stream; forward() must follow them. On one rank only forward() has work to do.
  /// Starts to send the vectors from the owners of the rows to the ranks of the samples. From now on other ranks may
  /// write to `y` of this rank: everything that reads the vectors of the previous batch must be complete.
  virtual void send_vectors(Context&, int buffer) = 0;
  /// Writes the vectors of `y` that are not received: those of replicated rows, to which forward() may add others, and
  /// zeros.
  virtual void fill_local_vectors(Context&, int buffer, Tensor y) = 0;
  virtual void forward(Context&, int buffer, Tensor y) = 0;
  /// Tells other ranks that they may write gradients of this batch here: those of the previous one have been read. On a
  /// side stream, between the previous update() and send_gradients().
  virtual void expect_gradients(Context&) {}
  /// Whether rows are replicated: sum_gradients() then has work to do.
  virtual bool has_replicated_rows() const { return false; }
  // Once `dy` is complete, the following may run on a side stream, in this order.
  /// Sums the gradients of replicated rows over the batch, then over the ranks by an all-reduce. May run concurrently
  /// with the next two calls.
  virtual void sum_gradients(Context&, int, Tensor /*dy*/) {}
  /// Starts to send the gradients to the owners of the rows. Searches all of `dy` for overflow, if search.found is set.
  virtual void send_gradients(Context&, int buffer, Tensor dy, ops::OverflowSearch) = 0;
  /// Whether copy engines of a GPU send them, where `dy` allows it and nothing is searched: no multiprocessor takes
  /// part.
  virtual bool sends_gradients_by_engines() const { return false; }
  /// Waits for the gradients of owned rows, and does the work that does not depend on whether the step is skipped.
  virtual void receive_gradients(Context&, int buffer, Tensor dy) = 0;
  virtual void update(Context&, int buffer, Tensor dy) = 0;
  /// EmbeddingTable::freeze() of all its rows. The same on every rank.
  virtual void freeze(bool frozen) { table().freeze(frozen); }
  virtual void lookup(Context&, Tensor keys, Tensor offsets, Tensor y) = 0;
  /// Look-ups with memory of their own, for a table that no longer changes. On one rank.
  std::unique_ptr<TableReader> reader(Runtime& runtime, int64_t samples, int64_t key_capacity) {
    return table().reader(runtime, samples, key_capacity);
  }

  /// Whether the calls above can be recorded. Between hosts the sizes of what is sent are known with the batch only,
  /// and of the calls of a step prepare(), fill_local_vectors(), forward() and sum_gradients() alone can be.
  virtual bool fixed_sizes() const { return true; }
  /// What the exchange of keys, vectors and gradients has sent from this rank so far.
  virtual BytesBetweenHosts bytes_between_hosts() const { return {}; }

  /// The spec of the whole embedding, for batches of this rank.
  virtual const TableSpec& spec() const = 0;
  /// Rows of all ranks together.
  virtual int64_t rows() = 0;
  /// Which of these keys have rows on this rank: what lookup() finds on one of the ranks. Not collective. Waits for
  /// queued steps.
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
  /// The same on every rank, see EmbeddingTable.
  int64_t counted_steps() { return table().counted_steps(); }
  void continue_access_stats(int64_t steps) { table().continue_access_stats(steps); }
  /// Passes the rows of all ranks to `sink` on rank 0, sorted by (slot, key). On other ranks `sink` is not called.
  virtual void export_rows(RowsToExport wanted, const std::function<void(const RowBlock&)>& sink) = 0;
  /// Host memory that this takes on this rank at most, for the rows that it has memory for. Not collective.
  virtual int64_t bytes_to_export(bool with_states, int ranks) { return table().bytes_to_export(with_states, ranks); }
  /// The same of this rank's device.
  int64_t device_bytes_to_export(bool with_states) { return table().device_bytes_to_export(with_states); }
  void load_export_kernels() { table().load_export_kernels(); }
  // For deltas of models: what has changed since the last one, whole or a delta, with nothing queued.
  /// Notes that a model has all rows as they are.
  virtual void note_model() { table().note_model(); }
  /// The keys whose rows were in the last model and are gone, sorted; on rank 0, empty on the others. Collective.
  virtual std::vector<SlotKey> removed_keys() { return table().removed_keys(); }
  /// Every rank passes the same rows and imports those that it holds.
  virtual void import_rows(const RowBlock&) = 0;
  /// EmbeddingTable::reserve_import(), where this rank holds all rows.
  virtual void reserve_import(int64_t /*rows*/) {}

  // For checkpoints, with nothing queued.
  /// Saves what this rank holds. Not collective.
  virtual void save_state(StateWriter to) { table().save_state(to.in(kOwnState)); }
  /// Takes the state back, exactly or by key, as the reader says. Errors: those of StateReader and of import_rows().
  void load_state(const StateReader& from) { from.exact() ? load_exactly(from) : load_by_key(from); }
  /// Whether this rank holds the row of a key, if not all ranks do.
  virtual bool owns(int64_t /*key*/, int32_t /*slot*/) const { return true; }

 protected:
  /// This rank's rows.
  virtual EmbeddingTable& table() = 0;
  /// Names in checkpoints: of the rows that belong to a rank, and of those that all ranks have, which rank 0 saves.
  static constexpr const char *kOwnState = "own", *kReplicatedState = "replicated";
  virtual void load_exactly(const StateReader& from) { table().load_state(from.in(kOwnState)); }
  /// From any other embedding of the same rows.
  virtual void load_by_key(const StateReader&);
};

/// The `y` of all later calls of an embedding, if it is known at creation. Its memory outlives the embedding, and its
/// row stride is the same on every rank.
struct EmbeddingOutputs {
  std::optional<Tensor> training{}, evaluation{};
};

/// `spec` describes the whole table, for batches of the samples of this rank.
std::unique_ptr<Embedding> make_embedding(Runtime&, Communicator&, Placement, const TableSpec& spec, int ring_size,
                                          const EmbeddingOutputs& = {});

}  // namespace hctr
