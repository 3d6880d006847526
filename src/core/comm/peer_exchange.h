// An all-to-all exchange that is repeated in every step and receives into a buffer with a fixed address.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "core/comm/arguments.h"
#include "core/comm/communicator.h"

namespace hctr {

struct PeerExchangeSpec {
  Tensor receive_buffer;  // this rank's receive buffer; its rows may have any stride
  // where receive_buffer has the data of each rank; `begin` counts elements from the start of the buffer
  RankRanges receive;
  std::optional<Tensor> send_buffer{};  // staging buffer, needed if ranks cannot write to each other's memory
  // ranges of send_buffer; if it is set, Communicator::all_to_all() gets `send` and `receive`
  RankRanges send{};
};

/// The exchange of one rank, created collectively by Communicator::make_peer_exchange. A round has five steps:
/// begin_write(), write the data for every rank to destination(rank), end_write(), wait(), read the receive buffer.
/// Calls are collective, like those of the communicator. Calls may use different streams, but a call must start after
/// the previous call is complete. If direct(), the calls only launch kernels (core/device/launch.cuh). A Lockstep then
/// merges the same call on several exchanges into one kernel launch. In this case every rank must make the same calls,
/// without other blocking collectives in between.
class PeerExchange {
 public:
  virtual ~PeerExchange() = default;
  /// Address of the data for `rank`: in the receive buffer of `rank` if direct(), otherwise in this rank's send buffer.
  virtual std::byte* destination(int rank) const = 0;
  /// Whether ranks write directly to each other's memory.
  virtual bool direct() const = 0;
  /// A device flag, or null. Once the flag is nonzero, the exchange is aborted and kernels must not write to
  /// destinations.
  virtual const uint32_t* aborted() const { return nullptr; }
  /// Blocks the caller or the stream until every rank has called begin_write(). Every rank has then read the data of
  /// the previous round, so all destinations may be overwritten.
  virtual void begin_write(Context&) = 0;
  /// Signals that this rank has written all its data.
  virtual void end_write(Context&) = 0;
  /// Waits until the data of all ranks is in the receive buffer.
  virtual void wait(Context&) = 0;
  /// Calls end_write() and wait() together.
  virtual void end_write_and_wait(Context& ctx) {
    end_write(ctx);
    wait(ctx);
  }
};

/// An exchange for any communicator: end_write() sends the send buffer by all_to_all().
class AllToAllExchange : public PeerExchange {
 public:
  /// `spec.send_buffer` must be set.
  AllToAllExchange(Communicator& comm, PeerExchangeSpec spec) : comm_(comm), spec_(std::move(spec)) {}
  std::byte* destination(int rank) const override {
    return element(*spec_.send_buffer, spec_.send.begin.at(static_cast<size_t>(rank)));
  }
  bool direct() const override { return false; }
  void begin_write(Context&) override {}
  void end_write(Context& ctx) override {
    comm_.all_to_all(ctx, *spec_.send_buffer, spec_.send, spec_.receive_buffer, spec_.receive);
  }
  void wait(Context&) override {}

 private:
  Communicator& comm_;
  PeerExchangeSpec spec_;
};

/// Returns null if the spec has no send buffer.
inline std::unique_ptr<PeerExchange> make_all_to_all_exchange(Communicator& comm, const PeerExchangeSpec& spec) {
  return spec.send_buffer ? std::make_unique<AllToAllExchange>(comm, spec) : nullptr;
}

}  // namespace hctr
