// A part of a step that is recorded once as a CUDA graph and replayed, or called each time. Results are equal.
#pragma once

#include <functional>

#include "device/context.h"

namespace hctr {

class Program {
 public:
  /// `body` enqueues work on `stream`, or on streams that wait for it and that it waits for (Event). It must not
  /// allocate (but under relaxed capture, see ops/tf32_operands.cu), synchronize or read from the device. With
  /// `record`, on a GPU, the constructor calls it once while it captures the stream; otherwise each run() calls it.
  /// Errors: Error(device) if a call cannot be captured.
  Program(StreamRef stream, bool record, std::function<void()> body);
  ~Program();
  Program(Program&& other) noexcept;
  Program& operator=(Program&&) = delete;

  /// `recorded` false: calls the body although it has been recorded, to measure its parts.
  void run(bool recorded = true);

 private:
  StreamRef stream_;
  std::function<void()> body_;
  void* graph_ = nullptr;  // cudaGraphExec_t
};

}  // namespace hctr
