// Recordings in pieces, as plain functions. Only CUDA builds define (cuda_runtime_calls.cu) and call them.
#pragma once

#include "core/device/stream.h"

namespace hctr::cuda {

/// In the body of record_graph: ends the graph that is recorded, and begins the one that record_graph returns. Both are
/// null if nothing was recorded.
void* cut_graph(StreamRef);
// The two sides of an event between a recorded stream and an unrecorded one, or one of another graph.
void record_crossing(void* event, StreamRef);
void make_wait_crossing(void* event, StreamRef);

}  // namespace hctr::cuda
