// Saves checkpoints during training. Training stops while the state is copied to the host, then a thread writes the
// copy.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "config/sections/checkpoint_section.h"
#include "core/comm/communicator.h"
#include "formats/checkpoint/manifest.h"
#include "formats/checkpoint/state_writer.h"
#include "train/reporter.h"

namespace hctr {

/// Each rank has one Checkpointer. At most one checkpoint is in progress; save() waits for the preceding checkpoint. If
/// a checkpoint cannot be written, logs a warning, and training continues. The first checkpoint of a run is full.
class Checkpointer {
 public:
  /// A full checkpoint in the checkpoint folder.
  struct Base {
    int64_t iteration;
    uint32_t crc;        // result of Manifest::files_crc()
    int64_t increments;  // number of increments that build on this checkpoint
  };
  /// The checkpoint from which the run resumed, if it is in the checkpoint folder.
  struct Saved {
    int64_t iteration = -1;      ///< -1: none
    std::optional<Base> base{};  ///< base for the next increment; none: the next checkpoint is full
  };
  /// The arguments must outlive the object. Rank 0 logs the reports.
  Checkpointer(const CheckpointSection&, Communicator&, Runtime&, Reporter&, const Saved&);
  /// Waits for the writing thread. Discards the checkpoint if a rank has not written.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  struct Content {
    int64_t iteration = 0;
    std::function<void(StateWriter)> state;  ///< saves this rank's state; called with no step queued
    Json about;                              ///< on rank 0: describes the run
    Json progress;                           ///< on rank 0: values that can change while the state does not
    /// on rank 0: a file that is flushed to disk before the checkpoint is published
    fs::path metrics;
    int64_t best_iteration = -1;  ///< iteration of a checkpoint that must not be removed
    bool last = false;            ///< whether this is the last checkpoint of training
  };

  // Collective. Whether a checkpoint is due after this iteration, by iteration count or by rank 0's clock.
  bool due(int64_t iteration);
  /// Copies the state and starts writing it. If this iteration is already saved, rewrites only `progress`.
  void save(Content);
  /// Publishes the checkpoint in progress if all ranks have written. Call after each step.
  void poll(int64_t iteration);
  /// Waits until the checkpoint in progress is complete.
  void finish();
  /// Whether a complete checkpoint of this iteration exists. Call after finish().
  bool has(int64_t iteration);
  /// Makes the next checkpoint full, even if this iteration is already saved. Call this if another checkpoint has been
  /// saved elsewhere, or if anything but a step has changed the state. Not collective.
  void begin_whole() {
    base_.reset();
    saved_ = -1;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Writing;  // a checkpoint in progress
  /// Collective: broadcasts rank 0's decisions about the next checkpoint.
  void decide(Writing&);
  void copy_state(Writing&, const Content&);
  void write_files(Writing&);
  /// On rank 0, writes the manifest, renames the checkpoint into place, and removes old checkpoints.
  void publish(Writing&);
  /// Removes all checkpoints except kept checkpoints and their bases.
  void prune(int64_t best_iteration) const;
  void complete();
  void save_progress(Writing&) const;
  void report_end();

  const CheckpointSection& section_;
  Communicator& comm_;
  Runtime& runtime_;
  Reporter& report_;
  fs::path folder_;
  Clock::time_point last_ = Clock::now();
  int64_t saved_;             // on rank 0: iteration of the last complete checkpoint
  std::optional<Base> base_;  // on rank 0: the last full checkpoint
  bool warned_memory_ = false, warned_disk_ = false;
  std::unique_ptr<Writing> writing_;
};

}  // namespace hctr
