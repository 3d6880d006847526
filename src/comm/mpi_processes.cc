// Every message goes from a rank to a rank, so what arrives does not depend on how ranks are spread over processes.
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
  explicit MpiProcesses(std::chrono::seconds limit) : limit_(limit) {
    int level = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    if (level < MPI_THREAD_SERIALIZED)
      throw Error(Kind::comm, "this MPI does not let a program with threads call it (MPI_THREAD_SERIALIZED)");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    MPI_Comm_rank(comm_, &process_);
    MPI_Comm_size(comm_, &count_);
  }
  ~MpiProcesses() override { MPI_Finalize(); }

  int process() const override { return process_; }
  int count() const override { return count_; }

  Seats join(int ranks) override {
    std::vector<int> of_each(static_cast<size_t>(count_));
    check(MPI_Allgather(&ranks, 1, MPI_INT, of_each.data(), 1, MPI_INT, comm_), "MPI_Allgather");
    process_of_.clear();
    for (int p = 0; p < count_; ++p) {
      if (p == process_) seats_.first = static_cast<int>(process_of_.size());
      process_of_.insert(process_of_.end(), static_cast<size_t>(of_each[static_cast<size_t>(p)]), p);
    }
    seats_.count = ranks;
    seats_.all = static_cast<int>(process_of_.size());
    return seats_;
  }

  void exchange(const std::vector<const Transfer*>& transfers, Wait wait) override {
    std::vector<MPI_Request> requests;
    std::vector<int> from;  // the rank that each request waits for
    const auto start = [&](const Transfer::Piece& piece, int other, int tag, auto call, const char* name) {
      for (size_t at = 0; at < piece.bytes; at += kMostBytes) {
        requests.push_back(MPI_REQUEST_NULL);
        from.push_back(other);
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
    for (int here = 0; here < seats_.count; ++here)
      for (int other = 0; other < seats_.all; ++other) {
        if (process_of_[static_cast<size_t>(other)] == process_) continue;
        const int rank = seats_.first + here;
        const Transfer& transfer = *transfers[static_cast<size_t>(here)];
        start(transfer.receive[static_cast<size_t>(other)], other, other * seats_.all + rank, receive, "MPI_Irecv");
        start(transfer.send[static_cast<size_t>(other)], other, rank * seats_.all + other, send, "MPI_Isend");
      }
    wait_for(requests, from, wait);
  }

  [[noreturn]] void abort(int exit_code) noexcept override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  /// Asks again and again, since MPI has no wait that ends: first at once, then with ever longer pauses.
  void wait_for(std::vector<MPI_Request>& requests, const std::vector<int>& from, Wait wait) {
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
      if (requests[i] != MPI_REQUEST_NULL) silent.insert(from[i]);
    throw Error(Kind::comm,
                cat(list_of(silent), silent.size() == 1 ? " has" : " have", " not answered for ", limit_.count(),
                    " s: a process hangs or the network does; --comm-timeout lets it take longer"));
  }

  std::chrono::seconds limit_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int process_ = 0, count_ = 1;
  Seats seats_;
  std::vector<int> process_of_;  // [rank]
};

}  // namespace

std::unique_ptr<Processes> start_mpi(std::chrono::seconds limit) { return std::make_unique<MpiProcesses>(limit); }

}  // namespace hctr
