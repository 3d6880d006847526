// Saves checkpoints during training: a short stop to copy the state to the host, then a thread that writes it.
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

/// One per rank. At most one checkpoint is written at a time; the next one waits for it. If a checkpoint cannot be
/// written, logs a warning and training continues. The first checkpoint of a run is full.
class Checkpointer {
 public:
  /// A full checkpoint in the checkpoint folder.
  struct Base {
    int64_t iteration;
    uint32_t crc;        // Manifest::files_crc()
    int64_t increments;  // increments that build on it
  };
  /// The checkpoint in the checkpoint folder from which the run resumed.
  struct Saved {
    int64_t iteration = -1;      ///< -1: none
    std::optional<Base> base{};  ///< base of increments; none: the next checkpoint is full
  };
  /// The arguments outlive it. Rank 0 logs its reports.
  Checkpointer(const CheckpointSection&, Communicator&, Runtime&, Reporter&, const Saved&);
  /// Waits for the thread. Discards a checkpoint that not all ranks have written.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  struct Content {
    int64_t iteration = 0;
    std::function<void(StateWriter)> state;  ///< saves this rank's state; nothing may be queued
    Json about;                              ///< on rank 0: describes the run that the state belongs to
    Json progress;                           ///< on rank 0: numbers that can change without the state
    fs::path metrics;                        ///< on rank 0: a file to flush to disk before
    int64_t best_iteration = -1;             ///< iteration of a checkpoint that must be kept
    bool last = false;                       ///< the last checkpoint of training
  };

  // Collective.
  /// Whether a checkpoint is due after this iteration, by the iteration or by rank 0's clock.
  bool due(int64_t iteration);
  /// Copies the state and starts writing it. If the checkpoint of this iteration already exists, writes only `progress`
  /// again.
  void save(Content);
  /// Publishes a checkpoint whose files are written. Call after each step.
  void poll(int64_t iteration);
  /// Waits until the last checkpoint is complete.
  void finish();
  /// After finish(): whether a complete checkpoint of this iteration exists.
  bool has(int64_t iteration);
  /// Makes the next checkpoint full, even if this iteration is already saved: another checkpoint has been saved
  /// elsewhere, or the state has changed otherwise than by steps. Not collective.
  void begin_whole() {
    base_.reset();
    saved_ = -1;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Writing;  // a checkpoint being written
  /// Collective: broadcasts rank 0's decisions about the next checkpoint.
  void decide(Writing&);
  void copy_state(Writing&, const Content&);
  void write_files(Writing&);
  /// On rank 0: writes the manifest, renames the checkpoint into place, and removes checkpoints that are not kept.
  void publish(Writing&);
  /// Removes checkpoints that are neither kept nor needed by a kept one.
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
