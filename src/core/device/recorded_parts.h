// The interface of a Profiler, or a test, to work that is being recorded.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "core/device/context.h"

namespace hctr::cuda {

/// Nodes of the graph that the stream is recorded into; none if it is not recorded, or if they are unknown.
std::optional<size_t> recorded_so_far(StreamRef) noexcept;
/// The same nodes, by their handles, and which of them wait for which: (first, then). Empty where nothing is recorded.
std::vector<const void*> recorded_nodes(StreamRef);
std::vector<std::pair<const void*, const void*>> recorded_edges(StreamRef);
/// Starts a kernel of one block that does nothing.
void start_empty_kernel(Context&);

}  // namespace hctr::cuda
