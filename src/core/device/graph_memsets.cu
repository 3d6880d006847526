#include "core/device/graph_memsets.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/device/cuda_check.cuh"
#include "core/device/kernel_trace.h"

namespace hctr::cuda {
namespace {

constexpr size_t kMostElements = 16384;
constexpr unsigned kSetThreads = 256;

/// Sets `count` elements of `bytes` bytes (1, 2 or 4) to `value`.
__global__ void set_elements_kernel(void* to, unsigned bytes, unsigned value, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (bytes == 1) static_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(value);
  if (bytes == 2) static_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(value);
  if (bytes == 4) static_cast<uint32_t*>(to)[i] = value;
}

using Nodes = std::vector<cudaGraphNode_t>;

Nodes nodes_of(cudaGraph_t graph) {
  size_t count = 0;
  HCTR_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  Nodes nodes(count);
  if (count > 0) HCTR_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

/// Returns the nodes adjacent to a node. `get` is a CUDA call that writes up to `count` nodes: get(nodes, count), or
/// get(nodes, edges, count) from CUDA 13 on. `edges` would tell for which part of a node the following node waits. In
/// our graphs that is always the whole node, so `edges` is not used.
template <class Get>
Nodes nodes_beside(Get get) {
  size_t count = 0;
  std::vector<cudaGraphEdgeData> edges;
  const auto call = [&]<class Node>(Node* nodes) {
    if constexpr (requires { get(nodes, edges.data(), &count); })
      HCTR_CHECK(get(nodes, edges.data(), &count));
    else
      HCTR_CHECK(get(nodes, &count));
  };
  call(static_cast<cudaGraphNode_t*>(nullptr));
  Nodes nodes(count);
  edges.resize(count);
  if (count > 0) call(nodes.data());
  return nodes;
}

template <class Node>
void order(cudaGraph_t graph, Node first, Node then) {
  if constexpr (requires { cudaGraphAddDependencies(graph, &first, &then, nullptr, size_t{1}); })
    HCTR_CHECK(cudaGraphAddDependencies(graph, &first, &then, nullptr, 1));
  else
    HCTR_CHECK(cudaGraphAddDependencies(graph, &first, &then, 1));
}

}  // namespace

void set_memory_by_kernels(cudaGraph_t graph) {
  for (const cudaGraphNode_t node : nodes_of(graph)) {
    cudaGraphNodeType type{};
    HCTR_CHECK(cudaGraphNodeGetType(node, &type));
    if (type != cudaGraphNodeTypeMemset) continue;
    cudaMemsetParams set{};
    HCTR_CHECK(cudaGraphMemsetNodeGetParams(node, &set));
    if (set.height != 1 || set.width > kMostElements) continue;
    auto count = static_cast<unsigned>(set.width);
    void* arguments[] = {&set.dst, &set.elementSize, &set.value, &count};
    cudaKernelNodeParams kernel{};
    kernel.func = reinterpret_cast<void*>(set_elements_kernel);
    kernel.gridDim = dim3((count + kSetThreads - 1) / kSetThreads);
    kernel.blockDim = dim3(std::min((count + 31) / 32 * 32, kSetThreads));
    kernel.kernelParams = arguments;
    const Nodes first = nodes_beside([&](auto... to) -> decltype(cudaGraphNodeGetDependencies(node, to...)) {
      return cudaGraphNodeGetDependencies(node, to...);
    });
    cudaGraphNode_t instead = nullptr;
    HCTR_CHECK(cudaGraphAddKernelNode(&instead, graph, first.data(), first.size(), &kernel));
    const Nodes behind = nodes_beside([&](auto... to) -> decltype(cudaGraphNodeGetDependentNodes(node, to...)) {
      return cudaGraphNodeGetDependentNodes(node, to...);
    });
    for (const cudaGraphNode_t then : behind) order(graph, instead, then);
    KernelTrace::move_mark(node, instead);
    HCTR_CHECK(cudaGraphDestroyNode(node));
  }
}

}  // namespace hctr::cuda
