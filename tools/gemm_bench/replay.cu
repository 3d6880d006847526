#include "replay.h"

#include "core/device/cuda_check.cuh"

namespace hctr::gemm_bench {
namespace {

void expect_launched(const std::string& failed) {
  if (!failed.empty()) throw Error(Kind::device, failed);
}

}  // namespace

Replay::Replay(cudaStream_t stream, int launches, int sets, const Launch& launch)
    : stream_(stream), launches_(launches) {
  HCTR_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  std::string failed;
  for (int i = 0; i < launches && failed.empty(); ++i) failed = launch(i % sets);
  cudaGraph_t recorded = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &recorded);
  if (!failed.empty() || ended != cudaSuccess) {
    if (recorded) cudaGraphDestroy(recorded);
    expect_launched(failed);
    HCTR_CHECK(ended);
  }
  const cudaError_t made = cudaGraphInstantiate(&graph_, recorded, 0);
  cudaGraphDestroy(recorded);
  HCTR_CHECK(made);
  HCTR_CHECK(cudaEventCreate(&start_));
  HCTR_CHECK(cudaEventCreate(&end_));
}

Replay::~Replay() {
  if (graph_) cudaGraphExecDestroy(graph_);
  if (start_) cudaEventDestroy(start_);
  if (end_) cudaEventDestroy(end_);
}

double Replay::microseconds() {
  HCTR_CHECK(cudaEventRecord(start_, stream_));
  HCTR_CHECK(cudaGraphLaunch(graph_, stream_));
  HCTR_CHECK(cudaEventRecord(end_, stream_));
  HCTR_CHECK(cudaEventSynchronize(end_));
  float milliseconds = 0;
  HCTR_CHECK(cudaEventElapsedTime(&milliseconds, start_, end_));
  return 1000.0 * static_cast<double>(milliseconds) / launches_;
}

void run_once(cudaStream_t stream, const Launch& launch) {
  expect_launched(launch(0));
  HCTR_CHECK(cudaStreamSynchronize(stream));
}

}  // namespace hctr::gemm_bench
