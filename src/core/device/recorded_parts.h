// The Profiler's interface to work that is being recorded.
#pragma once

#include <cstddef>
#include <optional>

#include "core/device/context.h"

namespace hctr::cuda {

/// Nodes of the graph that the stream is recorded into; none if it is not recorded, or if they are unknown.
std::optional<size_t> recorded_so_far(StreamRef) noexcept;
/// Starts a kernel of one block that does nothing.
void start_empty_kernel(Context&);

}  // namespace hctr::cuda
