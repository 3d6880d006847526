// Runs the same operators on several independent objects, such as the tables of a model, with merged kernel launches.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/device/tensor.h"

namespace hctr {

/// The pending launches of one context, in order.
class LaunchQueue {
 public:
  struct Launch;
  /// Starts several launches as one kernel.
  using StartMerged = void (*)(Context&, std::span<const Launch* const>);
  struct Launch {
    std::function<void(Context&)> start_single;  ///< set for a launch that is never merged
    /// set for all other launches; launches with equal start_merged can be merged
    StartMerged start_merged = nullptr;
    const char* name = "";
    int64_t blocks = 0;
    std::span<const std::byte> arguments;  ///< kernel arguments that start_merged reads; keep() stores them
  };

  explicit LaunchQueue(bool several = false) : several_(several) {}
  void add(Launch launch) { launches_.push_back(std::move(launch)); }
  /// Copies the arguments of a launch to memory that lives as long as this queue. Few allocations serve all launches.
  std::span<const std::byte> keep(std::span<const std::byte> arguments);
  /// Whether the same launches of other contexts are expected, so that operators should prefer launches that can be
  /// merged.
  bool several() const { return several_; }

  // The launches that have not started.
  bool empty() const { return started_ == launches_.size(); }
  size_t left() const { return launches_.size() - started_; }
  const Launch& next() const { return launches_[started_]; }
  /// Counts next() as started.
  void pop() { ++started_; }

 private:
  static constexpr size_t kBlockBytes = 4096;
  bool several_;
  std::vector<Launch> launches_;
  size_t started_ = 0;  // the launches before this index have started
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::span<std::byte> free_;  // unused part of the last block
};

/// Collects the launches of several contexts, one context per object, and starts them in run(). The launches of one
/// context keep their order. If the next launches of several contexts can be merged, run() starts them as one lockstep
/// launch. Use these contexts only with operators that launch kernels through core/device/launch.cuh. On the CPU
/// operators run immediately, and run() does nothing.
class Lockstep {
 public:
  /// The result of a launch that may start after all other launches. An overflow check may search the launch's f16
  /// operands instead of its result, because f32 sums of f16 products do not overflow: if the operands are finite, the
  /// result is finite. `unsearched`: the operands that no other operator checks for overflow.
  struct LateResult {
    Tensor result;
    DType operands;
    std::vector<Tensor> unsearched;
  };

  explicit Lockstep(const Context& ctx) : Lockstep(ctx, ctx.device().is_cuda()) {}
  Lockstep(const Context& ctx, bool collect) : ctx_(ctx), collect_(collect) {}
  /// Returns the context for one more object. The context is valid as long as this Lockstep. `several`: whether this
  /// Lockstep has other objects too.
  Context next(bool several = false);
  /// Returns a context whose launches run_late() starts, after the launches of next().
  Context next_late(LateResult);
  /// Starts all launches, the late ones last.
  void run();
  /// Start the launches of next() (run_first) or of next_late() (run_late) on the stream of a context.
  void run_first(Context&);
  void run_late(Context&);
  /// The results passed to next_late() whose launches have not started.
  std::span<const LateResult> late() const { return late_; }
  /// Whether launches are collected until run().
  bool collects() const { return collect_; }

 private:
  static void run(Context&, std::deque<LaunchQueue>&);
  Context ctx_;
  bool collect_;
  std::deque<LaunchQueue> queues_, late_queues_;
  std::vector<LateResult> late_;
};

}  // namespace hctr
