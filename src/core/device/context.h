// Resources that operators use: device, stream, threads, random numbers and the step state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/step_state.h"
#include "core/base/thread_pool.h"
#include "core/device/device.h"
#include "core/device/held_memory.h"
#include "core/device/row_budget.h"
#include "core/device/stream.h"

namespace hctr {

struct RuntimeOptions {
  int threads = 1;             ///< CPU threads for operators of this rank
  uint64_t seed = 0;           ///< seed of all random numbers
  bool tf32 = false;           ///< GPU: f32 GEMMs may round operands to TF32
  bool tf32x3 = false;         ///< GPU: large f32 GEMMs run as three TF32 GEMMs (ops/gemm/tf32_split.h)
  bool sync_launches = false;  ///< synchronize after every kernel, to locate a faulting kernel
  /// Whether the job has several ranks. If so, the exchange between ranks has the highest stream priority, compute the
  /// next, and preparation the lowest.
  bool several_ranks = false;
  RowMemoryLimits row_memory{};  ///< limits for table rows
};

class Profiler;

/// The resources of one rank except tensors: streams, library handles and threads. Must outlive its Contexts.
class Runtime {
 public:
  Runtime(Device, RuntimeOptions);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Device device() const { return device_; }
  const RuntimeOptions& options() const { return options_; }
  ThreadPool& threads() { return threads_; }
  RowMemory& row_memory() { return row_memory_; }
  const RowMemory& row_memory() const { return row_memory_; }
  StreamRef compute_stream() const { return adopted_ ? *adopted_ : compute_.ref(); }  ///< forward, backward, update
  /// The stream that looks up and sorts the keys of the next batch, concurrently with the compute stream.
  StreamRef prepare_stream() const { return adopted_ ? *adopted_ : prepare_.ref(); }
  /// The runtime's own prepare stream, also after adopt_stream(). Its work runs concurrently with the adopted stream.
  StreamRef own_prepare_stream() const { return prepare_; }
  /// The stream that uploads the batch after the next one. On several ranks it also exchanges the keys of that batch.
  StreamRef key_stream() const { return keys_; }
  /// On several ranks, the stream of exchanges between ranks. On one rank, the stream on which tables sum gradients and
  /// update rows. This work overlaps the dense layers on the compute stream.
  StreamRef exchange_stream() const { return exchange_; }
  /// Replaces the compute stream and the prepare stream by a stream of the library's caller. Work on the new stream
  /// starts after the work queued on the previous compute stream, except if only one of the two streams is being
  /// captured.
  void adopt_stream(void* handle);
  /// The profiler of the steps that are being queued (core/device/profiler.h); null: none.
  Profiler* profiler() const { return profiler_; }
  void set_profiler(Profiler* profiler) { profiler_ = profiler; }
  /// Reserved memory for work that must not fail when the device is out of memory.
  HeldMemory& held_memory() { return held_memory_; }
  /// Handles of CUDA libraries; null on the CPU. The type is defined only for .cu files
  /// (core/device/cuda_libraries.cuh).
  struct CudaLibraries;
  CudaLibraries* cuda_libraries() { return libraries_.get(); }
  /// Whether a kernel may start before the previous kernel ends. Requires that the kernels were compiled for
  /// programmatic dependent launch (start_early() in core/device/launch.cuh), and that the device supports that launch.
  bool can_start_early() const { return can_start_early_; }

 private:
  struct DestroyLibraries {
    void operator()(CudaLibraries*) const;
  };
  Device device_;
  RuntimeOptions options_;
  ThreadPool threads_;
  RowMemory row_memory_;
  HeldMemory held_memory_;
  Stream compute_, prepare_, keys_, exchange_;
  std::optional<StreamRef> adopted_;  // nullopt: compute_ and prepare_ are used
  Profiler* profiler_ = nullptr;
  std::unique_ptr<CudaLibraries, DestroyLibraries> libraries_;
  bool can_start_early_ = false;
};

class LaunchQueue;
class Lockstep;

/// A Runtime and one of its streams. Cheap to copy. state() points to device memory.
class Context {
 public:
  Context(Runtime& runtime, StreamRef stream, const StepState* state = nullptr)
      : runtime_(&runtime), stream_(stream), state_(state) {}

  Runtime& runtime() { return *runtime_; }
  Device device() const { return stream_.device; }
  StreamRef stream() const { return stream_; }
  ThreadPool& threads() { return runtime_->threads(); }
  uint64_t seed() const { return runtime_->options().seed; }
  const StepState* state() const { return state_; }
  /// The queue that collects kernel launches instead of starting them (core/device/lockstep.h), or null.
  LaunchQueue* queue() const { return queue_; }
  Context with_queue(LaunchQueue* queue) const {
    Context context = *this;
    context.queue_ = queue;
    return context;
  }
  /// Merges launches whose results are read only after the backward pass, such as bias gradients, into one launch.
  /// Null: such kernels start immediately.
  Lockstep* last_launches() const { return last_launches_; }
  Context with_last_launches(Lockstep* launches) const {
    Context context = *this;
    context.last_launches_ = launches;
    return context;
  }
  /// Limit on multiprocessors for kernels that support a limit, while kernels of another stream use the remaining
  /// multiprocessors. 0: no limit. Results do not depend on the limit.
  int multiprocessors() const { return multiprocessors_; }
  Context with_multiprocessors(int multiprocessors) const {
    Context context = *this;
    context.multiprocessors_ = multiprocessors;
    return context;
  }
  /// Whether CPU GEMMs compute bitwise equal rows for any batch size (ops/gemm/ordered_product.h).
  bool ordered_products() const { return ordered_products_; }
  Context with_ordered_products() const {
    Context context = *this;
    context.ordered_products_ = true;
    return context;
  }

 private:
  Runtime* runtime_;
  StreamRef stream_;
  const StepState* state_;
  LaunchQueue* queue_ = nullptr;
  Lockstep* last_launches_ = nullptr;
  int multiprocessors_ = 0;
  bool ordered_products_ = false;
};

}  // namespace hctr
