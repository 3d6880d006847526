// A checkpoint that can be read: all of its files are there, with their checksums.
#pragma once

#include <functional>
#include <optional>

#include "core/base/files.h"
#include "core/base/log.h"
#include "formats/checkpoint/manifest.h"

namespace hctr {

struct WholeCheckpoint {
  fs::path folder;
  Manifest manifest;
  int64_t iteration = 0;

  int ranks() const { return static_cast<int>(manifest.files.size()); }
};

/// Called with each checkpoint that is read, to throw what else is wrong with it.
using CheckpointCheck = std::function<void(const WholeCheckpoint&)>;

/// Reads a checkpoint and all of its files. Errors: Error(io); Error(data) naming the file that is damaged; those of
/// `check`, which comes before its files are read.
WholeCheckpoint read_checkpoint(const fs::path& folder, const CheckpointCheck& check = {});
/// The newest whole checkpoint of a folder, after warnings of newer ones; nothing where there is none at all. Errors:
/// that of the newest one where none is whole.
std::optional<WholeCheckpoint> newest_checkpoint(const fs::path& folder, const Log&, const CheckpointCheck& check = {});

}  // namespace hctr
