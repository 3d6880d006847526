// Peer exchange by direct writes between GPUs. In every round a rank signals that its receive buffer is free, and waits
// for the same signal of all peers. Its kernels then write to the peers' memory. Finally the rank signals that its data
// has arrived, and waits for the same signal of all peers. Rounds are counted on the device, so a recorded step needs
// no new arguments.
#include "core/comm/gpu_peer_exchange.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <cuda/atomic>
#include <random>

#include "core/device/buffer.h"
#include "core/device/cuda_runtime_calls.h"
#include "core/device/launch.cuh"

namespace hctr {
namespace {

using hctr::cuda::BlockRange;
using hctr::cuda::launch_lockstep;
using hctr::cuda::launch_lockstep_late;

constexpr int kMostRanks = 64;

/// Signal flags in each rank's memory. Peers write `free` and `arrived`. Each step increments the round number, which
/// wraps around after 2^32 steps.
struct Signals {
  uint32_t rounds = 0;                // number of rounds that this rank has completed
  uint32_t aborted = 0;               // 1 once this rank stopped waiting for a peer
  uint32_t free[kMostRanks] = {};     // [r]: last round for which rank r's receive buffer is free
  uint32_t arrived[kMostRanks] = {};  // [r]: last round whose data from rank r is in this rank's receive buffer
};

/// The addresses of all ranks' signals, as mapped on one rank.
struct PeerSignals {
  Signals* of[kMostRanks];
  int rank, ranks;
};

using Flag = ::cuda::atomic_ref<uint32_t, ::cuda::thread_scope_system>;

__device__ void raise_flag(uint32_t& flag, uint32_t round) { Flag(flag).store(round, ::cuda::memory_order_release); }

/// Spins until a peer has signalled `round`. Returns false if the host aborts the exchange first.
__device__ bool wait_for(uint32_t& flag, uint32_t round, const volatile int32_t* aborted) {
  for (uint32_t tries = 1; static_cast<int32_t>(Flag(flag).load(::cuda::memory_order_acquire) - round) < 0; ++tries) {
    __nanosleep(20);
    if (tries % 4096 == 0 && *aborted != 0) return false;
  }
  return true;
}

// In each of these kernels thread r handles rank r. Each kernel has one block per exchange. A kernel that signals the
// arrival of data must start after the kernels that wrote the data have ended. If the signaling kernel were already
// running, it would see the writes to this GPU's memory, but would not necessarily wait for writes that are still in
// transit to another GPU.

__device__ void begin_peer_write(BlockRange, const PeerSignals& all, const volatile int32_t* aborted) {
  Signals& mine = *all.of[all.rank];
  const uint32_t round = mine.rounds + 1;
  const int r = static_cast<int>(threadIdx.x);
  if (r >= all.ranks || r == all.rank) return;
  // stream order guarantees that this rank has read the previous round's data
  raise_flag(all.of[r]->free[all.rank], round);
  if (!wait_for(mine.free[r], round, aborted)) mine.aborted = 1;
}

__device__ void end_peer_write(BlockRange, const PeerSignals& all) {
  const int r = static_cast<int>(threadIdx.x);
  if (r >= all.ranks || r == all.rank) return;
  __threadfence_system();
  raise_flag(all.of[r]->arrived[all.rank], all.of[all.rank]->rounds + 1);
}

__device__ void wait_for_peers(BlockRange, const PeerSignals& all, const volatile int32_t* aborted) {
  Signals& mine = *all.of[all.rank];
  const uint32_t round = mine.rounds + 1;
  const int r = static_cast<int>(threadIdx.x);
  if (r < all.ranks && r != all.rank) wait_for(mine.arrived[r], round, aborted);
  __syncthreads();
  if (r == 0) mine.rounds = round;
}

__device__ void end_peer_write_and_wait(BlockRange range, const PeerSignals& all, const volatile int32_t* aborted) {
  end_peer_write(range, all);
  wait_for_peers(range, all, aborted);
}

/// An address that other processes can map: an IPC handle of the allocation and an offset.
struct IpcAddress {
  std::byte* address = nullptr;  // only valid in the process that owns the memory
  cudaIpcMemHandle_t handle{};
  int64_t offset = 0;

  IpcAddress() = default;
  explicit IpcAddress(std::byte* at) : address(at) {
    if (!at) return;  // `at` is null if the rank receives no data
    std::byte* begin = cuda::allocation_begin(at);
    offset = at - begin;
    cudaIpcGetMemHandle(&handle, begin);  // no check: if this call fails, opening the handle fails, too
  }
};

/// Data that every rank sends to the other ranks.
struct PeerInfo {
  char host[64] = {};
  uint64_t process = 0;
  int32_t device = 0;
  IpcAddress receive_buffer, signals;
  int64_t offset_bytes[kMostRanks] = {};  // [r]: byte offset of rank r's data in the receive buffer
};

/// A random number that identifies this process. Process ids are not unique, because two containers on one host may use
/// the same id.
uint64_t this_process() {
  static const uint64_t number = [] {
    std::random_device draw;
    return (uint64_t{draw()} << 32) | draw();
  }();
  return number;
}

/// Returns the values of all ranks, indexed by rank, on every rank.
template <class T>
std::vector<T> gather_on_all(Communicator& comm, const T& mine) {
  std::string all;
  for (const std::string& one : comm.gather({reinterpret_cast<const char*>(&mine), sizeof mine}, 0)) all += one;
  all = comm.broadcast(all, 0);
  std::vector<T> out(all.size() / sizeof(T));
  std::memcpy(static_cast<void*>(out.data()), all.data(), all.size());
  return out;
}

class GpuPeerExchange : public PeerExchange {
 public:
  GpuPeerExchange(Communicator& comm, const PeerExchangeSpec& spec, const volatile int32_t* aborted, bool allowed)
      : host_aborted_(aborted),
        allowed_(allowed),
        signals_(spec.receive_buffer.device(), sizeof(Signals)),
        destinations_(static_cast<size_t>(comm.size())) {
    HCTR_CHECK(cudaSetDevice(spec.receive_buffer.device().index));
    // waits until the signals are zero, because peers may write to them from now on
    HCTR_CHECK(cudaDeviceSynchronize());
    peers_.rank = comm.rank();
    peers_.ranks = comm.size();
    reach_all(comm, spec);
  }
  ~GpuPeerExchange() override {
    for (std::byte* memory : opened_) cudaIpcCloseMemHandle(memory);
  }

  bool reached() const { return reached_; }
  std::byte* destination(int rank) const override { return destinations_.at(static_cast<size_t>(rank)); }
  bool direct() const override { return true; }
  const uint32_t* aborted() const override { return &reinterpret_cast<const Signals*>(signals_.data())->aborted; }
  void begin_write(Context& ctx) override {
    launch_lockstep<begin_peer_write, kMostRanks>(ctx, "begin_peer_write", 1, peers_, host_aborted_);
  }
  void end_write(Context& ctx) override {
    launch_lockstep_late<end_peer_write, kMostRanks>(ctx, "end_peer_write", 1, peers_);
  }
  void wait(Context& ctx) override {
    launch_lockstep<wait_for_peers, kMostRanks>(ctx, "wait_for_peers", 1, peers_, host_aborted_);
  }
  void end_write_and_wait(Context& ctx) override {
    launch_lockstep_late<end_peer_write_and_wait, kMostRanks>(ctx, "end_peer_write_and_wait", 1, peers_, host_aborted_);
  }

 private:
  /// Maps the memory of every peer, and checks that the mapping succeeded on every rank.
  void reach_all(Communicator& comm, const PeerExchangeSpec& spec) {
    PeerInfo mine;
    gethostname(mine.host, sizeof mine.host - 1);
    mine.process = this_process();
    mine.device = spec.receive_buffer.device().index;
    mine.receive_buffer = IpcAddress(spec.receive_buffer.bytes());
    mine.signals = IpcAddress(signals_.data());
    bool all = comm.size() <= kMostRanks && allowed_;
    for (size_t r = 0; r < destinations_.size() && all; ++r)
      mine.offset_bytes[r] = spec.receive.begin.at(r) * static_cast<int64_t>(size_of(spec.receive_buffer.dtype()));
    const std::vector<PeerInfo> peers = gather_on_all(comm, mine);
    for (int r = 0; r < comm.size() && all; ++r) all = reach(r, peers[static_cast<size_t>(r)], mine);
    cudaGetLastError();  // clears the error that a failed mapping has left
    reached_ = true;
    for (const int32_t one : gather_on_all(comm, static_cast<int32_t>(all))) reached_ = reached_ && one != 0;
  }

  bool reach(int rank, const PeerInfo& peer, const PeerInfo& mine) {
    const bool other_process = peer.process != mine.process;
    if (std::strcmp(peer.host, mine.host) != 0) return false;
    if (!other_process && peer.device != mine.device) {
      int reachable = 0;
      if (cudaDeviceCanAccessPeer(&reachable, mine.device, peer.device) != cudaSuccess || reachable == 0) return false;
      const cudaError_t status = cudaDeviceEnablePeerAccess(peer.device, 0);
      if (status != cudaSuccess && status != cudaErrorPeerAccessAlreadyEnabled) return false;
    }
    std::byte *buffer = peer.receive_buffer.address, *signals = peer.signals.address;
    if (other_process && !(open(peer.receive_buffer, buffer) && open(peer.signals, signals))) return false;
    destinations_[static_cast<size_t>(rank)] = buffer + peer.offset_bytes[peers_.rank];
    peers_.of[rank] = reinterpret_cast<Signals*>(signals);
    return true;
  }

  /// Replaces `address`, which is valid in the other process, by its mapping in this process.
  bool open(const IpcAddress& memory, std::byte*& address) {
    if (!address) return true;
    void* begin = nullptr;
    if (cudaIpcOpenMemHandle(&begin, memory.handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) return false;
    opened_.push_back(static_cast<std::byte*>(begin));
    address = opened_.back() + memory.offset;
    return true;
  }

  const volatile int32_t* host_aborted_;
  bool allowed_;
  Buffer signals_;
  bool reached_ = false;
  std::vector<std::byte*> destinations_, opened_;
  PeerSignals peers_{};
};

}  // namespace

std::unique_ptr<PeerExchange> make_gpu_peer_exchange(Communicator& comm, const PeerExchangeSpec& spec,
                                                     const volatile int32_t* aborted, bool allowed) {
  auto exchange = std::make_unique<GpuPeerExchange>(comm, spec, aborted, allowed);
  if (!exchange->reached()) return nullptr;
  return exchange;
}

}  // namespace hctr
