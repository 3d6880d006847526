// Reads checkpoints that are complete: all files exist and match the checksums of the manifest.
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

/// An additional check by the caller. Throws if the checkpoint is not usable.
using CheckpointCheck = std::function<void(const WholeCheckpoint&)>;

/// Reads a checkpoint's manifest, calls `check`, then verifies all files. Errors: Error(io); Error(data) naming the
/// damaged file; those of `check`.
WholeCheckpoint read_checkpoint(const fs::path& folder, const CheckpointCheck& check = {});
/// The newest complete checkpoint in `folder`; empty if the folder has no checkpoints. Warns about newer checkpoints
/// that are damaged. Errors: if all checkpoints are damaged, the error of the newest.
std::optional<WholeCheckpoint> newest_checkpoint(const fs::path& folder, const Log&, const CheckpointCheck& check = {});

}  // namespace hctr
