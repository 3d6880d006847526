// The tables of an EmbeddingSet on several ranks. Calls are collective unless stated otherwise.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/comm/collective_error.h"
#include "core/device/buffer.h"
#include "engine/set/rank_state.h"
#include "engine/set/shared_table.h"
#include "hctr/embedding.h"

namespace hctr {

class SharedSet {
 public:
  /// `buffers`: the maximum number of batches in progress, plus one. The communicators must outlive this object.
  /// Errors: Error(device).
  SharedSet(Runtime&, const SetCommunicators&, const EmbeddingOptions&, std::span<const size_t> table_of,
            std::vector<TableSpec> specs, int buffers);

  /// Runs body(), which must not make collective calls. If any rank fails, every rank throws.
  template <class Body>
  void agreed(const Body& body) {
    run_on_all_ranks(host_, body, kUsingEmbeddings);
  }
  /// Runs body(), which makes collective calls. An error that only this rank throws ends all ranks of the group.
  template <class Body>
  auto together(const Body& body) {
    return or_end_others([&](const Error& error) { end_group(error); }, body);
  }

  /// Sends the keys of a batch to the owner ranks of their rows. The owners look up or add the rows. Returns whether
  /// any rank has samples.
  bool begin(Context&, int buffer, int64_t samples, std::span<const ops::FeatureBags>, int64_t step);
  void write_vectors(Context&, int buffer, std::span<const FeatureVectors<float>> outputs);
  /// Not collective.
  void weight_gradients(Context&, int buffer, std::span<const FeatureVectors<const float>> gradients,
                        std::span<float* const> dw);
  void update(Context&, int buffer, std::span<const FeatureVectors<const float>> gradients);
  std::vector<int64_t> row_gradients(Context&, int buffer, std::span<const FeatureVectors<const float>> gradients,
                                     std::span<const RowGradients> to, bool ends);
  /// Not collective.
  void release(Context&, int buffer);
  std::vector<int64_t> keys_received(int buffer) const;
  void look_up(Context&, int64_t samples, std::span<const ops::FeatureBags>,
               std::span<const FeatureVectors<float>> outputs);

  // These calls apply to table t. No work may be queued.
  int64_t rows(size_t t);
  EmbeddingMemory memory(size_t t);
  std::map<std::string, int64_t> counts(size_t t);
  /// Passes the rows of all ranks to `sink` on rank 0.
  void export_rows(size_t t, RowsToExport wanted, const std::function<void(const RowBlock&)>& sink);
  std::vector<int64_t> removed_keys(size_t t);
  void note_model(size_t t);
  void import_rows(size_t t, const RowBlock&);
  int64_t remove_rows(size_t t, std::span<const int64_t> keys);

  const std::vector<std::unique_ptr<SharedTable>>& tables() const { return tables_; }

 private:
  /// Sends the keys of a batch to the owner ranks of their rows. Returns whether any rank has samples.
  bool send_keys(Context&, int buffer, int64_t samples, std::span<const ops::FeatureBags>,
                 const std::function<void(SharedTable&)>& reserve);
  void exchange_counts(Context&, int buffer, int64_t samples);
  /// Calls add(table, exchanges) for each table, and runs the exchanges together.
  template <class Add>
  void exchange(Context& ctx, const Add& add) {
    std::vector<AllToAll> all;
    for (const auto& table : tables_) add(*table, all);
    comm_.all_to_alls(ctx, all);
  }
  /// Writes the vectors of this rank's samples.
  void bring_vectors(Context&, int buffer, std::span<const FeatureVectors<float>> outputs);
  /// Sends the gradients of this rank's samples to the owner ranks of the rows.
  void send_gradients(Context&, int buffer, std::span<const FeatureVectors<const float>> gradients);
  std::vector<KeysFromRank> counts_at(const std::vector<int32_t>& all, const SharedTable&, int64_t first) const;
  template <class T>
  std::vector<PlacedVectors> of_table(const SharedTable&, std::span<const FeatureVectors<T>>) const;
  int64_t sum_of_ranks(int64_t mine);
  void end_group(const Error&) noexcept;

  Runtime& runtime_;
  Communicator &comm_, &host_;
  const EmbeddingOptions& options_;
  std::vector<std::unique_ptr<SharedTable>> tables_;
  int64_t width_ = 1;  // how many counts a rank sends to each other rank per batch
  Buffer counts_;      // [2 * ranks, width]: sent counts, then received counts
  int look_up_buffer_;
};

/// Throws Error(data) once if an earlier batch on a GPU contained a row number that does not exist.
void report_keys_outside(EmbeddingTable&);

}  // namespace hctr
