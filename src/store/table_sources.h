// Reads rows of tables from files, and deltas of training.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "formats/model/model_manifest.h"
#include "hctr/store.h"

namespace hctr {

/// Passes all rows of a source to a sink. Errors: Error(config) if the number of sources is not one; Error(io);
/// Error(data) with the problem, such as a number that is not finite.
void read_table(const StoreTableSource&, const StoreRowSink&);
/// The number of rows of a source. For a model file, only the first block is read; other sources are read in full.
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
