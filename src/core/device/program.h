// A part of a step. Either the part is recorded once as CUDA graphs, which each step replays, or each step calls its
// code. Both ways have equal results.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/device/context.h"
#include "core/device/recording.h"

namespace hctr {

class Program {
 public:
  /// `body` queues work on `stream`, or on streams that fork from `stream` and join it again (Event). `body` must not
  /// synchronize, read from the device, or allocate (except under relaxed capture, see ops/gemm/tf32_operands.cu). On a
  /// GPU with `record`, the constructor captures the stream and calls `body` once. In all other cases each run() calls
  /// `body`. Errors: Error(device) if a call cannot be captured.
  Program(StreamRef stream, bool record, std::function<void()> body);
  /// For a body that includes work outside the recording.
  Program(StreamRef stream, bool record, std::function<void(Recording&)> body);
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) = delete;

  /// Runs the part. `recorded` = false calls the body even if it was recorded, to measure its parts.
  void run(bool recorded = true);
  /// The number of graphs in the recording.
  size_t pieces() const;

 private:
  class Pieces;
  StreamRef stream_;
  bool record_;
  std::function<void(Recording&)> body_;
  std::unique_ptr<Pieces> pieces_;  // null: not recorded
};

}  // namespace hctr
