// An all-to-all exchange that is repeated every step, into a buffer whose address never changes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "core/comm/arguments.h"
#include "core/comm/communicator.h"

namespace hctr {

struct PeerExchangeSpec {
  Tensor receive_buffer;                // of this rank; any row stride
  RankRanges receive;                   // start of each rank's data, in elements from the start of the buffer
  std::optional<Tensor> send_buffer{};  // staging buffer, if ranks cannot write to each other's memory
  RankRanges send{};                    // ranges of the send buffer. With one, both as in Communicator::all_to_all
};

/// One per rank, created collectively (Communicator::make_peer_exchange). One round is: begin_write(), write the data
/// for every rank to destination(rank), end_write(), wait(), read the receive buffer. Calls are collective, as those of
/// the communicator. They may use different streams, but a call starts only when the previous one is complete. If
/// direct(), they only start kernels, by core/device/launch.cuh: one call for several exchanges starts one kernel in a
/// Lockstep, if every rank makes the same calls without other calls that wait for ranks in between.
class PeerExchange {
 public:
  virtual ~PeerExchange() = default;
  /// The start of the data for `rank`: in that rank's receive buffer if direct(), otherwise in this rank's send buffer.
  virtual std::byte* destination(int rank) const = 0;
  /// Whether data is written directly to the memory of other ranks.
  virtual bool direct() const = 0;
  /// A flag on the device, or null. Once it is not 0 the exchange is aborted, and kernels must not write to
  /// destinations any more.
  virtual const uint32_t* aborted() const { return nullptr; }
  /// Returns, or lets the stream continue, when every rank has called it: each has then read the data of the previous
  /// round, so its buffer may be written to.
  virtual void begin_write(Context&) = 0;
  /// Signals that all data of this rank has been written.
  virtual void end_write(Context&) = 0;
  /// Waits until the data of all ranks is in the receive buffer.
  virtual void wait(Context&) = 0;
  /// Both in one call.
  virtual void end_write_and_wait(Context& ctx) {
    end_write(ctx);
    wait(ctx);
  }
};

/// Works with any communicator: end_write() sends the send buffers by all_to_all.
class AllToAllExchange : public PeerExchange {
 public:
  /// Needs spec.send_buffer.
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

/// Null if the spec has no send buffer.
inline std::unique_ptr<PeerExchange> make_all_to_all_exchange(Communicator& comm, const PeerExchangeSpec& spec) {
  return spec.send_buffer ? std::make_unique<AllToAllExchange>(comm, spec) : nullptr;
}

}  // namespace hctr
