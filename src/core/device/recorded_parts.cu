#include "core/device/recorded_parts.h"

#include "core/device/launch.cuh"

namespace hctr::cuda {
namespace {

__global__ void empty_kernel() {}

}  // namespace

std::optional<size_t> recorded_so_far(StreamRef stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  unsigned long long id = 0;
  size_t nodes = 0;
  if (cudaStreamGetCaptureInfo(stream_of(stream), &status, &id, &graph) == cudaSuccess &&
      status == cudaStreamCaptureStatusActive && cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess)
    return nodes;
  (void)cudaGetLastError();  // a profile without these numbers is no error
  return std::nullopt;
}

void start_empty_kernel(Context& ctx) { launch(ctx, "empty", {1, 32, 0}, empty_kernel); }

}  // namespace hctr::cuda
