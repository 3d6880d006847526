// Each turn a rank says that its memory is free, waits for a peer to say so, writes what the peer gets straight into the peer's memory, and says that it is
// there; a second kernel waits for what comes. Turns are counted on the device, so recorded steps need no arguments.
#include "comm/peer_route.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cuda/atomic>
#include <random>

#include "comm/parts.h"
#include "device/copy.h"
#include "device/launch.cuh"

namespace hctr {
namespace {

constexpr int kThreads = 512, kAtOnce = 4;
constexpr int64_t kMostBlocks = 192, kBlocksOfPeer = 64;
constexpr int kMostRanks = 64;

/// What ranks tell each other, one in each rank's memory. Turns only go up, and wrap after 2^32 steps.
struct Signals {
  uint32_t turns = 0;               // that are over
  uint32_t free[kMostRanks] = {};   // the turn for which rank r's memory is free, as r says
  uint32_t there[kMostRanks] = {};  // the turn whose part from rank r is in this rank's memory, as r says
  uint32_t written[kMostRanks] = {};  // blocks that are through with what rank r gets
};

/// One peer, as the kernel that sends to it sees it.
struct Peer {
  std::byte* to;            // this rank's part in the peer's memory
  Signals* signals;         // the peer's
  int64_t from, bytes;      // of what is sent
  int64_t present;          // the first of its vectors
};

struct Peers {
  Peer of[kMostRanks];
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

/// Block (x, y) writes its share of what the y-th rank after this one gets, beginning with this one itself. Unit: what a thread moves at once.
template <class Unit>
__global__ void __launch_bounds__(kThreads) write_kernel(const __grid_constant__ Peers peers, Signals* mine, int rank, int ranks, const std::byte* in,
                                                         const uint8_t* present, uint32_t units_of_vector, const volatile int32_t* given_up) {
  const auto to = (static_cast<uint32_t>(rank) + blockIdx.y) % static_cast<uint32_t>(ranks);
  const Peer& peer = peers.of[to];
  const uint32_t turn = mine->turns + 1;
  const bool away = blockIdx.y > 0;
  if (away) {
    __shared__ bool go;
    if (threadIdx.x == 0) go = wait_for(mine->free[to], turn, given_up);
    __syncthreads();
    if (!go) return;
  } else if (blockIdx.x == 0 && threadIdx.x < ranks && threadIdx.x != rank) {
    say(peers.of[threadIdx.x].signals->free[rank], turn);  // what came last turn has been used: the stream got here. The first block says it: it waits for nobody
  }
  const auto* from = reinterpret_cast<const Unit*>(in + peer.from);
  auto* target = reinterpret_cast<Unit*>(peer.to);
  const uint8_t* is_there = present + peer.present;
  const auto units = static_cast<uint32_t>(peer.bytes / sizeof(Unit)), step = gridDim.x * kThreads;
  for (uint32_t first = blockIdx.x * kThreads + threadIdx.x; first < units; first += kAtOnce * step) {
    Unit unit[kAtOnce];
    bool goes[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const uint32_t u = first + k * step;
      goes[k] = u < units && is_there[u / units_of_vector] != 0;
      if (goes[k]) unit[k] = from[u];
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (goes[k]) target[first + k * step] = unit[k];
  }
  if (!away) return;
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence_system();
  if (atomicAdd(&mine->written[to], 1u) + 1 < gridDim.x) return;
  mine->written[to] = 0;
  __threadfence_system();
  say(peer.signals->there[rank], turn);
}

__global__ void wait_kernel(Signals* mine, int rank, int ranks, const volatile int32_t* given_up) {
  const uint32_t turn = mine->turns + 1;
  for (int r = static_cast<int>(threadIdx.x); r < ranks; r += static_cast<int>(blockDim.x))
    if (r != rank) wait_for(mine->there[r], turn, given_up);
  __syncthreads();
  if (threadIdx.x == 0) mine->turns = turn;
}

/// What a rank tells the others of its memory.
struct Card {
  char host[64] = {};
  uint64_t process = 0;
  int32_t device = 0;
  std::byte* memory = nullptr;
  cudaIpcMemHandle_t handle{};
};

/// A number of this process alone; its id may be another's in a container beside it.
uint64_t this_process() {
  static const uint64_t number = [] {
    std::random_device draw;
    return (uint64_t{draw()} << 32) | draw();
  }();
  return number;
}

/// Blocks that this device holds at once, of one kernel that leaves room for others.
int64_t blocks_at_once(Device device) {
  int processors = 0, threads = 0;
  HCTR_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device.index));
  HCTR_CHECK(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device.index));
  return std::min<int64_t>(kMostBlocks, int64_t{processors} * threads / kThreads / 2);
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
  PeerRoute(Communicator& comm, Device device, const RouteSpec& spec, const volatile int32_t* given_up)
      : spec_(spec), device_(device), rank_(comm.rank()), ranks_(comm.size()), given_up_(given_up), size_(size_of(spec.dtype)),
        signals_at_((static_cast<size_t>(spec.arriving) * size_ + 255) / 256 * 256), memory_(device, signals_at_ + sizeof(Signals)) {
    HCTR_CHECK(cudaSetDevice(device.index));
    blocks_ = blocks_at_once(device);
    HCTR_CHECK(cudaDeviceSynchronize());  // the memory is zero before anybody writes to it
    open(comm);
    if (!reached_) return;
    fill_peers(shared_places(comm));
  }
  ~PeerRoute() override {
    for (std::byte* memory : opened_) cudaIpcCloseMemHandle(memory);
  }

  bool reached() const { return reached_; }
  Tensor arrived() const override { return Tensor(memory_.data(), TensorSpec(spec_.dtype, {spec_.arriving}), memory_.device()); }

  void start(Context& ctx, Tensor in, const uint8_t* present) override {
    expect_parts(spec_.send, in, spec_.receive, arrived(), ranks_);
    int64_t most = 0;
    bool by_sixteen = true, by_four = true;
    const auto fits = [&](int64_t bytes) {
      by_sixteen = by_sixteen && bytes % 16 == 0;
      by_four = by_four && bytes % 4 == 0;
    };
    fits(static_cast<int64_t>(reinterpret_cast<uintptr_t>(in.bytes()) % 16));
    for (int r = 0; r < ranks_; ++r) {
      const Peer& peer = peers_.of[r];
      most = std::max(most, peer.bytes);
      fits(peer.from);
      fits(static_cast<int64_t>(reinterpret_cast<uintptr_t>(peer.to) % 16));
    }
    const int64_t vector = spec_.vector * static_cast<int64_t>(size_);
    fits(vector);
    const auto write = [&]<class Unit>(Unit) {
      const int64_t at_once = most / static_cast<int64_t>(kThreads * kAtOnce * sizeof(Unit));
      const int64_t blocks = std::clamp<int64_t>(at_once, 1, std::min(kBlocksOfPeer, std::max<int64_t>(1, blocks_ / ranks_)));
      hctr::cuda::give(ctx, "write to peers", [=, this, bytes = in.bytes(), units = static_cast<uint32_t>(vector / sizeof(Unit))](Context& now) {
        write_kernel<Unit><<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(ranks_)), kThreads, 0, hctr::cuda::stream_of(now.stream())>>>(
            peers_, signals(), rank_, ranks_, bytes, present, units, given_up_);
        HCTR_CHECK(cudaGetLastError());
      });
    };
    if (by_sixteen) write(uint4{});
    else if (by_four) write(uint32_t{});
    else write(uint16_t{});
  }
  void finish(Context& ctx) override { hctr::cuda::launch(ctx, "wait for peers", {1, 32, 0}, wait_kernel, signals(), rank_, ranks_, given_up_); }

 private:
  Signals* signals() const { return reinterpret_cast<Signals*>(memory_.data() + signals_at_); }

  /// Makes every peer's memory usable here, and finds out whether that worked everywhere.
  void open(Communicator& comm) {
    Card mine;
    gethostname(mine.host, sizeof mine.host - 1);
    mine.process = this_process();
    mine.device = device_.index;
    mine.memory = memory_.data();
    cudaIpcGetMemHandle(&mine.handle, memory_.data());  // where that fails, so does opening it
    const std::vector<Card> cards = shared(comm, mine);
    const char* off = std::getenv("NCCL_P2P_DISABLE");
    bool all = ranks_ <= kMostRanks && (!off || std::atoi(off) == 0) &&
               std::all_of(spec_.send.count.begin(), spec_.send.count.end(), [&](int64_t count) { return count * static_cast<int64_t>(size_) <= INT32_MAX; });
    for (int r = 0; r < ranks_; ++r) all = all && reach(cards[static_cast<size_t>(r)], mine, r == rank_);
    cudaGetLastError();  // of what could not be reached
    reached_ = true;
    for (const int32_t one : shared(comm, static_cast<int32_t>(all))) reached_ = reached_ && one != 0;
  }

  bool reach(const Card& card, const Card& mine, bool self) {
    std::byte* memory = card.memory;
    if (!self) {
      if (std::strcmp(card.host, mine.host) != 0) return false;
      int reachable = 0;
      if (card.process == mine.process) {
        if (cudaDeviceCanAccessPeer(&reachable, mine.device, card.device) != cudaSuccess || reachable == 0) return false;
        const cudaError_t status = cudaDeviceEnablePeerAccess(card.device, 0);
        if (status != cudaSuccess && status != cudaErrorPeerAccessAlreadyEnabled) return false;
      } else {
        void* opened = nullptr;
        if (cudaIpcOpenMemHandle(&opened, card.handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) return false;
        memory = static_cast<std::byte*>(opened);
        opened_.push_back(memory);
      }
    }
    memories_.push_back(memory);
    return true;
  }

  /// Where in a rank's memory its signals are, and what each rank sends it, in elements.
  struct PlacesOfRank {
    int64_t signals, from[kMostRanks];
  };
  std::vector<PlacesOfRank> shared_places(Communicator& comm) const {
    PlacesOfRank mine{static_cast<int64_t>(signals_at_), {}};
    for (int r = 0; r < ranks_; ++r) mine.from[r] = spec_.receive.begin[static_cast<size_t>(r)];
    return shared(comm, mine);
  }

  void fill_peers(const std::vector<PlacesOfRank>& places) {
    int64_t vectors = 0;
    for (int r = 0; r < ranks_; ++r) {
      const auto at = static_cast<size_t>(r);
      const auto size = static_cast<int64_t>(size_);
      peers_.of[r] = {memories_[at] + places[at].from[rank_] * size, reinterpret_cast<Signals*>(memories_[at] + places[at].signals), spec_.send.begin[at] * size,
                      spec_.send.count[at] * size, spec_.present.empty() ? vectors : spec_.present[at]};
      vectors += spec_.send.count[at] / spec_.vector;
    }
  }

  RouteSpec spec_;
  Device device_;
  int rank_, ranks_;
  const volatile int32_t* given_up_;
  size_t size_, signals_at_;
  Buffer memory_;
  bool reached_ = false;
  std::vector<std::byte*> memories_, opened_;  // of each rank, as seen here
  int64_t blocks_ = 0;
  Peers peers_;
};

}  // namespace

std::unique_ptr<Route> make_peer_route(Communicator& comm, Device device, const RouteSpec& spec, const volatile int32_t* given_up) {
  auto route = std::make_unique<PeerRoute>(comm, device, spec, given_up);
  if (!route->reached()) return nullptr;
  return route;
}

}  // namespace hctr
