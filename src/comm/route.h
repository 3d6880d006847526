// An all_to_all that is made again and again, into memory that stays where it is.
#pragma once

#include "comm/communicator.h"
#include "device/buffer.h"

namespace hctr {

/// What goes over a route. `vector`: elements that are looked at together; every part is a number of whole ones.
struct RouteSpec {
  DType dtype = DType::f32;
  Parts send, receive;  // of what is sent, and of what arrives, as in Communicator::all_to_all
  int64_t arriving = 0, vector = 1;
  std::vector<int64_t> present{};  // where the bytes of each part sent begin in `present`; empty: they follow each other in the order of ranks
};

/// One for every rank, made by all at once (Communicator::make_route). Calls are collective, as those of the communicator; streams may change, but each call
/// starts when the one before is done.
class Route {
 public:
  virtual ~Route() = default;
  /// [arriving] what has come. The owner may use this memory as it likes from finish() to the next start(), also as what it sends over another route.
  virtual Tensor arrived() const = 0;
  /// Part r of `in` is on its way to rank r. `present`: a byte for each vector of the parts sent; nobody looks at what arrives of a vector whose
  /// byte is 0, so it may come or not.
  virtual void start(Context&, Tensor in, const uint8_t* present) = 0;
  /// What was started has arrived here.
  virtual void finish(Context&) = 0;
  void send(Context& ctx, Tensor in, const uint8_t* present) {
    start(ctx, in, present);
    finish(ctx);
  }
};

/// The route of any communicator: everything goes, by its all_to_all.
class WholeRoute : public Route {
 public:
  WholeRoute(Communicator& comm, Device device, RouteSpec spec)
      : comm_(comm), spec_(std::move(spec)), memory_(device, static_cast<size_t>(spec_.arriving) * size_of(spec_.dtype)) {}
  Tensor arrived() const override { return Tensor(memory_.data(), TensorSpec(spec_.dtype, {spec_.arriving}), memory_.device()); }
  void start(Context& ctx, Tensor in, const uint8_t*) override { comm_.all_to_all(ctx, in, spec_.send, arrived(), spec_.receive); }
  void finish(Context&) override {}

 private:
  Communicator& comm_;
  RouteSpec spec_;
  Buffer memory_;
};

}  // namespace hctr
