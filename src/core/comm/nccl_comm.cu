// Collectives between GPUs. The NCCL communicators are non-blocking. A call that cannot complete returns, so a rank
// that waits for a failed rank notices the failure and stops. A watcher thread polls for asynchronous NCCL errors and
// for failures of other ranks.
#include "core/comm/nccl_comm.h"

#include <nccl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "core/base/environment.h"
#include "core/base/lasting_threads.h"
#include "core/base/stopped_time.h"
#include "core/comm/arguments.h"
#include "core/comm/gpu_peer_exchange.h"
#include "core/comm/host_comm.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/cuda_check.cuh"

namespace hctr {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kToConnect{120};
// settle() first yields between its polls for this time, and then sleeps between them. This time is about as long as
// one sleep takes, and longer than a call takes once the ranks are connected.
constexpr std::chrono::microseconds kToQueue{500};

// Pause between the end of a communicator's work and its destruction. After ncclCommFinalize(), NCCL runs a thread per
// rank that unmaps the rank's buffers, and does not report when these threads have ended. When the last rank of a
// process calls ncclCommDestroy(), NCCL unmaps the other ranks' views of these buffers. If both happened at the same
// time, NCCL 2.28.3 with driver 580.159 ended programs with "double free or corruption" in cuMemUnmap().
constexpr milliseconds kToFree{100};

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    case DType::u32:
      return ncclUint32;
    case DType::f64:
      return ncclFloat64;
  }
  return ncclInt8;
}

ncclRedOp_t nccl_op(Reduce how) { return how == Reduce::sum ? ncclSum : ncclMax; }

class NcclComm : public Communicator {
 public:
  NcclComm(RankGroup& group, int rank, Device device)
      : group_(group), host_(group, rank), device_(device), host_aborted_(device, sizeof(int32_t)) {
    threads_outlive_main();
    HCTR_CHECK(cudaSetDevice(device.index));
    for (Channel& channel : channels_) connect(channel);
    watcher_ = std::thread([this] { watch(); });
    try {
      warm_up();
    } catch (...) {
      abort_communicators();
      end_watch();
      throw;
    }
  }
  ~NcclComm() override {
    end_watch();
    std::array<bool, 3> finalized{};
    for (size_t c = 0; c < channels_.size(); ++c) finalized[c] = finalize(channels_[c]);
    if (group_.local_ranks().count > 1) std::this_thread::sleep_for(kToFree);
    const std::lock_guard alone(group_.destroying());
    for (size_t c = 0; c < channels_.size(); ++c) destroy(channels_[c], finalized[c]);
  }

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  int host_of(int rank) const override { return host_.host_of(rank); }

  void all_reduce(Context& ctx, Tensor inout, Reduce how) override {
    HCTR_EXPECT(inout.dense(), "all_reduce() needs dense rows, found strided rows");
    call(ctx, "all_reduce", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclAllReduce(inout.bytes(), inout.bytes(), count(inout), nccl_type(inout.dtype()), nccl_op(how), comm,
                           stream);
    });
  }
  void reduce_scatter(Context& ctx, Tensor in, Tensor out, Reduce how) override {
    expect_equal_ranges("reduce_scatter", out, in, size());
    call(ctx, "reduce_scatter", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclReduceScatter(in.bytes(), out.bytes(), count(out), nccl_type(in.dtype()), nccl_op(how), comm, stream);
    });
  }
  void all_gather(Context& ctx, Tensor in, Tensor out) override {
    expect_equal_ranges("all_gather", in, out, size());
    call(ctx, "all_gather", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclAllGather(in.bytes(), out.bytes(), count(in), nccl_type(in.dtype()), comm, stream);
    });
  }
  void all_to_all(Context& ctx, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive) override {
    const AllToAll one{in, send, out, receive};
    all_to_alls(ctx, {&one, 1});
  }
  void all_to_alls(Context& ctx, std::span<const AllToAll> all) override {
    const auto own = static_cast<size_t>(rank());
    for (const auto& [in, send, out, receive] : all) {
      expect_ranges(in, send, out, receive, size());
      copy_bytes(ctx.stream(), element(out, receive.begin[own]), element(in, send.begin[own]),
                 static_cast<size_t>(send.count[own]) * size_of(in.dtype()));
    }
    call(ctx, "all_to_all", [&](ncclComm_t comm, cudaStream_t stream) {
      ncclResult_t status = ncclGroupStart();
      for (const AllToAll& one : all)
        if (status == ncclSuccess) status = queue_transfers(one, comm, stream);
      const ncclResult_t ended = ncclGroupEnd();
      return status != ncclSuccess ? status : ended;
    });
  }
  void broadcast(Context& ctx, Tensor inout, int root) override {
    HCTR_EXPECT(inout.dense() && 0 <= root && root < size(), "broadcast from rank ", root, " of ", size());
    call(ctx, "broadcast", [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclBroadcast(inout.bytes(), inout.bytes(), count(inout), nccl_type(inout.dtype()), root, comm, stream);
    });
  }

  bool any(bool mine) override {
    const bool some = host_.any(mine);
    in_step_ = true;
    note_progress();
    return some;
  }
  std::vector<std::string> gather(std::string_view mine, int root) override {
    in_step_ = false;
    return host_.gather(mine, root);
  }
  std::string broadcast(std::string_view text, int root) override {
    in_step_ = false;
    return host_.broadcast(text, root);
  }
  void barrier() override {
    in_step_ = false;
    host_.barrier();
  }
  std::unique_ptr<PeerExchange> make_peer_exchange(const PeerExchangeSpec& spec) override {
    in_step_ = false;
    if (!several_hosts())
      if (auto exchange = make_gpu_peer_exchange(*this, spec, host_aborted(), peers_allowed())) return exchange;
    return make_all_to_all_exchange(*this, spec);
  }
  void abort(const Error& error) noexcept override {
    host_.abort(error);
    abort_communicators();  // without this, freeing memory would wait for kernels that wait for peers
  }

 private:
  /// Whether GPUs may write to each other's memory; NCCL_P2P_DISABLE forbids this.
  bool peers_allowed() const {
    const std::optional<std::string> off = variable_of(group_.environment(), "NCCL_P2P_DISABLE");
    return !off || std::atoi(off->c_str()) == 0;
  }
  /// An NCCL communicator for one stream. Streams run concurrently, and a collective on one stream must not wait for a
  /// collective on another.
  struct Channel {
    ncclComm_t comm = nullptr;
    bool aborted = false;
  };

  volatile int32_t* host_aborted() const { return reinterpret_cast<volatile int32_t*>(host_aborted_.data()); }
  static size_t channel_of(Context& ctx) {
    const void* stream = ctx.stream().handle;
    return stream == ctx.runtime().prepare_stream().handle    ? 1
           : stream == ctx.runtime().exchange_stream().handle ? 2
                                                              : 0;
  }
  static size_t count(const Tensor& tensor) { return static_cast<size_t>(tensor.elements()); }
  static ncclResult_t in_group(ncclResult_t status) { return status == ncclInProgress ? ncclSuccess : status; }
  /// Adds the sends and receives of an all-to-all to the current NCCL group.
  ncclResult_t queue_transfers(const AllToAll& all, ncclComm_t comm, cudaStream_t stream) const {
    const ncclDataType_t type = nccl_type(all.in.dtype());
    ncclResult_t status = ncclSuccess;
    for (int step = 1; step < size() && status == ncclSuccess; ++step) {
      const int to = (rank() + step) % size(), from = (rank() + size() - step) % size();
      const auto t = static_cast<size_t>(to), f = static_cast<size_t>(from);
      if (all.send.count[t] > 0)
        status = in_group(ncclSend(element(all.in, all.send.begin[t]), static_cast<size_t>(all.send.count[t]), type, to,
                                   comm, stream));
      if (all.receive.count[f] > 0 && status == ncclSuccess)
        status = in_group(ncclRecv(element(all.out, all.receive.begin[f]), static_cast<size_t>(all.receive.count[f]),
                                   type, from, comm, stream));
    }
    return status;
  }

  void connect(Channel& channel) {
    ncclUniqueId id{};
    if (rank() == 0) expect(ncclGetUniqueId(&id), "ncclGetUniqueId", nullptr);
    const std::string text = host_.broadcast({reinterpret_cast<const char*>(&id), sizeof id}, 0);
    std::copy_n(text.data(), sizeof id, reinterpret_cast<char*>(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    // The call sets channel.comm and may return ncclInProgress; settle() then polls channel.comm.
    const ncclResult_t status = ncclCommInitRankConfig(&channel.comm, size(), id, rank(), &config);
    settle(status, "connecting", channel.comm);
  }

  /// Ends the communicator's work. Returns whether it can be destroyed; false: it must be aborted.
  bool finalize(Channel& channel) noexcept {
    if (!channel.comm || channel.aborted) return false;
    ncclResult_t state = ncclCommFinalize(channel.comm);
    for (int tries = 0; state == ncclInProgress && tries < 10000; ++tries) {
      std::this_thread::sleep_for(milliseconds(1));
      if (ncclCommGetAsyncError(channel.comm, &state) != ncclSuccess) break;
    }
    return state == ncclSuccess;
  }

  /// Frees the communicator. NCCL may do this in a thread that cannot be joined (see threads_outlive_main()).
  void destroy(Channel& channel, bool finalized) noexcept {
    if (!channel.comm || channel.aborted) return;
    if (finalized)
      ncclCommDestroy(channel.comm);
    else
      ncclCommAbort(channel.comm);
  }

  /// Makes every kind of call once. NCCL connects peers at the first use, and cannot connect while a step is being
  /// recorded.
  void warm_up() {
    Runtime runtime(device_, {});
    for (const StreamRef stream : {runtime.compute_stream(), runtime.prepare_stream(), runtime.exchange_stream()}) {
      Context ctx(runtime, stream);
      const Buffer memory(device_, static_cast<size_t>(4 * size()) * sizeof(float));
      const Tensor all(memory.data(), TensorSpec(DType::f32, {size()}), device_),
          other(element(all, size()), TensorSpec(DType::f32, {size()}), device_),
          one(element(all, 2 * size()), TensorSpec(DType::f32, {1}), device_);
      all_reduce(ctx, all, Reduce::sum);
      reduce_scatter(ctx, all, one, Reduce::sum);
      all_gather(ctx, one, all);
      all_to_all(ctx, all, RankRanges::equal(size(), 1), other, RankRanges::equal(size(), 1));
      broadcast(ctx, all, 0);
      stream.synchronize();
    }
  }

  template <class Body>
  void call(Context& ctx, const char* name, const Body& body) {
    note_progress();
    Channel& channel = channels_[channel_of(ctx)];
    ncclResult_t status = ncclSuccess;
    {
      const std::lock_guard lock(mutex_);
      if (!channel.aborted) status = body(channel.comm, cuda::stream_of(ctx.stream()));
    }
    settle(status, name, channel.comm);
  }

  /// Waits until the host part of the call is complete.
  void settle(ncclResult_t status, const char* name, ncclComm_t comm) {
    const auto begin = std::chrono::steady_clock::now();
    while (status == ncclInProgress) {
      throw_if_failed(name);
      if (std::chrono::steady_clock::now() - begin > kToConnect)
        throw Error(Kind::comm, cat("NCCL: ", name, ": no connection within ", kToConnect.count(),
                                    " s; NCCL_DEBUG=INFO prints details"));
      if (std::chrono::steady_clock::now() - begin < kToQueue)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      const std::lock_guard lock(mutex_);
      if (!comm || ncclCommGetAsyncError(comm, &status) != ncclSuccess) status = ncclInternalError;
    }
    throw_if_failed(name);
    expect(status, name, comm);
  }

  static void expect(ncclResult_t status, const char* name, ncclComm_t comm) {
    if (status == ncclSuccess) return;
    const char* more = comm ? ncclGetLastError(comm) : nullptr;
    throw Error(Kind::comm, cat("NCCL: ", ncclGetErrorString(status), " in ", name,
                                more && *more ? cat(" (", more, ")") : "", "; NCCL_DEBUG=INFO prints details"));
  }

  void throw_if_failed(const char* name) const {
    if (const auto failure = group_.failure()) {
      if (failure->rank == rank()) throw failure->error;
      throw Error(Kind::comm,
                  cat("rank ", failure->rank, " failed: ", failure->error.what(), "\n  while waiting in ", name));
    }
  }

  static int64_t seconds_now() {
    return std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  void note_progress() { last_progress_ = seconds_now(); }
  /// Whether a step has taken longer than longest_step(). In a step, the host waits for its own GPU, which waits for
  /// the other GPUs. Only this timer notices when this chain of waits hangs.
  bool stuck() const {
    return in_step_ && group_.limit().count() > 0 && seconds_now() - last_progress_ > longest_step();
  }
  /// Seconds. Longer than the limit of host waits, because if the host of a rank hangs, the host wait fails first and
  /// names that rank.
  int64_t longest_step() const { return group_.limit().count() + 3; }

  void end_watch() {
    stop_ = true;
    watcher_.join();
  }

  void abort_communicators() noexcept {
    *host_aborted() = 1;
    const std::lock_guard lock(mutex_);
    for (Channel& channel : channels_) {
      if (!channel.comm || channel.aborted) continue;
      ncclCommAbort(channel.comm);
      channel.aborted = true;
    }
  }

  /// The watcher thread. A kernel that waits for a peer ends only when its communicator is aborted. The host, which
  /// waits for the kernel, can then continue.
  void watch() {
    cudaSetDevice(device_.index);
    StoppedTime stopped;
    while (!stop_) {
      std::this_thread::sleep_for(milliseconds(50));
      last_progress_ += std::chrono::duration_cast<seconds>(stopped.since_last()).count();
      if (group_.failure()) return abort_communicators();
      if (stuck()) {
        group_.fail(rank(), Error(Kind::comm, cat("no step of this rank has ended for ", longest_step(),
                                                  " s: a GPU, a link between GPUs or the disk that holds rows hangs; ",
                                                  group_.limit_setting(), " sets a longer limit")));
        return abort_communicators();
      }
      for (Channel& channel : channels_) {
        ncclResult_t state = ncclSuccess;
        {
          const std::lock_guard lock(mutex_);
          if (!channel.aborted && ncclCommGetAsyncError(channel.comm, &state) != ncclSuccess) state = ncclInternalError;
        }
        if (state == ncclSuccess || state == ncclInProgress) continue;
        group_.fail(rank(), Error(Kind::comm, cat("NCCL: ", ncclGetErrorString(state),
                                                  ": the link to another rank broke; NCCL_DEBUG=INFO prints details")));
        return abort_communicators();
      }
    }
  }

  RankGroup& group_;
  HostComm host_;
  Device device_;
  HostBuffer host_aborted_;  // peer-exchange kernels stop waiting once this is nonzero
  std::array<Channel, 3> channels_;
  std::mutex mutex_;  // protects channels_, which the rank's thread and watcher_ use
  std::atomic<bool> stop_ = false, in_step_ = false;
  std::atomic<int64_t> last_progress_ = 0;
  std::thread watcher_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_comm(RankGroup& group, int rank, Device device) {
  return std::make_unique<NcclComm>(group, rank, device);
}

}  // namespace hctr
