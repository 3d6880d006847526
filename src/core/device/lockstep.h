// Runs the same operators on several independent things, such as the tables of a model, with one kernel launch for all.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/device/tensor.h"

namespace hctr {

/// The launches of one context that have not been started yet, in order.
class LaunchQueue {
 public:
  struct Launch;
  /// Starts several launches as one.
  using StartMerged = void (*)(Context&, std::span<const Launch* const>);
  struct Launch {
    std::function<void(Context&)> start_single;  ///< set for a launch that is never merged with others
    StartMerged start_merged = nullptr;          ///< set for others; launches with the same function are merged
    const char* name = "";
    int64_t blocks = 0;
    std::vector<std::byte> arguments;  ///< read by start_merged
  };

  void add(Launch launch) { launches_.push_back(std::move(launch)); }

 private:
  friend class Lockstep;
  std::deque<Launch> launches_;
};

/// Collects the launches of several contexts, one for each thing, and starts them in run(). Each context keeps its
/// order. Launches that can be merged and are next in several contexts become one: a lockstep launch. Only operators
/// that start kernels by core/device/launch.cuh may be called with these contexts. On the CPU operators run
/// immediately, and run() does nothing.
class Lockstep {
 public:
  /// The result of a launch that may start after all others. It is finite if its operands are f16 and finite: sums in
  /// f32 of products of f16 do not overflow. `unsearched`: the operands that no other operator checks for overflow.
  struct LateResult {
    Tensor result;
    DType operands;
    std::vector<Tensor> unsearched;
  };

  explicit Lockstep(const Context& ctx) : Lockstep(ctx, ctx.device().is_cuda()) {}
  Lockstep(const Context& ctx, bool collect) : ctx_(ctx), collect_(collect) {}
  /// The context for one more thing. Valid as long as this object.
  Context next();
  /// The same for a launch that may be started after those of next(), by run_late().
  Context next_late(LateResult);
  /// Starts all, the late ones last.
  void run();
  /// Starts the launches of next(), or those of next_late(), on the stream of a context.
  void run_first(Context&);
  void run_late(Context&);
  /// Callers of next_late(), until their launch starts.
  std::span<const LateResult> late() const { return late_; }
  /// Whether launches wait for run().
  bool collects() const { return collect_; }

 private:
  static void run(Context&, std::deque<LaunchQueue>&);
  Context ctx_;
  bool collect_;
  std::deque<LaunchQueue> queues_, late_queues_;
  std::vector<LateResult> late_;
};

}  // namespace hctr
