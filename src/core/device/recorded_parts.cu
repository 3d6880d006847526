#include "core/device/recorded_parts.h"

#include "core/device/launch.cuh"

namespace hctr::cuda {
namespace {

__global__ void empty_kernel() {}

/// The graph into which the stream is being captured; null without a capture.
cudaGraph_t graph_under_way(StreamRef stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  unsigned long long id = 0;
  HCTR_CHECK(cudaStreamGetCaptureInfo(stream_of(stream), &status, &id, &graph));
  return status == cudaStreamCaptureStatusActive ? graph : nullptr;
}

/// Calls cudaGraphGetEdges. From CUDA 13 on the call also returns which part of a node each edge waits for.
template <class Graph>
size_t get_edges(Graph graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t count) {
  std::vector<cudaGraphEdgeData> data(count);
  if constexpr (requires { cudaGraphGetEdges(graph, from, to, data.data(), &count); })
    HCTR_CHECK(cudaGraphGetEdges(graph, from, to, from ? data.data() : nullptr, &count));
  else
    HCTR_CHECK(cudaGraphGetEdges(graph, from, to, &count));
  return count;
}

}  // namespace

std::vector<const void*> recorded_nodes(StreamRef stream) {
  const cudaGraph_t graph = graph_under_way(stream);
  size_t count = 0;
  if (graph) HCTR_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) HCTR_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  return {nodes.begin(), nodes.end()};
}

std::vector<std::pair<const void*, const void*>> recorded_edges(StreamRef stream) {
  const cudaGraph_t graph = graph_under_way(stream);
  const size_t count = graph ? get_edges(graph, nullptr, nullptr, 0) : 0;
  std::vector<cudaGraphNode_t> from(count), to(count);
  if (count > 0) get_edges(graph, from.data(), to.data(), count);
  std::vector<std::pair<const void*, const void*>> edges;
  for (size_t i = 0; i < count; ++i) edges.emplace_back(from[i], to[i]);
  return edges;
}

std::optional<size_t> recorded_so_far(StreamRef stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  unsigned long long id = 0;
  size_t nodes = 0;
  if (cudaStreamGetCaptureInfo(stream_of(stream), &status, &id, &graph) == cudaSuccess &&
      status == cudaStreamCaptureStatusActive && cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess)
    return nodes;
  (void)cudaGetLastError();  // clear the error, because a profile works without node counts
  return std::nullopt;
}

void start_empty_kernel(Context& ctx) { launch(ctx, "empty", {1, 32, 0}, empty_kernel); }

}  // namespace hctr::cuda
