#include "device/program.h"

#include <utility>

#include "base/platform.h"
#include "device/cuda_runtime_calls.h"

namespace hctr {

Program::Program(StreamRef stream, bool record, std::function<void()> body) : stream_(stream), body_(std::move(body)) {
  if constexpr (kCudaBuild)
    if (record && stream.device.is_cuda()) graph_ = cuda::record_graph(stream, body_);
}

Program::~Program() {
  if constexpr (kCudaBuild)
    if (graph_) cuda::destroy_graph(graph_);
}

Program::Program(Program&& other) noexcept
    : stream_(other.stream_), body_(std::move(other.body_)), graph_(std::exchange(other.graph_, nullptr)) {}

void Program::run(bool recorded) {
  if (graph_ && recorded) {
    if constexpr (kCudaBuild) cuda::launch_graph(graph_, stream_);
  } else {
    body_();
  }
}

}  // namespace hctr
