// Joins processes over TCP. Each pair of processes has one connection. In each exchange a process sends one message to
// each peer. The message contains all byte ranges from local ranks to ranks of the peer, ordered by sending rank, then
// by receiving rank. Both sides know this order, so the ranges need no names.
#include "core/comm/tcp_processes.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/build_info.h"
#include "core/base/expect.h"
#include "core/base/stopped_time.h"
#include "core/comm/rank_list.h"
#include "core/comm/tcp_join.h"
#include "core/comm/watch.h"

namespace hctr {
namespace {

using std::chrono::seconds;

/// The header of a message.
struct MessageHead {
  uint64_t exchange;  ///< number of the exchange
  uint64_t bytes;     ///< total bytes of all ranges
};

/// One direction of a message in progress: the remaining bytes of the header and of the ranges.
class Pieces {
 public:
  void start(MessageHead head) {
    head_ = head;
    left_ = {{&head_, sizeof head_}};
    at_ = 0;
  }
  void add(const Transfer::Piece& piece) {
    if (piece.bytes > 0) left_.push_back({piece.data, piece.bytes});
  }
  void expect_bytes(uint64_t bytes) { head_.bytes = bytes; }
  bool done() const { return at_ == left_.size(); }
  bool head_done() const { return at_ > 0; }
  const MessageHead& head() const { return head_; }

  /// Calls transfer(iovec*, count) until the call would block or the message is complete. transfer() returns the number
  /// of bytes, 0 at the end of the connection, or -1. Returns whether the connection is still open.
  template <class Call>
  bool advance(const Call& transfer) {
    while (!done()) {
      // Receive only the header first, because the caller checks the header before the ranges are filled.
      const size_t count = std::min<size_t>(head_done() || sends_ ? left_.size() - at_ : 1, 256);
      const bool at_head = !head_done();
      const ssize_t moved = transfer(&left_[at_], count);
      if (moved < 0 && errno == EINTR) continue;
      if (moved < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      if (moved == 0) return false;
      for (auto bytes = static_cast<size_t>(moved); bytes > 0;) {
        iovec& first = left_[at_];
        const size_t taken = std::min(bytes, first.iov_len);
        first.iov_base = static_cast<std::byte*>(first.iov_base) + taken;
        first.iov_len -= taken;
        bytes -= taken;
        if (first.iov_len == 0) ++at_;
      }
      if (!sends_ && at_head && head_done()) return true;
    }
    return true;
  }
  explicit Pieces(bool sends) : sends_(sends) {}

 private:
  bool sends_;
  MessageHead head_{};
  std::vector<iovec> left_;
  size_t at_ = 0;
};

class TcpProcesses : public Processes {
 public:
  TcpProcesses(const Launch& launch, const JoinLimits& limits, const Surroundings& around, JobConnections job)
      : process_(job.process),
        launched_{launch.process, launch.processes},
        limit_(limits.step),
        limit_setting_(limits.step_setting),
        hosts_(job.hosts),
        data_(std::move(job.data)),
        watch_(process_, std::move(job.control), job.hosts, limits.silence, around) {
    if (launch.local_process && launch.local_processes) {
      on_host_ = {*launch.local_process, *launch.local_processes};
    } else {
      const auto self = hosts_.begin() + process_;
      on_host_ = {static_cast<int>(std::count(hosts_.begin(), self, *self)),
                  static_cast<int>(std::count(hosts_.begin(), hosts_.end(), *self))};
    }
    for (size_t p = 0; p < data_.size(); ++p)
      if (data_[p].connected()) peers_.push_back({static_cast<int>(p), Pieces(true), Pieces(false)});
  }

  int process() const override { return process_; }
  int count() const override { return static_cast<int>(data_.size()); }

  Launched launched() const override { return launched_; }
  std::optional<OnHost> on_host() const override { return on_host_; }

  LocalRanks join(int ranks) override {
    // join() exchanges one number per process, so each process counts as one rank here.
    first_.resize(data_.size() + 1);
    for (size_t p = 0; p < first_.size(); ++p) first_[p] = static_cast<int>(p);
    std::vector<int> of_each(data_.size());
    Transfer transfer;
    for (int& number : of_each) {
      transfer.send.push_back({reinterpret_cast<std::byte*>(&ranks), sizeof ranks});
      transfer.receive.push_back({reinterpret_cast<std::byte*>(&number), sizeof number});
    }
    exchange({&transfer}, Wait::unlimited);
    of_each[static_cast<size_t>(process_)] = ranks;
    check_rank_counts(of_each, hosts_);
    for (size_t p = 0; p < of_each.size(); ++p) first_[p + 1] = first_[p] + of_each[p];
    return {first_[static_cast<size_t>(process_)], ranks, first_.back()};
  }

  void exchange(const std::vector<const Transfer*>& transfers, Wait wait) override {
    ++exchanges_;
    for (Peer& peer : peers_) {
      uint64_t sent = 0, received = 0;
      peer.send.start({exchanges_, 0});
      peer.receive.start({});
      const int first = first_[static_cast<size_t>(peer.process)], end = first_[static_cast<size_t>(peer.process) + 1];
      for (const Transfer* transfer : transfers)
        for (int other = first; other < end; ++other) {
          const Transfer::Piece& piece = transfer->send[static_cast<size_t>(other)];
          peer.send.add(piece);
          sent += piece.bytes;
        }
      for (int other = first; other < end; ++other)
        for (const Transfer* transfer : transfers) {
          const Transfer::Piece& piece = transfer->receive[static_cast<size_t>(other)];
          peer.receive.add(piece);
          received += piece.bytes;
        }
      peer.send.expect_bytes(sent);
      peer.expected = received;
      peer.checked = false;
    }
    finish(wait);
  }

  void abort(int exit_code) noexcept override { watch_.tell_to_end(exit_code); }

 private:
  struct Peer {
    int process;
    Pieces send, receive;
    uint64_t expected = 0;
    bool checked = false;  // whether check_head() has run for the received message
    bool done() const { return send.done() && receive.done(); }
  };

  std::string name_of(int process) const {
    const int first = first_[static_cast<size_t>(process)], last = first_[static_cast<size_t>(process) + 1] - 1;
    return cat("process ", process, " on ", hosts_[static_cast<size_t>(process)],
               first == last ? cat(" (rank ", first, ")") : cat(" (ranks ", first, " to ", last, ")"));
  }

  void advance(Peer& peer) {
    const int descriptor = data_[static_cast<size_t>(peer.process)].descriptor();
    const auto message = [](iovec* pieces, size_t count) {
      msghdr head{};
      head.msg_iov = pieces;
      head.msg_iovlen = count;
      return head;
    };
    const bool sending = peer.send.advance([&](iovec* pieces, size_t count) {
      const msghdr head = message(pieces, count);
      return ::sendmsg(descriptor, &head, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
    const auto receive = [&](iovec* pieces, size_t count) {
      msghdr head = message(pieces, count);
      return ::recvmsg(descriptor, &head, MSG_DONTWAIT);
    };
    bool receiving = peer.receive.advance(receive);
    if (receiving && peer.receive.head_done() && !peer.checked) {
      check_head(peer);
      receiving = peer.receive.advance(receive);
    }
    if (!sending || (!receiving && !peer.receive.done())) throw lost(peer);
  }

  void check_head(Peer& peer) const {
    const MessageHead& head = peer.receive.head();
    if (head.exchange != exchanges_ || head.bytes != peer.expected)
      throw Error(Kind::comm, cat(name_of(peer.process), " sends ", head.bytes, " bytes as message ", head.exchange,
                                  ", but ", peer.expected, " bytes are expected as message ", exchanges_,
                                  ": the config or the data of the processes differ"));
    peer.checked = true;
  }

  /// The error for a broken connection: the watch's error if available soon, otherwise a generic one.
  Error lost(const Peer& peer) const {
    if (const auto failure = watch_.failure_soon()) return *failure;
    return Error(Kind::comm, cat("the connection to ", name_of(peer.process), " has broken"));
  }

  void finish(Wait wait) {
    const bool limited = wait == Wait::limited && limit_.count() > 0;
    TcpClock::time_point end = TcpClock::now() + limit_;
    StoppedTime stopped;
    std::vector<pollfd> entries;
    for (;;) {
      entries.assign(1, {watch_.descriptor(), POLLIN, 0});
      for (Peer& peer : peers_) {
        if (!peer.done()) advance(peer);
        if (peer.done()) continue;
        const int wanted = (peer.send.done() ? 0 : POLLOUT) | (peer.receive.done() ? 0 : POLLIN);
        entries.push_back({data_[static_cast<size_t>(peer.process)].descriptor(), static_cast<short>(wanted), 0});
      }
      if (entries.size() == 1) return;
      const auto soon = std::min(end, TcpClock::now() + seconds(1));
      const int ready = ::poll(entries.data(), entries.size(), limited ? milliseconds_until(soon) : -1);
      end += stopped.since_last();
      if (ready < 0 && errno != EINTR) throw Error(Kind::comm, cat("poll: ", std::strerror(errno)));
      if (entries[0].revents != 0) throw *watch_.failure();
      if (limited && ready == 0 && TcpClock::now() >= end) throw late();
    }
  }

  Error late() const {
    std::string silent;
    int count = 0;
    for (const Peer& peer : peers_)
      if (!peer.done()) silent += cat(count++ > 0 ? ", " : "", name_of(peer.process));
    return Error(Kind::comm, cat(silent, count == 1 ? " has" : " have", " not answered within ", limit_.count(),
                                 " s: a process or the network hangs; ", limit_setting_, " sets a longer limit"));
  }

  int process_;
  Launched launched_;
  seconds limit_;
  std::string limit_setting_;
  std::vector<std::string> hosts_;
  OnHost on_host_;
  std::vector<TcpSocket> data_;  // [process]
  std::vector<Peer> peers_;
  std::vector<int> first_;  // [process]: its first rank; the last element is the total
  uint64_t exchanges_ = 0;
  Watch watch_;
};

}  // namespace

std::unique_ptr<Processes> start_tcp(const Launch& launch, const JoinLimits& limits, const Surroundings& around) {
  std::optional<TcpClock::time_point> lost_after;
  if (limits.lost) lost_after = TcpClock::now() + *limits.lost;
  const auto end = TcpClock::now() + limits.join;
  return std::make_unique<TcpProcesses>(
      launch, limits, around, join_job(launch, build_name(), end, Log(around.log), lost_after, limits.agreed));
}

}  // namespace hctr
