// Joins processes through MPI. Each message has one sending and one receiving rank, so results do not depend on the
// assignment of ranks to processes.
//
// MPI does not report a host that stops answering, and the launcher reports it late. Processes therefore watch each
// other by heartbeats over TCP, as in tcp_processes.cc. The watch runs until MPI is finalized. MPI_Finalize waits for
// all processes. If a process is lost during this wait, the watch ends the waiting process, if `Surroundings` allows
// it.
#include "core/comm/mpi_processes.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "core/base/environment.h"
#include "core/base/expect.h"
#include "core/base/host_name.h"
#include "core/base/platform.h"
#include "core/base/plugin_file.h"
#include "core/base/short_waits.h"
#include "core/base/stopped_time.h"
#include "core/comm/mpi_plugin.h"
#include "core/comm/rank_list.h"
#include "core/comm/watch.h"
#include "core/comm/watch_join.h"

namespace hctr {
namespace {

namespace fs = std::filesystem;

using std::chrono::seconds;

constexpr size_t kMostBytes = size_t{1} << 30;  // maximum message size, because MPI counts bytes in int
constexpr seconds kToConnect{10}, kToAbort{5};

// A wait first polls for kYielding and yields between polls. Then it sleeps between polls: at least kShortestPause, and
// at most kLongestPause.
constexpr std::chrono::microseconds kYielding{1000};
constexpr std::chrono::nanoseconds kShortestPause{20'000}, kLongestPause{1'000'000};
// number of waits that sleep without yielding first, after other threads have competed for the core
constexpr uint64_t kWaitsAsleep = 1000;

void check(const char* problem) {
  if (problem) throw Error(Kind::comm, problem);
}

/// The plug-in, or the reason why the plug-in cannot be used.
struct Loaded {
  const MpiPlugin* plugin = nullptr;
  std::string why_not = {};
};

Loaded load_mpi() {
  std::error_code none;
  const fs::path file = plugin_file(kMpiPluginFile);
  if (!fs::exists(file, none)) {
    if (!kMpiBuild)
      return {.why_not = "this build contains no MPI (configure with -DHCTR_MPI=ON to see why MPI is not found)"};
    return {.why_not = cat(kMpiPluginFile, ", expected next to the program, is missing")};
  }
  // RTLD_GLOBAL: MPI loads components that look up MPI symbols in the whole program.
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) return {.why_not = cat("libmpi cannot be loaded: ", ::dlerror())};
  const auto entry = reinterpret_cast<const MpiPlugin* (*)()>(::dlsym(library, kMpiPluginEntry));
  if (!entry || entry()->version != kMpiPlugin)
    return {.why_not = cat("'", file.string(), "' belongs to another version of this program")};
  return {.plugin = entry()};
}

const Loaded& loaded_mpi() {
  static const Loaded loaded = load_mpi();
  return loaded;
}

/// Data that a process sends to the other processes at join().
struct Member {
  int32_t ranks = 0;
  char host[256] = "";
};

class MpiProcesses : public Processes {
 public:
  MpiProcesses(const Launch& launch, const JoinLimits& limits, const Surroundings& around, const MpiPlugin& mpi)
      : limit_(limits.step), limit_setting_(limits.step_setting), end_process_(around.end_process), mpi_(mpi) {
    MpiPlugin::Place place{};
    check(mpi_.start(&place));
    process_ = place.process;
    count_ = place.count;
    on_host_ = {launch.local_process.value_or(place.of_host), launch.local_processes.value_or(place.count_on_host)};
    if (count_ > 1) watch_others(limits.silence, around);
  }
  ~MpiProcesses() override {
    if (end_process_ || !(ended_ || (watch_ && watch_->failure()))) mpi_.finish();
  }

  int process() const override { return process_; }
  int count() const override { return count_; }
  std::optional<OnHost> on_host() const override { return on_host_; }

  LocalRanks join(int ranks) override {
    Member mine{.ranks = ranks};
    host_name().copy(mine.host, sizeof mine.host - 1);
    members_.resize(static_cast<size_t>(count_));
    check(mpi_.gather(&mine, sizeof mine, members_.data()));
    std::vector<int> of_each;
    std::vector<std::string> hosts;
    for (const Member& member : members_) {
      of_each.push_back(member.ranks);
      hosts.emplace_back(member.host);
    }
    check_rank_counts(of_each, hosts);
    process_of_.clear();
    for (int p = 0; p < count_; ++p) {
      if (p == process_) local_ranks_.first = static_cast<int>(process_of_.size());
      process_of_.insert(process_of_.end(), static_cast<size_t>(members_[static_cast<size_t>(p)].ranks), p);
    }
    local_ranks_.count = ranks;
    local_ranks_.total = static_cast<int>(process_of_.size());
    return local_ranks_;
  }

  void exchange(const std::vector<const Transfer*>& transfers, Wait wait) override {
    std::vector<int> peers;  // the remote rank of each message
    const auto start = [&](const Transfer::Piece& piece, int other, int tag, auto call) {
      for (size_t at = 0; at < piece.bytes; at += kMostBytes) {
        peers.push_back(other);
        const auto bytes = static_cast<int>(std::min(kMostBytes, piece.bytes - at));
        check(call(piece.data + at, bytes, process_of_[static_cast<size_t>(other)], tag));
      }
    };
    for (int here = 0; here < local_ranks_.count; ++here)
      for (int other = 0; other < local_ranks_.total; ++other) {
        if (process_of_[static_cast<size_t>(other)] == process_) continue;
        const int rank = local_ranks_.first + here;
        const Transfer& transfer = *transfers[static_cast<size_t>(here)];
        start(transfer.receive[static_cast<size_t>(other)], other, other * local_ranks_.total + rank, mpi_.receive);
        start(transfer.send[static_cast<size_t>(other)], other, rank * local_ranks_.total + other, mpi_.send);
      }
    wait_for(peers, wait);
  }

  /// If the watch has notified all processes, this process ends without calling MPI, because MPI could block on a lost
  /// host; the launcher sees the exit code. Otherwise, if `end_process_` is set, MPI_Abort ends this process and the
  /// processes that the watch does not reach.
  void abort(int exit_code) noexcept override {
    ended_ = true;
    if (watch_) watch_->tell_to_end(exit_code);
    if (all_watched_ || !end_process_) return;
    try {
      std::thread([exit_code, end = end_process_] {
        std::this_thread::sleep_for(kToAbort);
        end(exit_code);
      }).detach();
      mpi_.abort(exit_code);
    } catch (...) {  // the thread could not be started
    }
  }

 private:
  void watch_others(seconds silence, const Surroundings& around) {
    WatchConnections watches =
        connect_watches(process_, count_, variable_of(around.environment, "MASTER_ADDR"), kToConnect,
                        [&](const void* mine, int32_t bytes, void* each) { check(mpi_.gather(mine, bytes, each)); });
    all_watched_ = watches.missing.empty();
    if (!all_watched_ && process_ == 0)
      Log(around.log)
          .warning("no heartbeat from ", watches.missing,
                   ". Does a firewall block connections between the hosts at ports that the system chooses? "
                   "MASTER_ADDR sets another address of process 0. Training continues, but a lost host is detected "
                   "only by the timeout of a step (--comm-timeout)");
    watch_.emplace(process_, std::move(watches.control), std::move(watches.hosts), silence, around);
  }
  /// Throws the watch's error if a process is lost.
  void throw_loss() const {
    if (!watch_) return;
    if (const auto failure = watch_->failure()) throw *failure;
  }
  void advance(bool& all) const {
    if (const char* problem = mpi_.advance(&all)) {
      // MPI's error; the watch's error is better, because it also gives the reason
      const Error broken(Kind::comm, problem);
      if (const auto failure = watch_ ? watch_->failure_soon() : std::nullopt) throw *failure;
      throw broken;
    }
  }

  /// Polls, because MPI has no wait with a time limit. Polls first without sleeping, unless other threads compete for
  /// the core. Then sleeps between polls for an eighth of the time waited so far, which bounds the additional delay.
  void wait_for(const std::vector<int>& peers, Wait wait) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    Clock::time_point end = begin + limit_;
    StoppedTime stopped;
    bool all = false;
    const auto have_come = [&] {
      advance(all);
      return all;
    };
    const uint64_t number = waits_++;
    if (number < sleeping_until_) {
      advance(all);
    } else if (!yield_until(kYielding, have_come)) {
      sleeping_until_ = number + kWaitsAsleep;
    }
    while (!all) {
      std::this_thread::sleep_for(std::clamp((Clock::now() - begin) / 8, kShortestPause, kLongestPause));
      throw_loss();
      advance(all);
      end += stopped.since_last();
      if (!all && wait == Wait::limited && limit_.count() > 0 && Clock::now() > end) break;
    }
    if (all) return;
    std::set<int> silent;
    for (size_t i = 0; i < peers.size(); ++i)
      if (!mpi_.done(static_cast<int64_t>(i))) silent.insert(peers[i]);
    throw Error(Kind::comm,
                cat(names_of(silent), silent.size() == 1 ? " has" : " have", " not answered within ", limit_.count(),
                    " s: a process or the network hangs; ", limit_setting_, " sets a longer limit"));
  }

  /// "rank 1 on host0, ranks 2, 3 on host1"
  std::string names_of(const std::set<int>& ranks) const {
    std::map<std::string, std::set<int>> of_hosts;
    for (const int rank : ranks)
      of_hosts[members_[static_cast<size_t>(process_of_[static_cast<size_t>(rank)])].host].insert(rank);
    std::string text;
    for (const auto& [host, its] : of_hosts) text += cat(text.empty() ? "" : ", ", rank_list(its), " on ", host);
    return text;
  }

  seconds limit_;
  std::string limit_setting_;
  std::function<void(int exit_code)> end_process_;  // null: the program must not end this process
  bool ended_ = false;                              // whether abort() has notified the other processes
  OnHost on_host_;
  const MpiPlugin& mpi_;
  int process_ = 0, count_ = 1;
  LocalRanks local_ranks_;
  std::vector<Member> members_;  // [process]
  std::vector<int> process_of_;  // [rank]
  bool all_watched_ = false;
  std::optional<Watch> watch_;
  uint64_t waits_ = 0, sleeping_until_ = 0;
};

}  // namespace

std::string why_no_mpi() { return loaded_mpi().why_not; }

std::unique_ptr<Processes> start_mpi(const Launch& launch, const JoinLimits& limits, const Surroundings& around) {
  const Loaded& mpi = loaded_mpi();
  if (!mpi.plugin) throw Error(Kind::comm, mpi.why_not);
  return std::make_unique<MpiProcesses>(launch, limits, around, *mpi.plugin);
}

}  // namespace hctr
