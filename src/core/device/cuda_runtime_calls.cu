#include "core/device/cuda_runtime_calls.h"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "core/base/source_place.h"
#include "core/device/cuda_check.cuh"
#include "core/device/cuda_libraries.cuh"
#include "core/device/cuda_recording.h"
#include "core/device/driver_function.cuh"
#include "core/device/graph_memsets.h"

namespace hctr {
namespace {

/// A capture holds this lock shared. A call that synchronizes the device holds this lock exclusively, because such a
/// call invalidates the captures of all threads (CUDA C++ Programming Guide, "Prohibited and Unhandled Operations").
/// Both can coincide when a service unloads one version of a model while it records another.
std::shared_mutex captures;

}  // namespace

Runtime::CudaLibraries::CudaLibraries(int index)
    : blas_workspace({DeviceKind::cuda, index}, size_t{32} << 20),
      tile_counter({DeviceKind::cuda, index}, sizeof(uint32_t)),
      piece_flags({DeviceKind::cuda, index}, 2 * kMostPieces * sizeof(uint32_t)) {
  HCTR_CHECK(cublasLtCreate(&blas));
}
Runtime::CudaLibraries::~CudaLibraries() {
  const std::unique_lock alone(captures);  // cublasLtDestroy() synchronizes the device
  cublasLtDestroy(blas);
}

namespace cuda {
namespace {

/// Sets the current device of this thread. Called by every function that depends on the current device.
void use(int index) { HCTR_CHECK(cudaSetDevice(index)); }

std::string location_of(const char* call, const char* file, int line) {
  return cat(call, " at ", source_place(file, line));
}

}  // namespace

void fail(cudaError_t status, const char* call, const char* file, int line) {
  (void)cudaGetLastError();  // Clear a non-sticky error; the next check would report it again.
  std::string hint;
  if (status == cudaErrorIllegalAddress || status == cudaErrorLaunchFailure)
    hint =
        "; a kernel started earlier failed: run with --sync-launches and \"cuda_graph\": false to find the "
        "kernel";
  throw Error(Kind::device, cat("CUDA: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ") in ",
                                location_of(call, file, line), hint));
}
void fail(cublasStatus_t status, const char* call, const char* file, int line) {
  throw Error(Kind::device, cat("cuBLAS: ", cublasLtGetStatusString(status), " in ", location_of(call, file, line)));
}
void fail(CUresult status, const char* call, const char* file, int line) {
  throw Error(Kind::device,
              cat("CUDA driver: error ", static_cast<int>(status),
                  status == CUDA_ERROR_OUT_OF_MEMORY ? " (out of memory)" : "", " in ", location_of(call, file, line)));
}

GpuSearch find_gpus() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return {count, ""};
  (void)cudaGetLastError();
  if (status == cudaErrorInsufficientDriver)
    return {0, "no NVIDIA driver, or a driver that is too old for this program's CUDA version"};
  if (status == cudaErrorNoDevice || count == 0)
    return {0, "the CUDA driver found no GPU (is CUDA_VISIBLE_DEVICES set?)"};
  return {0, cat("the CUDA driver reports: ", cudaGetErrorString(status))};
}

int current_device() noexcept {
  int index = -1;
  if (cudaGetDevice(&index) == cudaSuccess) return index;
  (void)cudaGetLastError();
  return -1;
}
void make_current(int index) { use(index); }
void restore_current(int index) noexcept {
  if (index < 0 || index == current_device()) return;
  unsigned flags = 0;
  int active = 0;
  try {
    static const auto state = driver<decltype(cuDevicePrimaryCtxGetState)>("cuDevicePrimaryCtxGetState");
    if (state(index, &flags, &active) == CUDA_SUCCESS && active != 0) cudaSetDevice(index);
  } catch (...) {  // the driver does not have this function
  }
}

std::string describe(int index) {
  const int count = find_gpus().count;
  if (index < 0 || index >= count)
    throw Error(Kind::device,
                cat("there is no GPU ", index, ": this machine has ", count, count == 1 ? " (number 0)" : ""));
  cudaDeviceProp prop{};
  HCTR_CHECK(cudaGetDeviceProperties(&prop, index));
  if (prop.major * 10 + prop.minor < 75)
    throw Error(Kind::device, cat("GPU ", index, " (", prop.name, ") has compute capability ", prop.major, ".",
                                  prop.minor, "; 7.5 or newer is needed"));
  char memory[32];
  std::snprintf(memory, sizeof memory, "%.1f GiB", static_cast<double>(prop.totalGlobalMem) / (1 << 30));
  return cat(prop.name, ", compute capability ", prop.major, ".", prop.minor, ", ", memory);
}

int64_t free_memory(int index) {
  use(index);
  size_t free_bytes = 0, total = 0;
  HCTR_CHECK(cudaMemGetInfo(&free_bytes, &total));
  return static_cast<int64_t>(free_bytes);
}

int64_t used_memory(int index) {
  use(index);
  size_t free_bytes = 0, total = 0;
  HCTR_CHECK(cudaMemGetInfo(&free_bytes, &total));
  return static_cast<int64_t>(total - free_bytes);
}

namespace {

struct GpuConstants {
  int multiprocessors = 0, compute_capability = 0, most_shared_bytes = 0;
  bool operator==(const GpuConstants&) const = default;
};

int attribute_of(int index, cudaDeviceAttr attribute) {
  int value = 0;
  HCTR_CHECK(cudaDeviceGetAttribute(&value, attribute, index));
  return value;
}

/// The constants of the current device. The first call queries all devices.
const GpuConstants& constants_of_current_device() {
  static const std::vector<GpuConstants> all = [] {
    int count = 0;
    HCTR_CHECK(cudaGetDeviceCount(&count));
    std::vector<GpuConstants> gpus;
    for (int i = 0; i < count; ++i)
      gpus.push_back(
          {attribute_of(i, cudaDevAttrMultiProcessorCount),
           10 * attribute_of(i, cudaDevAttrComputeCapabilityMajor) + attribute_of(i, cudaDevAttrComputeCapabilityMinor),
           attribute_of(i, cudaDevAttrMaxSharedMemoryPerBlockOptin)});
    return gpus;
  }();
  // Each launch asks for these constants several times. If all GPUs are equal, as on most hosts, do not ask the driver
  // which GPU is current.
  static const bool alike = !all.empty() && std::count(all.begin(), all.end(), all.front()) == std::ssize(all);
  if (alike) return all.front();
  int index = 0;
  HCTR_CHECK(cudaGetDevice(&index));
  return all.at(static_cast<size_t>(index));
}

__global__ void any_kernel() {}

}  // namespace

int multiprocessors() { return constants_of_current_device().multiprocessors; }
int compute_capability() { return constants_of_current_device().compute_capability; }
size_t most_shared_bytes() { return static_cast<size_t>(constants_of_current_device().most_shared_bytes); }

bool can_start_early(int index) {
  use(index);
  cudaFuncAttributes compiled{};
  HCTR_CHECK(cudaFuncGetAttributes(&compiled, any_kernel));
  return compiled.ptxVersion >= 90 && compiled.binaryVersion >= 90;
}

void* allocate(int index, size_t bytes) {
  use(index);
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw Error(Kind::device,
                cat("out of memory on GPU ", index, ": ", bytes, " bytes requested, ", free_memory(index), " free"));
  }
  HCTR_CHECK(status);
  HCTR_CHECK(cudaMemset(data, 0, bytes));
  // wait for the default stream, because our non-blocking streams do not synchronize with it
  HCTR_CHECK(cudaStreamSynchronize(nullptr));
  return data;
}
void free(int index, void* data) noexcept {
  cudaSetDevice(index);
  cudaFree(data);
}
std::byte* allocation_begin(const void* inside) {
  static const auto range = driver<decltype(cuMemGetAddressRange)>("cuMemGetAddressRange");
  CUdeviceptr begin = 0;
  HCTR_CHECK(range(&begin, nullptr, reinterpret_cast<CUdeviceptr>(inside)));
  return reinterpret_cast<std::byte*>(begin);
}

void* allocate_pinned(size_t bytes) {
  void* data = nullptr;
  HCTR_CHECK(cudaHostAlloc(&data, bytes, cudaHostAllocPortable));
  std::memset(data, 0, bytes);
  return data;
}
bool is_page_locked(const void* at) {
  cudaPointerAttributes about{};
  HCTR_CHECK(cudaPointerGetAttributes(&about, at));
  return about.type == cudaMemoryTypeHost;
}
void free_pinned(void* data) noexcept { cudaFreeHost(data); }

void* create_stream(int index, StreamPriority priority) {
  use(index);
  int lowest = 0, highest = 0;  // a lower number is a higher priority
  HCTR_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  cudaStream_t stream = nullptr;
  HCTR_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                          std::max(lowest - static_cast<int>(priority), highest)));
  return stream;
}
void destroy_stream(void* stream) noexcept { cudaStreamDestroy(static_cast<cudaStream_t>(stream)); }
void synchronize(StreamRef stream) { HCTR_CHECK(cudaStreamSynchronize(stream_of(stream))); }

bool is_capturing(StreamRef stream) {
  if (!stream.handle) return false;  // the legacy stream is never captured, and must not be queried during a capture
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  HCTR_CHECK(cudaStreamIsCapturing(stream_of(stream), &status));
  return status != cudaStreamCaptureStatusNone;
}

namespace {

bool is_recorded(StreamRef stream) noexcept {
  if (!stream.handle) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream_of(stream), &status);  // ignore an error: the next CUDA call reports it
  return status != cudaStreamCaptureStatusNone;
}

/// Records an event on any stream. On a recorded stream the event is recorded each time the graph runs.
cudaError_t record_in_any(void* event, StreamRef stream) noexcept {
  return cudaEventRecordWithFlags(static_cast<cudaEvent_t>(event), stream_of(stream),
                                  is_recorded(stream) ? cudaEventRecordExternal : cudaEventRecordDefault);
}

}  // namespace

void* create_event(int index) {
  use(index);
  cudaEvent_t event = nullptr;
  HCTR_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}
void* create_timing_event(int index) {
  use(index);
  cudaEvent_t event = nullptr;
  HCTR_CHECK(cudaEventCreate(&event));
  return event;
}
void mark(void* timing_event, StreamRef stream) noexcept { record_in_any(timing_event, stream); }
void destroy_event(void* event) noexcept { cudaEventDestroy(static_cast<cudaEvent_t>(event)); }
void record(void* event, StreamRef stream) {
  HCTR_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(event), stream_of(stream)));
}
void make_wait(void* event, StreamRef stream) {
  HCTR_CHECK(cudaStreamWaitEvent(stream_of(stream), static_cast<cudaEvent_t>(event)));
}
void synchronize_event(void* event) { HCTR_CHECK(cudaEventSynchronize(static_cast<cudaEvent_t>(event))); }

std::optional<double> seconds_between(void* first, void* second) {
  float milliseconds = 0;
  const cudaError_t status =
      cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(first), static_cast<cudaEvent_t>(second));
  if (status == cudaErrorInvalidResourceHandle) {  // one of the events has never been recorded
    (void)cudaGetLastError();
    return std::nullopt;
  }
  HCTR_CHECK(status);
  return static_cast<double>(milliseconds) * 1e-3;
}

void push_range(const char* name) { nvtxRangePushA(name); }
void pop_range() { nvtxRangePop(); }

void copy(StreamRef stream, void* to, const void* from, size_t bytes) {
  HCTR_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)));
}
void copy_rows(StreamRef stream, void* to, size_t to_stride, const void* from, size_t from_stride, size_t bytes,
               int64_t rows) {
  HCTR_CHECK(cudaMemcpy2DAsync(to, to_stride, from, from_stride, bytes, static_cast<size_t>(rows), cudaMemcpyDefault,
                               stream_of(stream)));
}
void zero(StreamRef stream, void* at, size_t bytes) { HCTR_CHECK(cudaMemsetAsync(at, 0, bytes, stream_of(stream))); }

namespace {

void begin_graph(StreamRef stream) {
  HCTR_CHECK(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal));
}

void* end_graph(StreamRef stream) {
  cudaGraph_t graph = nullptr;
  HCTR_CHECK(cudaStreamEndCapture(stream_of(stream), &graph));
  size_t nodes = 0;
  cudaGraphExec_t executable = nullptr;
  const std::unique_ptr<CUgraph_st, decltype(&cudaGraphDestroy)> owner(graph, cudaGraphDestroy);
  HCTR_CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  if (nodes == 0) return nullptr;
  set_memory_by_kernels(graph);
  // If the priority is 0, all streams have the same priority. Otherwise each kernel of the graph keeps the priority of
  // the stream that recorded it.
  int priority = 0;
  HCTR_CHECK(cudaStreamGetPriority(stream_of(stream), &priority));
  HCTR_CHECK(cudaGraphInstantiate(&executable, graph, priority == 0 ? 0 : cudaGraphInstantiateFlagUseNodePriority));
  return executable;
}

}  // namespace

void* record_graph(StreamRef stream, const std::function<void()>& body) {
  use(stream.device.index);
  const std::shared_lock capturing(captures);
  begin_graph(stream);
  try {
    body();
  } catch (...) {
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream_of(stream), &graph);  // ignore this status, because the error of body() is reported
    if (graph) cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    throw;
  }
  return end_graph(stream);
}
void* cut_graph(StreamRef stream) {
  void* const graph = end_graph(stream);
  begin_graph(stream);
  return graph;
}
void record_crossing(void* event, StreamRef stream) { HCTR_CHECK(record_in_any(event, stream)); }
void make_wait_crossing(void* event, StreamRef stream) {
  HCTR_CHECK(cudaStreamWaitEvent(stream_of(stream), static_cast<cudaEvent_t>(event),
                                 is_recorded(stream) ? cudaEventWaitExternal : cudaEventWaitDefault));
}
void launch_graph(void* graph, StreamRef stream) {
  HCTR_CHECK(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(stream)));
}
void destroy_graph(void* graph) noexcept { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); }

Runtime::CudaLibraries* create_libraries(int index) {
  use(index);
  return new Runtime::CudaLibraries(index);
}
void destroy_libraries(Runtime::CudaLibraries* libraries) noexcept { delete libraries; }

}  // namespace cuda
}  // namespace hctr
