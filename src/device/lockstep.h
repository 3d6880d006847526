// The same done for several things that do not touch each other, such as the tables of a model, as if for one.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "device/context.h"

namespace hctr {

/// Kernels that were given for one of them and not yet to the device, in their order.
class LaunchQueue {
 public:
  struct Launch;
  /// Starts the work of several launches in one.
  using Together = void (*)(Context&, std::span<const Launch* const>);
  struct Launch {
    std::function<void(Context&)> alone;  ///< for work that is never one with others'
    Together together = nullptr;          ///< for work that is one with that of the same function
    const char* name = "";
    int64_t blocks = 0;
    std::vector<std::byte> job;  ///< what `together` reads
  };

  void add(Launch launch) { launches_.push_back(std::move(launch)); }

 private:
  friend class Lockstep;
  std::deque<Launch> launches_;
};

/// Takes what is given to the contexts of next() and hands it on in run(): of each context in its order, and kernels of
/// one kind that are the next of several contexts as one launch. Through these contexts only operators that start
/// kernels by device/launch.cuh may be called. Where work is done at once, on the CPU, there is nothing to take.
class Lockstep {
 public:
  explicit Lockstep(const Context& ctx) : Lockstep(ctx, ctx.device().is_cuda()) {}
  Lockstep(const Context& ctx, bool takes) : ctx_(ctx), takes_(takes) {}
  /// For the next of the things. Valid as long as this.
  Context next();
  void run();

 private:
  Context ctx_;
  bool takes_;
  std::deque<LaunchQueue> queues_;
};

}  // namespace hctr
