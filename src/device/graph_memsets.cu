#include "device/graph_memsets.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/cuda_check.cuh"
#include "device/kernel_trace.h"

namespace hctr::cuda {
namespace {

constexpr size_t kMostElements = 16384;
constexpr unsigned kSetThreads = 256;

/// Elements of 1, 2 or 4 bytes.
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

/// The nodes in front of a node or behind it. Only whole nodes are waited for: a memory set has no part of its own that
/// could start early.
template <class Get>
Nodes neighbours(Get get) {
  size_t count = 0;
  HCTR_CHECK(get(nullptr, nullptr, &count));
  Nodes nodes(count);
  std::vector<cudaGraphEdgeData> edges(count);
  if (count > 0) HCTR_CHECK(get(nodes.data(), edges.data(), &count));
  return nodes;
}

#if CUDART_VERSION >= 13000
Nodes in_front(cudaGraphNode_t node) {
  return neighbours([&](auto... to) { return cudaGraphNodeGetDependencies(node, to...); });
}
Nodes behind(cudaGraphNode_t node) {
  return neighbours([&](auto... to) { return cudaGraphNodeGetDependentNodes(node, to...); });
}
void order(cudaGraph_t graph, cudaGraphNode_t first, cudaGraphNode_t then) {
  HCTR_CHECK(cudaGraphAddDependencies(graph, &first, &then, nullptr, 1));
}
#else
Nodes in_front(cudaGraphNode_t node) {
  return neighbours([&](auto... to) { return cudaGraphNodeGetDependencies_v2(node, to...); });
}
Nodes behind(cudaGraphNode_t node) {
  return neighbours([&](auto... to) { return cudaGraphNodeGetDependentNodes_v2(node, to...); });
}
void order(cudaGraph_t graph, cudaGraphNode_t first, cudaGraphNode_t then) {
  HCTR_CHECK(cudaGraphAddDependencies_v2(graph, &first, &then, nullptr, 1));
}
#endif

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
    const Nodes first = in_front(node);
    cudaGraphNode_t instead = nullptr;
    HCTR_CHECK(cudaGraphAddKernelNode(&instead, graph, first.data(), first.size(), &kernel));
    for (const cudaGraphNode_t then : behind(node)) order(graph, instead, then);
    KernelTrace::move_mark(node, instead);
    HCTR_CHECK(cudaGraphDestroyNode(node));
  }
}

}  // namespace hctr::cuda
