// What ranks say to each other.
#pragma once

#include "device/context.h"
#include "device/tensor.h"

namespace hctr {

enum class Reduce { sum, max };

/// One per rank. Calls are collective: every rank makes the same ones in the same order. Work goes to the context's
/// stream; tensors are dense, of one dtype and on the context's device. Errors: Error(comm), on every rank when one
/// fails.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// inout = the sum (or maximum) of all ranks' inout.
  virtual void all_reduce(Context&, Tensor inout, Reduce) = 0;
  /// out = this rank's part, of size() equal ones, of the reduced `in`.
  virtual void reduce_scatter(Context&, Tensor in, Tensor out, Reduce) = 0;
  /// out = all ranks' `in`, in the order of ranks.
  virtual void all_gather(Context&, Tensor in, Tensor out) = 0;
  /// Part r of `in`, of size() equal ones, goes to rank r and arrives there as part rank() of `out`.
  virtual void all_to_all(Context&, Tensor in, Tensor out) = 0;
  /// inout = root's inout.
  virtual void broadcast(Context&, Tensor inout, int root) = 0;
  /// Wakes the peers with the reason: they throw it from the call they are in or make next.
  virtual void abort(const Error&) noexcept = 0;
};

}  // namespace hctr
