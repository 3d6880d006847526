// A piece of a step: recorded once as a CUDA graph and replayed, or called again each time. Equal numbers either way.
#pragma once

#include <functional>

#include "device/context.h"

namespace hctr {

class Program {
 public:
  /// `body` gives work to `stream`, or to others that wait for it and that it waits for (device/event); it must not
  /// allocate, wait or ask the device. With `record` on a GPU it is called once, here, while the stream records;
  /// otherwise at each run(). Errors: Error(device) when a call cannot be recorded.
  Program(StreamRef stream, bool record, std::function<void()> body);
  ~Program();
  Program(Program&& other) noexcept;
  Program& operator=(Program&&) = delete;

  void run();

 private:
  StreamRef stream_;
  std::function<void()> body_;
  void* graph_ = nullptr;  // cudaGraphExec_t
};

}  // namespace hctr
