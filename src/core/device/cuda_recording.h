// Plain functions that record work as several CUDA graphs. Only CUDA builds define (cuda_runtime_calls.cu) and call
// these functions.
#pragma once

#include "core/device/stream.h"

namespace hctr::cuda {

/// Call in the body of record_graph(). Ends the current graph, returns it, and begins the next graph. record_graph()
/// returns the last graph. An empty graph is returned as null.
void* cut_graph(StreamRef);
// Record an event and wait for it, across a border: between a recorded and an unrecorded stream, or between two graphs.
void record_crossing(void* event, StreamRef);
void make_wait_crossing(void* event, StreamRef);

}  // namespace hctr::cuda
