// The manifest of a checkpoint. The manifest is written last, so a folder with a valid manifest is complete.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"
#include "core/base/files.h"
#include "formats/checkpoint/state_index.h"

namespace hctr {

inline constexpr int64_t kCheckpointSchema = 1;
inline constexpr const char* kManifestName = "manifest.json";

struct Manifest {
  Json about;                     ///< properties of the state: run, config, data, placement
  Json progress;                  ///< counters of the run, such as iterations
  std::vector<StateIndex> files;  ///< one file per rank

  /// The full checkpoint on which an increment is based. It is in a sibling folder.
  struct Base {
    std::string name;                      ///< folder name of the base
    uint32_t crc = 0;                      ///< files_crc() of the base
    int64_t increment = 1;                 ///< number of this increment on its base: 1, 2, ...
    fs::path folder{};                     ///< folder of the base; set by read_manifest()
    std::shared_ptr<const Manifest> of{};  ///< manifest of the base; set by read_manifest()
  };
  std::optional<Base> base{};  ///< set for an increment; empty for a full checkpoint

  /// A checksum over the sizes, checksums and arrays of all files. Identifies the saved state.
  uint32_t files_crc() const;
};

/// Writes <folder>/manifest.json, which ends with its own checksum. Errors: Error(io).
void write_manifest(const fs::path& folder, const Manifest&);
/// Reads a manifest and, for an increment, the manifest of its base. Errors: Error(io); Error(data) naming the file if
/// write_manifest() did not write it, or if the base in the folder is a different checkpoint.
Manifest read_manifest(const fs::path& folder);
/// Checks an increment against its base: every array that refers to rows of the base must exist in the base and contain
/// these rows there. `folder`: the manifest's folder, for messages. Errors: Error(data).
void expect_fits_base(const Manifest&, const fs::path& folder);
/// The folder name of an increment's base; empty for a full checkpoint. Does not read the base. Errors: those of
/// read_manifest().
std::optional<std::string> base_of(const fs::path& folder);
/// Reads all files of the checkpoint and of its base, and verifies size and checksum. Errors: Error(io); Error(data)
/// naming the damaged file.
void verify_files(const fs::path& folder, const Manifest&);

}  // namespace hctr
