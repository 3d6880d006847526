// A way from every rank to every rank that is gone again and again, into memory that stays where it is.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "comm/communicator.h"

namespace hctr {

struct RouteSpec {
  Tensor into;                   // of this rank: what comes arrives there, any row stride
  Parts receive;                 // where each rank's part begins, in elements from the first of `into`
  std::optional<Tensor> from{};  // where parts wait to be sent, if ranks cannot write to each other's memory
  Parts send{};                  // as in Communicator::all_to_all, as `receive` then is
};

/// One for every rank, made by all at once (Communicator::make_route). Calls are collective, as those of the
/// communicator; streams may change, but each call starts when the one before is done. A turn: open(), writing the
/// parts, close(), and finish() before what came is read.
class Route {
 public:
  virtual ~Route() = default;
  /// Where the part for a rank begins: in that rank's memory, or where it waits to be sent.
  virtual std::byte* place(int rank) const = 0;
  /// Whether parts are written straight into the memory of their ranks.
  virtual bool direct() const = 0;
  /// On the device, where it is kept: not 0 once ranks have given each other up, when nobody may write any more.
  virtual const uint32_t* closed() const { return nullptr; }
  /// From here on parts may be written: every rank has come here, and is done with what it got last turn.
  virtual void open(Context&) = 0;
  /// All parts are written.
  virtual void close(Context&) = 0;
  /// All parts for this rank have arrived.
  virtual void finish(Context&) = 0;
};

/// The route of any communicator: everything goes, by its all_to_all.
class WholeRoute : public Route {
 public:
  /// Needs spec.from.
  WholeRoute(Communicator& comm, RouteSpec spec) : comm_(comm), spec_(std::move(spec)) {}
  std::byte* place(int rank) const override {
    return spec_.from->bytes() +
           static_cast<size_t>(spec_.send.begin.at(static_cast<size_t>(rank))) * size_of(spec_.from->dtype());
  }
  bool direct() const override { return false; }
  void open(Context&) override {}
  void close(Context& ctx) override { comm_.all_to_all(ctx, *spec_.from, spec_.send, spec_.into, spec_.receive); }
  void finish(Context&) override {}

 private:
  Communicator& comm_;
  RouteSpec spec_;
};

/// That one, or null where the spec knows no memory for parts that wait.
inline std::unique_ptr<Route> make_whole_route(Communicator& comm, const RouteSpec& spec) {
  return spec.from ? std::make_unique<WholeRoute>(comm, spec) : nullptr;
}

}  // namespace hctr
