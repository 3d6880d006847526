// The manifest of a checkpoint: written last, so that a folder with a valid one is complete.
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
  Json progress;                  ///< numbers of the run
  std::vector<StateIndex> files;  ///< one per rank

  /// The full checkpoint in a sibling folder, to which an increment adds changes.
  struct Base {
    std::string name;                      ///< name of its folder
    uint32_t crc = 0;                      ///< its files_crc()
    int64_t increment = 1;                 ///< index among the increments on the same base, from 1
    fs::path folder{};                     ///< read_manifest() fills in this and
    std::shared_ptr<const Manifest> of{};  ///< its manifest
  };
  std::optional<Base> base{};  ///< none: it is whole

  /// Identifies the state: covers sizes, checksums and arrays of all files.
  uint32_t files_crc() const;
};

/// Writes <folder>/manifest.json, which ends with a checksum of itself. Errors: Error(io).
void write_manifest(const fs::path& folder, const Manifest&);
/// With its base's manifest. Errors: Error(io); Error(data) naming the file when write_manifest() did not write it, or
/// the base is another one.
Manifest read_manifest(const fs::path& folder);
/// Checks that each array of which the base has rows exists there, with as many rows. `folder`: of the manifest, for
/// messages. Errors: Error(data).
void expect_fits_base(const Manifest&, const fs::path& folder);
/// The folder name of its base; none if it is full. Does not read the base. Errors: as read_manifest().
std::optional<std::string> base_of(const fs::path& folder);
/// Reads all files that the manifest lists, and those of its base. Errors: Error(io); Error(data) naming the file whose
/// size or checksum differs.
void verify_files(const fs::path& folder, const Manifest&);

}  // namespace hctr
