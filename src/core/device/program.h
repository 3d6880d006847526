// A part of a step that is recorded once as CUDA graphs and replayed, or called each time. Results are equal.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/device/context.h"
#include "core/device/recording.h"

namespace hctr {

class Program {
 public:
  /// `body` enqueues work on `stream`, or on streams that wait for it and that it waits for (Event). It must not
  /// allocate (but under relaxed capture, see ops/gemm/tf32_operands.cu), synchronize or read from the device. With
  /// `record`, on a GPU, the constructor calls it once while it captures the stream; otherwise each run() calls it.
  /// Errors: Error(device) if a call cannot be captured.
  Program(StreamRef stream, bool record, std::function<void()> body);
  /// The same for a body with work that is not recorded.
  Program(StreamRef stream, bool record, std::function<void(Recording&)> body);
  ~Program();
  Program(Program&&) noexcept;
  Program& operator=(Program&&) = delete;

  /// `recorded` false: calls the body although it has been recorded, to measure its parts.
  void run(bool recorded = true);
  /// Graphs that it has been recorded as.
  size_t pieces() const;

 private:
  class Pieces;
  StreamRef stream_;
  bool record_;
  std::function<void(Recording&)> body_;
  std::unique_ptr<Pieces> pieces_;  // null: not recorded
};

}  // namespace hctr
