// What ranks say to each other.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/context.h"
#include "device/tensor.h"

namespace hctr {

enum class Reduce { sum, max };

/// The elements of a dense tensor that go to each rank, or come from it: [begin, begin + count), fixed when a step is
/// planned. Parts to send may overlap: one part may go to every rank.
struct Parts {
  std::vector<int64_t> begin, count;

  void add(int64_t first, int64_t elements) {
    begin.push_back(first);
    count.push_back(elements);
  }
  /// One behind the other.
  static Parts equal(int ranks, int64_t elements_of_each) {
    Parts parts;
    for (int r = 0; r < ranks; ++r) parts.add(r * elements_of_each, elements_of_each);
    return parts;
  }
};

class Route;
struct RouteSpec;

/// One per rank. Calls are collective: every rank makes the same ones in the same order. Errors: Error(comm), on every
/// rank when one fails.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Of tensors: dense, of one dtype and on the context's device. Work goes to the context's stream, and all sizes are
  // fixed, so that a step can be recorded. Every rank gets equal bits of a sum.

  /// inout = the sum (or maximum) of all ranks' inout.
  virtual void all_reduce(Context&, Tensor inout, Reduce) = 0;
  /// out = this rank's part, of size() equal ones, of the reduced `in`.
  virtual void reduce_scatter(Context&, Tensor in, Tensor out, Reduce) = 0;
  /// out = all ranks' `in`, in the order of ranks.
  virtual void all_gather(Context&, Tensor in, Tensor out) = 0;
  /// Part r of `in` arrives at rank r as part rank() of its `out`. A part is as large at its receiver as at its sender,
  /// and may be empty. `in` and `out` do not overlap.
  virtual void all_to_all(Context&, Tensor in, const Parts& send, Tensor out, const Parts& receive) = 0;
  /// inout = root's inout.
  virtual void broadcast(Context&, Tensor inout, int root) = 0;

  // Of the host.

  /// Whether any rank says so. In steps: a rank that does not come in time is an error.
  virtual bool any(bool mine) = 0;

  // Between steps: these wait, as long as it takes a rank to come.

  /// On the root everyone's text, in the order of ranks; elsewhere nothing.
  virtual std::vector<std::string> gather(std::string_view mine, int root) = 0;
  /// The root's text.
  virtual std::string share(std::string_view text, int root) = 0;
  virtual void barrier() = 0;
  /// For an all_to_all that is made in every step (comm/route.h); straight from memory to memory where ranks can. Null
  /// on every rank where they cannot and the spec has no other way. The communicator and the memory outlive it.
  virtual std::unique_ptr<Route> make_route(const RouteSpec&) = 0;

  /// Wakes the peers with the reason: they throw it from the call they are in or make next.
  virtual void abort(const Error&) noexcept = 0;
};

}  // namespace hctr
