// Each message has one sending and one receiving rank, so results do not depend on how ranks are spread over processes.
#include "comm/mpi_processes.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include "base/error.h"

namespace hctr {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;  // of one message: MPI counts in int

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(Kind::comm, cat(call, ": ", text));
}

std::string list_of(const std::set<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += cat(text.empty() ? "" : ", ", rank);
  return cat(ranks.size() == 1 ? "rank " : "ranks ", text);
}

class MpiProcesses : public Processes {
 public:
  MpiProcesses(const Launch& launch, std::chrono::seconds limit) : limit_(limit) {
    if (launch.local_process && launch.local_processes)
      on_host_ = OnHost{*launch.local_process, *launch.local_processes};
    int level = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    if (level < MPI_THREAD_SERIALIZED)
      throw Error(Kind::comm, "this MPI does not support programs with threads (MPI_THREAD_SERIALIZED)");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    MPI_Comm_rank(comm_, &process_);
    MPI_Comm_size(comm_, &count_);
  }
  ~MpiProcesses() override { MPI_Finalize(); }

  int process() const override { return process_; }
  int count() const override { return count_; }
  std::optional<OnHost> on_host() const override { return on_host_; }

  LocalRanks join(int ranks) override {
    std::vector<int> of_each(static_cast<size_t>(count_));
    check(MPI_Allgather(&ranks, 1, MPI_INT, of_each.data(), 1, MPI_INT, comm_), "MPI_Allgather");
    process_of_.clear();
    for (int p = 0; p < count_; ++p) {
      if (p == process_) local_ranks_.first = static_cast<int>(process_of_.size());
      process_of_.insert(process_of_.end(), static_cast<size_t>(of_each[static_cast<size_t>(p)]), p);
    }
    local_ranks_.count = ranks;
    local_ranks_.total = static_cast<int>(process_of_.size());
    return local_ranks_;
  }

  void exchange(const std::vector<const Transfer*>& transfers, Wait wait) override {
    std::vector<MPI_Request> requests;
    std::vector<int> peers;  // the other rank of each request
    const auto start = [&](const Transfer::Piece& piece, int other, int tag, auto call, const char* name) {
      for (size_t at = 0; at < piece.bytes; at += kMostBytes) {
        requests.push_back(MPI_REQUEST_NULL);
        peers.push_back(other);
        const auto bytes = static_cast<int>(std::min(kMostBytes, piece.bytes - at));
        check(call(piece.data + at, bytes, process_of_[static_cast<size_t>(other)], tag, comm_, &requests.back()),
              name);
      }
    };
    const auto receive = [](void* data, int bytes, int from_process, int tag, MPI_Comm comm, MPI_Request* request) {
      return MPI_Irecv(data, bytes, MPI_BYTE, from_process, tag, comm, request);
    };
    const auto send = [](const void* data, int bytes, int to_process, int tag, MPI_Comm comm, MPI_Request* request) {
      return MPI_Isend(data, bytes, MPI_BYTE, to_process, tag, comm, request);
    };
    for (int here = 0; here < local_ranks_.count; ++here)
      for (int other = 0; other < local_ranks_.total; ++other) {
        if (process_of_[static_cast<size_t>(other)] == process_) continue;
        const int rank = local_ranks_.first + here;
        const Transfer& transfer = *transfers[static_cast<size_t>(here)];
        start(transfer.receive[static_cast<size_t>(other)], other, other * local_ranks_.total + rank, receive,
              "MPI_Irecv");
        start(transfer.send[static_cast<size_t>(other)], other, rank * local_ranks_.total + other, send, "MPI_Isend");
      }
    wait_for(requests, peers, wait);
  }

  [[noreturn]] void abort(int exit_code) noexcept override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  /// Polls, since MPI has no wait with a time limit: first without a pause, then with longer and longer ones.
  void wait_for(std::vector<MPI_Request>& requests, const std::vector<int>& peers, Wait wait) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    for (int64_t tries = 0;; ++tries) {
      int done = 0;
      check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
      if (done) return;
      if (tries < 1000)
        sched_yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(tries < 20000 ? 20 : 1000));
      if (wait == Wait::limited && limit_.count() > 0 && Clock::now() - begin > limit_) break;
    }
    std::set<int> silent;
    for (size_t i = 0; i < requests.size(); ++i)
      if (requests[i] != MPI_REQUEST_NULL) silent.insert(peers[i]);
    throw Error(Kind::comm,
                cat(list_of(silent), silent.size() == 1 ? " has" : " have", " not answered within ", limit_.count(),
                    " s: a process hangs or the network does; --comm-timeout sets a longer limit"));
  }

  std::chrono::seconds limit_;
  std::optional<OnHost> on_host_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int process_ = 0, count_ = 1;
  LocalRanks local_ranks_;
  std::vector<int> process_of_;  // [rank]
};

}  // namespace

std::unique_ptr<Processes> start_mpi(const Launch& launch, std::chrono::seconds limit) {
  return std::make_unique<MpiProcesses>(launch, limit);
}

}  // namespace hctr
