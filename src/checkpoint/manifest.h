// The manifest of a checkpoint: written last, so that a folder with a valid one is complete.
#pragma once

#include <vector>

#include "base/files.h"
#include "checkpoint/state_index.h"
#include "config/json.h"

namespace hctr {

inline constexpr int64_t kCheckpointSchema = 1;
inline constexpr const char* kManifestName = "manifest.json";

struct Manifest {
  Json about;                     ///< what belongs to the state: run, config, data, placement
  Json progress;                  ///< numbers of the run
  std::vector<StateIndex> files;  ///< by rank
};

/// Writes <folder>/manifest.json, which ends with a checksum of itself. Errors: Error(io).
void write_manifest(const fs::path& folder, const Manifest&);
/// Errors: Error(io); Error(data) naming the file when it is not what write_manifest() wrote.
Manifest read_manifest(const fs::path& folder);
/// Reads all files that the manifest lists. Errors: Error(io); Error(data) naming the file whose size or checksum
/// differs.
void verify_files(const fs::path& folder, const Manifest&);

}  // namespace hctr
