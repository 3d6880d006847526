// Resources of an operator: device, stream, threads, random numbers and the scalars of the step.
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
  bool tf32 = false;           ///< GPU: f32 GEMMs may round their operands to TF32
  bool tf32x3 = false;         ///< GPU: large f32 GEMMs as three TF32 GEMMs (ops/gemm/tf32_split.h)
  bool sync_launches = false;  ///< synchronize after every kernel, to find one that faults
  /// One of several ranks: work that other ranks wait for precedes the rest of the step, and that precedes preparation.
  bool several_ranks = false;
  RowMemoryLimits row_memory{};  ///< limits for the rows of tables
};

class Profiler;

/// The resources of one rank other than tensors: streams and library handles of its device, and its threads. Outlives
/// its Contexts.
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
  /// Lookup and sort of the next batch, concurrently with the compute stream.
  StreamRef prepare_stream() const { return adopted_ ? *adopted_ : prepare_.ref(); }
  /// Upload of the batch after that, and on several ranks the exchange of its keys.
  StreamRef key_stream() const { return keys_; }
  /// Exchanges between ranks, and on one rank sums and updates of tables, concurrently with the dense layers on the
  /// compute stream.
  StreamRef exchange_stream() const { return exchange_; }
  /// From now on the compute stream and the prepare stream are this stream of a caller. Its work follows all work
  /// queued on the previous one.
  void adopt_stream(void* handle);
  /// Measures the parts of the steps that are queued now (core/device/profiler.h); null: no profiler.
  Profiler* profiler() const { return profiler_; }
  void set_profiler(Profiler* profiler) { profiler_ = profiler; }
  /// For work that must not fail if the device has no more memory.
  HeldMemory& held_memory() { return held_memory_; }
  /// Handles of CUDA libraries; null on the CPU. The type is defined for .cu files only
  /// (core/device/cuda_libraries.cuh).
  struct CudaLibraries;
  CudaLibraries* cuda_libraries() { return libraries_.get(); }

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
  std::optional<StreamRef> adopted_;  // none: compute_ and prepare_
  Profiler* profiler_ = nullptr;
  std::unique_ptr<CudaLibraries, DestroyLibraries> libraries_;
};

class LaunchQueue;
class Lockstep;

/// A Runtime and one of its streams. Cheap to copy. `state` is in memory of the device.
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
  /// The queue that collects kernels instead of starting them (core/device/lockstep.h), or null.
  LaunchQueue* queue() const { return queue_; }
  Context with_queue(LaunchQueue* queue) const {
    Context context = *this;
    context.queue_ = queue;
    return context;
  }
  /// Collects launches whose results are read only after the backward pass, such as bias gradients, to start them as
  /// one; null: they start at once.
  Lockstep* last_launches() const { return last_launches_; }
  Context with_last_launches(Lockstep* launches) const {
    Context context = *this;
    context.last_launches_ = launches;
    return context;
  }
  /// Maximum multiprocessors for kernels that can be limited, because kernels of another stream run on the others; 0:
  /// all. Results do not depend on it.
  int multiprocessors() const { return multiprocessors_; }
  Context with_multiprocessors(int multiprocessors) const {
    Context context = *this;
    context.multiprocessors_ = multiprocessors;
    return context;
  }
  /// Whether rows of CPU GEMMs have the same bits in batches of any size (ops/gemm/ordered_product.h).
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
