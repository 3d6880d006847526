#include "core/comm/acceptor.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/expect.h"
#include "core/comm/join_text.h"

namespace hctr {
namespace {

// Time limits for a new connection to authenticate: kToGreetInAll. Once kMostPending connections are pending, every
// connection that takes longer than kToGreetWhenFull is closed, so that new connections can be accepted.
constexpr size_t kMostPending = 256;
constexpr std::chrono::milliseconds kToGreetInAll{5000}, kToGreetWhenFull{100};

/// Sends a few bytes, which fit into a new connection's send buffer. Returns false if the connection does not accept
/// all bytes.
bool send_now(const TcpSocket& socket, const std::string& bytes) {
  return ::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace

Acceptor::Acceptor(const TcpListener& listener, std::vector<JobKey> keys, std::string kinds)
    : listener_(listener), keys_(std::move(keys)), kinds_(std::move(kinds)) {}

std::optional<Accepted> Acceptor::next(TcpClock::time_point end) {
  for (;;) {
    for (auto each = pending_.begin(); each != pending_.end();) {
      const State state = advance(*each);
      if (state == State::waits) {
        ++each;
        continue;
      }
      Pending done = std::move(*each);
      each = pending_.erase(each);
      if (state == State::greeted)
        return Accepted{std::move(done.socket), *done.kind, done.received.substr(sizeof(uint64_t))};
    }
    // Read before dropping late connections, because their data may have arrived while this process was suspended.
    drop_late();
    take_new();
    if (TcpClock::now() >= end) return std::nullopt;
    const bool full = pending_.size() >= kMostPending;
    std::vector<pollfd> entries = {{full ? -1 : listener_.descriptor(), POLLIN, 0}};
    for (const Pending& each : pending_) entries.push_back({each.socket.descriptor(), POLLIN, 0});
    auto until = end;
    if (!pending_.empty()) until = std::min(until, pending_.front().since + (full ? kToGreetWhenFull : kToGreetInAll));
    if (::poll(entries.data(), entries.size(), milliseconds_until(until)) < 0 && errno != EINTR)
      throw Error(Kind::comm, cat("poll: ", std::strerror(errno)));
  }
}

void Acceptor::drop_late() {
  const auto limit = pending_.size() >= kMostPending ? kToGreetWhenFull : kToGreetInAll;
  while (!pending_.empty() && TcpClock::now() - pending_.front().since >= limit) pending_.pop_front();
}

void Acceptor::take_new() {
  while (pending_.size() < kMostPending) {
    TcpSocket socket;
    try {
      socket = listener_.accept(TcpClock::now());
    } catch (const Error&) {  // there are no free descriptors, so close the oldest unauthenticated connection
      if (pending_.empty()) throw;
      pending_.pop_front();
      continue;
    }
    if (!socket.connected()) return;
    Pending pending{std::move(socket), TcpClock::now()};
    if (send_now(pending.socket, pending.challenge.text())) pending_.push_back(std::move(pending));
  }
}

bool Acceptor::fill(Pending& pending, size_t size) {
  while (pending.received.size() < size) {
    char bytes[512];
    const size_t wanted = std::min(sizeof bytes, size - pending.received.size());
    const ssize_t count = ::recv(pending.socket.descriptor(), bytes, wanted, MSG_DONTWAIT);
    if (count > 0) {
      pending.received.append(bytes, static_cast<size_t>(count));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)) {
      return false;
    } else if (errno != EINTR) {
      return true;
    }
  }
  return true;
}

Acceptor::State Acceptor::advance(Pending& pending) {
  if (!pending.kind) {
    if (!fill(pending, kAnswerBytes)) return State::over;
    if (pending.received.size() < kAnswerBytes) return State::waits;
    std::string verdict;
    std::optional<ConnectionKind> kind;
    for (auto key = keys_.begin(); !kind && key != keys_.end(); ++key)
      kind = pending.challenge.check(pending.received, *key, verdict);
    if (!kind && refused_++ == 0) first_refused_ = pending.socket.peer_address();
    if (!send_now(pending.socket, verdict) || !kind || kinds_.find(static_cast<char>(*kind)) == kinds_.npos)
      return State::over;
    pending.kind = kind;
    pending.received.clear();
  }
  uint64_t size = 0;
  if (!fill(pending, sizeof size)) return State::over;
  if (pending.received.size() < sizeof size) return State::waits;
  std::memcpy(&size, pending.received.data(), sizeof size);
  if (size > kMostGreeting || !fill(pending, sizeof size + size)) return State::over;
  return pending.received.size() == sizeof size + size ? State::greeted : State::waits;
}

}  // namespace hctr
