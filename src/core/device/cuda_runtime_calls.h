// The CUDA part of src/core/device, as plain functions. Only CUDA builds define (cuda_runtime_calls.cu) and call these
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/device/context.h"
#include "core/device/device.h"
#include "core/device/stream.h"

namespace hctr::cuda {

GpuSearch find_gpus();
/// The current device of the calling thread; -1 without a GPU or driver.
int current_device() noexcept;
void make_current(int index);
/// Makes the device current if it has a primary context.
void restore_current(int index) noexcept;
std::string describe(int index);
int64_t free_memory(int index);
int64_t used_memory(int index);
// Properties of the current device, queried once per process.
int multiprocessors();
int compute_capability();    // for example, 90 for compute capability 9.0
size_t most_shared_bytes();  // dynamic shared memory of a block
/// Runtime::can_start_early() of a device.
bool can_start_early(int index);

void* allocate(int index, size_t bytes);  // zeroed
void free(int index, void* data) noexcept;
std::byte* allocation_begin(const void* inside);
void* allocate_pinned(size_t bytes);
bool is_page_locked(const void* at);
void free_pinned(void* data) noexcept;

void* create_stream(int index, StreamPriority);
void destroy_stream(void* stream) noexcept;
void synchronize(StreamRef);
void* create_event(int index);
void* create_timing_event(int index);
void mark(void* timing_event, StreamRef) noexcept;  // does not report errors, because the next call reports them
void destroy_event(void* event) noexcept;
void record(void* event, StreamRef);
void make_wait(void* event, StreamRef);
void synchronize_event(void* event);
/// Time between two events; nullopt if one of them has never been recorded.
std::optional<double> seconds_between(void* first, void* second);

/// Opens an NVTX range of the calling thread on a profiler's time line.
void push_range(const char* name);
void pop_range();

/// Whether the stream is being captured into a graph.
bool is_capturing(StreamRef);
void copy(StreamRef, void* to, const void* from, size_t bytes);
void copy_rows(StreamRef, void* to, size_t to_stride, const void* from, size_t from_stride, size_t bytes, int64_t rows);
void zero(StreamRef, void* at, size_t bytes);

void* record_graph(StreamRef, const std::function<void()>& body);
void launch_graph(void* graph, StreamRef);
void destroy_graph(void* graph) noexcept;

Runtime::CudaLibraries* create_libraries(int index);
void destroy_libraries(Runtime::CudaLibraries*) noexcept;

}  // namespace hctr::cuda
