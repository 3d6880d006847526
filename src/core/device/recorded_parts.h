// Queries about work that is being recorded, for a Profiler or a test.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "core/device/context.h"

namespace hctr::cuda {

/// The number of nodes in the graph into which the stream is captured. nullopt if the stream is not captured, or if the
/// number is unknown.
std::optional<size_t> recorded_so_far(StreamRef) noexcept;
/// The handles of the nodes that recorded_so_far() counts. recorded_edges() returns the edges as pairs (earlier node,
/// later node). Both are empty if the stream is not captured.
std::vector<const void*> recorded_nodes(StreamRef);
std::vector<std::pair<const void*, const void*>> recorded_edges(StreamRef);
/// Launches a kernel of one block that does nothing.
void start_empty_kernel(Context&);

}  // namespace hctr::cuda
