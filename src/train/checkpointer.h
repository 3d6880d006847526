// Saves checkpoints while training goes on: a short stop to copy the state to the host, then a thread that writes it.
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

/// One for each rank. At most one checkpoint is written at a time: another that is due waits for it. A checkpoint that
/// cannot be written is warned of, and training goes on. The first one of a run is whole.
class Checkpointer {
 public:
  /// A whole checkpoint in its folder.
  struct Base {
    int64_t iteration;
    uint32_t crc;        // Manifest::files_crc()
    int64_t increments;  // that build on it
  };
  /// The checkpoint in its folder that the run goes on from.
  struct Saved {
    int64_t iteration = -1;      ///< -1: there is none
    std::optional<Base> base{};  ///< for increments; none: the next one is whole
  };
  /// The arguments outlive it. What it reports is said by rank 0.
  Checkpointer(const CheckpointSection&, Communicator&, Runtime&, Reporter&, const Saved&);
  /// Waits for the thread. A checkpoint whose ranks have not all ended writing is left out.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  struct Content {
    int64_t iteration = 0;
    std::function<void(StateWriter)> state;  ///< gives this rank's state; nothing may be queued
    Json about;                              ///< of rank 0: what belongs to the state
    Json progress;                           ///< of rank 0: what can change without it
    fs::path metrics;                        ///< a file to flush to the disk first; of rank 0
    int64_t best_iteration = -1;             ///< of a checkpoint that is kept
    bool last = false;                       ///< training ends with it
  };

  // Collective.
  /// Whether one is due after this iteration, by its number or by the clock of rank 0.
  bool due(int64_t iteration);
  /// Copies the state and starts to write it. Where the checkpoint of this iteration is saved already, only `progress`
  /// is written again.
  void save(Content);
  /// Completes a checkpoint whose files are written. Call after each step.
  void poll(int64_t iteration);
  /// Waits until the last checkpoint is complete.
  void finish();
  /// After finish(): whether there is a complete checkpoint of this iteration.
  bool has(int64_t iteration);
  /// The next one is whole, also where that of this iteration is saved already: another checkpoint has been saved, or
  /// the state has changed otherwise than by steps. Not collective.
  void begin_whole() {
    base_.reset();
    saved_ = -1;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Writing;  // a checkpoint under way
  /// Collective: what rank 0 decides of the next checkpoint.
  void decide(Writing&);
  void copy_state(Writing&, const Content&);
  void write_files(Writing&);
  /// On rank 0: manifest, name, and removal of checkpoints that are not kept.
  void publish(Writing&);
  /// Removes checkpoints that are not kept, nor needed by one that is.
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
  int64_t saved_;             // on rank 0, the iteration of the last complete one
  std::optional<Base> base_;  // on rank 0: the last whole one
  bool warned_memory_ = false, warned_disk_ = false;
  std::unique_ptr<Writing> writing_;
};

}  // namespace hctr
