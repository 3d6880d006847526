// Each turn a rank says that its memory is free and waits for all peers to say so; kernels write what peers get
// straight into their memory; then it says that its parts are there, and waits for theirs. Turns are counted on the
// device, so recorded steps need no arguments.
#include "comm/peer_route.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>
#include <random>

#include "device/buffer.h"
#include "device/cuda_runtime_calls.h"
#include "device/launch.cuh"

namespace hctr {
namespace {

constexpr int kMostRanks = 64;

/// What ranks tell each other, one in each rank's memory. Turns only go up, and wrap after 2^32 steps.
struct Signals {
  uint32_t turns = 0;               // that are over
  uint32_t closed = 0;              // 1: a peer did not come
  uint32_t free[kMostRanks] = {};   // the turn for which rank r's memory is free, as r says
  uint32_t there[kMostRanks] = {};  // the turn whose part from rank r is in this rank's memory, as r says
};

/// Those of all ranks, as one of them sees them.
struct Everyones {
  Signals* of[kMostRanks];
  int rank, ranks;
};

using Flag = ::cuda::atomic_ref<uint32_t, ::cuda::thread_scope_system>;

__device__ void say(uint32_t& flag, uint32_t turn) { Flag(flag).store(turn, ::cuda::memory_order_release); }

/// Until a peer has said `turn`, or all is given up: then false.
__device__ bool wait_for(uint32_t& flag, uint32_t turn, const volatile int32_t* given_up) {
  for (uint32_t tries = 1; static_cast<int32_t>(Flag(flag).load(::cuda::memory_order_acquire) - turn) < 0; ++tries) {
    __nanosleep(20);
    if (tries % 4096 == 0 && *given_up != 0) return false;
  }
  return true;
}

// Of each, thread r deals with rank r.

__global__ void open_kernel(const __grid_constant__ Everyones all, const volatile int32_t* given_up) {
  Signals& mine = *all.of[all.rank];
  const uint32_t turn = mine.turns + 1;
  const int r = static_cast<int>(threadIdx.x);
  if (r >= all.ranks || r == all.rank) return;
  say(all.of[r]->free[all.rank], turn);  // what came last turn has been used: the stream got here
  if (!wait_for(mine.free[r], turn, given_up)) mine.closed = 1;
}

__global__ void close_kernel(const __grid_constant__ Everyones all) {
  const int r = static_cast<int>(threadIdx.x);
  if (r >= all.ranks || r == all.rank) return;
  __threadfence_system();
  say(all.of[r]->there[all.rank], all.of[all.rank]->turns + 1);
}

__global__ void finish_kernel(const __grid_constant__ Everyones all, const volatile int32_t* given_up) {
  Signals& mine = *all.of[all.rank];
  const uint32_t turn = mine.turns + 1;
  const int r = static_cast<int>(threadIdx.x);
  if (r < all.ranks && r != all.rank) wait_for(mine.there[r], turn, given_up);
  __syncthreads();
  if (r == 0) mine.turns = turn;
}

/// Memory that other processes can open: an allocation, and how far into it.
struct Shared {
  std::byte* memory = nullptr;
  cudaIpcMemHandle_t handle{};
  int64_t offset = 0;

  Shared() = default;
  explicit Shared(std::byte* address) : memory(address) {
    if (!address) return;  // of a rank that gets nothing
    std::byte* begin = cuda::allocation_begin(address);
    offset = address - begin;
    cudaIpcGetMemHandle(&handle, begin);  // where that fails, so does opening it
  }
};

/// What a rank tells the others.
struct Card {
  char host[64] = {};
  uint64_t process = 0;
  int32_t device = 0;
  Shared into, signals;
  int64_t bytes_before[kMostRanks] = {};  // each rank's part, in `into`
};

/// A number of this process alone; its id may be another's in a container beside it.
uint64_t this_process() {
  static const uint64_t number = [] {
    std::random_device draw;
    return (uint64_t{draw()} << 32) | draw();
  }();
  return number;
}

/// Everyone's, by rank.
template <class T>
std::vector<T> shared(Communicator& comm, const T& mine) {
  std::string all;
  for (const std::string& one : comm.gather({reinterpret_cast<const char*>(&mine), sizeof mine}, 0)) all += one;
  all = comm.share(all, 0);
  std::vector<T> out(all.size() / sizeof(T));
  std::memcpy(static_cast<void*>(out.data()), all.data(), all.size());
  return out;
}

class PeerRoute : public Route {
 public:
  PeerRoute(Communicator& comm, const RouteSpec& spec, const volatile int32_t* given_up)
      : given_up_(given_up), signals_(spec.into.device(), sizeof(Signals)), places_(static_cast<size_t>(comm.size())) {
    HCTR_CHECK(cudaSetDevice(spec.into.device().index));
    HCTR_CHECK(cudaDeviceSynchronize());  // the memory is zero before anybody writes to it
    everyones_.rank = comm.rank();
    everyones_.ranks = comm.size();
    reach_all(comm, spec);
  }
  ~PeerRoute() override {
    for (std::byte* memory : opened_) cudaIpcCloseMemHandle(memory);
  }

  bool reached() const { return reached_; }
  std::byte* place(int rank) const override { return places_.at(static_cast<size_t>(rank)); }
  bool direct() const override { return true; }
  const uint32_t* closed() const override { return &reinterpret_cast<const Signals*>(signals_.data())->closed; }
  void open(Context& ctx) override {
    hctr::cuda::launch(ctx, "open to peers", kThreads, open_kernel, everyones_, given_up_);
  }
  void close(Context& ctx) override { hctr::cuda::launch(ctx, "tell peers", kThreads, close_kernel, everyones_); }
  void finish(Context& ctx) override {
    hctr::cuda::launch(ctx, "wait for peers", kThreads, finish_kernel, everyones_, given_up_);
  }

 private:
  static constexpr hctr::cuda::Grid kThreads{1, kMostRanks, 0};

  /// Makes every peer's memory usable here, and finds out whether that worked everywhere.
  void reach_all(Communicator& comm, const RouteSpec& spec) {
    Card mine;
    gethostname(mine.host, sizeof mine.host - 1);
    mine.process = this_process();
    mine.device = spec.into.device().index;
    mine.into = Shared(spec.into.bytes());
    mine.signals = Shared(signals_.data());
    const char* off = std::getenv("NCCL_P2P_DISABLE");
    bool all = comm.size() <= kMostRanks && (!off || std::atoi(off) == 0);
    for (size_t r = 0; r < places_.size() && all; ++r)
      mine.bytes_before[r] = spec.receive.begin.at(r) * static_cast<int64_t>(size_of(spec.into.dtype()));
    const std::vector<Card> cards = shared(comm, mine);
    for (int r = 0; r < comm.size() && all; ++r) all = reach(cards[static_cast<size_t>(r)], mine, r);
    cudaGetLastError();  // of what could not be reached
    reached_ = true;
    for (const int32_t one : shared(comm, static_cast<int32_t>(all))) reached_ = reached_ && one != 0;
  }

  bool reach(const Card& card, const Card& mine, int rank) {
    const bool other_process = card.process != mine.process;
    if (std::strcmp(card.host, mine.host) != 0) return false;
    if (!other_process && card.device != mine.device) {
      int reachable = 0;
      if (cudaDeviceCanAccessPeer(&reachable, mine.device, card.device) != cudaSuccess || reachable == 0) return false;
      const cudaError_t status = cudaDeviceEnablePeerAccess(card.device, 0);
      if (status != cudaSuccess && status != cudaErrorPeerAccessAlreadyEnabled) return false;
    }
    std::byte *into = card.into.memory, *signals = card.signals.memory;
    if (other_process && !(open(card.into, into) && open(card.signals, signals))) return false;
    places_[static_cast<size_t>(rank)] = into + card.bytes_before[everyones_.rank];
    everyones_.of[rank] = reinterpret_cast<Signals*>(signals);
    return true;
  }

  /// `address`: from one of the other process to one of this.
  bool open(const Shared& memory, std::byte*& address) {
    if (!address) return true;
    void* begin = nullptr;
    if (cudaIpcOpenMemHandle(&begin, memory.handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) return false;
    opened_.push_back(static_cast<std::byte*>(begin));
    address = opened_.back() + memory.offset;
    return true;
  }

  const volatile int32_t* given_up_;
  Buffer signals_;
  bool reached_ = false;
  std::vector<std::byte*> places_, opened_;
  Everyones everyones_{};
};

}  // namespace

std::unique_ptr<Route> make_peer_route(Communicator& comm, const RouteSpec& spec, const volatile int32_t* given_up) {
  auto route = std::make_unique<PeerRoute>(comm, spec, given_up);
  if (!route->reached()) return nullptr;
  return route;
}

}  // namespace hctr
