// Times kernels as replays of a CUDA graph.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <memory>
#include <string>

namespace hctr::gemm_bench {

/// Starts the kernels of a set of operands. Returns an empty string, or what went wrong.
using Launch = std::function<std::string(int set)>;

/// A CUDA graph of several launches. Successive launches use different sets of operands. Errors: Error(device) or
/// Error(bug), if a launch or the graph fails.
class Replay {
 public:
  Replay(cudaStream_t, int launches, int sets, const Launch&);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;
  /// Runs the graph once. Returns microseconds per launch.
  double microseconds();

 private:
  cudaStream_t stream_;
  int launches_;
  cudaGraphExec_t graph_ = nullptr;
  cudaEvent_t start_ = nullptr, end_ = nullptr;
};

/// Runs set 0 and waits for it. Errors: as Replay.
void run_once(cudaStream_t, const Launch&);

}  // namespace hctr::gemm_bench
