// Reads rows of tables from files, and deltas of training.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/thread_pool.h"
#include "formats/model/model_manifest.h"
#include "hctr/store.h"

namespace hctr {

/// Passes all rows of a source to a sink, in the order of the source. The sink runs in the calling thread. Errors:
/// Error(config) if the number of sources is not one; Error(io); Error(data) with the problem, such as a number that is
/// not finite.
void read_table(const StoreTableSource&, const StoreRowSink&, ThreadPool&);
/// In the calling thread alone.
inline void read_table(const StoreTableSource& from, const StoreRowSink& sink) {
  ThreadPool alone(1);
  read_table(from, sink, alone);
}
/// The number of rows of each slot of a model file whose rows are identified by slot and key. Empty for other sources.
/// Errors: those of read_table().
std::map<int32_t, int64_t> rows_by_slot(const StoreTableSource&, ThreadPool&);
/// The number of rows of a source. For a model file, only the first block is read; other files are read in full.
/// Errors: those of read_table().
int64_t count_rows(const StoreTableSource&);
/// Identifies the content of a source: StoreTableSource::content if set, otherwise a checksum of its files. Empty:
/// unknown.
std::string content_of(const StoreTableSource&);

/// The changed rows of a slot.
struct ChangedRows {
  std::vector<int64_t> keys, removed;
  std::vector<float> rows;
};
/// [slot] the changes of one table; slot 0 if rows are identified by the key alone
using ChangesOfTable = std::map<int32_t, ChangedRows>;
/// Errors: Error(io), Error(data).
ChangesOfTable changes_of(const ModelManifest& delta, size_t table);

/// The deltas at a snapshot_prefix, by iteration.
std::map<int64_t, fs::path> deltas_at(const std::string& prefix);

}  // namespace hctr
