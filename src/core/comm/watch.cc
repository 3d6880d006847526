#include "core/comm/watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/base/printable.h"
#include "core/base/stopped_time.h"
#include "core/comm/join_text.h"

namespace hctr {
namespace {

using std::chrono::seconds;

// With these times and 20 s of silence, all processes end within 30 s, even if a GPU or MPI blocks on the lost peer.
// kToSayFailure is short, because mpirun gives a process only one second to report.
constexpr seconds kBeat{1}, kToEndAfterFailure{8}, kToLeave{5}, kToSend{2};
constexpr std::chrono::milliseconds kToSayFailure{200};
constexpr size_t kMostWatchText = 1 << 16, kMostReasonText = 4096;
const std::string kAlive = "alive", kBye = "bye", kFailed = "failed ", kAbort = "abort ";

void raise_event(int descriptor) {
  const uint64_t one = 1;
  (void)!::write(descriptor, &one, sizeof one);
}

}  // namespace

Watch::Watch(int process, std::vector<TcpSocket> control, std::vector<std::string> hosts, seconds silence,
             const Surroundings& around)
    : process_(process),
      silence_(silence),
      hosts_(std::move(hosts)),
      on_lost_peer_(around.on_lost_peer),
      end_process_(around.end_process),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  HCTR_EXPECT(wake_ >= 0 && stop_ >= 0, "eventfd");
  for (size_t p = 0; p < control.size(); ++p)
    if (control[p].connected())
      peers_.push_back({process == 0 ? static_cast<int>(p) : 0, std::move(control[p]), TcpClock::now()});
  thread_ = std::thread([this] { run(); });
}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  send_to_all(kBye);
  raise_event(stop_);
  thread_.join();
  ::close(wake_);
  ::close(stop_);
}

std::optional<Error> Watch::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<Error> Watch::failure_soon() const {
  const auto end = TcpClock::now() + seconds(2);
  while (!failure() && TcpClock::now() < end) {
    pollfd entry{wake_, POLLIN, 0};
    ::poll(&entry, 1, milliseconds_until(end));
  }
  return failure();
}

void Watch::tell_to_end(int exit_code) noexcept {
  try {
    send_to_all(cat(kAbort, exit_code));
  } catch (...) {  // no report: this process ends anyway, and the peers detect its end
  }
}

void Watch::run() {
  TcpClock::time_point last_beat{}, leave_by{};
  StoppedTime stopped;
  for (;;) {
    if (TcpClock::now() - last_beat >= kBeat) {
      send_to_all(kAlive);
      last_beat = TcpClock::now();
    }
    std::vector<pollfd> entries = {{stop_, POLLIN, 0}};
    for (const Peer& peer : peers_) entries.push_back({peer.left ? -1 : peer.socket.descriptor(), POLLIN, 0});
    const bool to_say = failure() && !said_;
    ::poll(entries.data(), entries.size(),
           milliseconds_until(to_say ? TcpClock::now() + kToSayFailure : last_beat + kBeat));
    for (size_t i = 0; i < peers_.size(); ++i)
      if (entries[i + 1].revents != 0) read_from(peers_[i]);
    bool ending = false, failed = false;
    TcpClock::time_point failed_at;
    {
      const std::lock_guard lock(mutex_);
      ending = ending_;
      failed = failure_.has_value();
      failed_at = failed_at_;
    }
    const auto not_running = stopped.since_last();
    for (Peer& peer : peers_) peer.heard += not_running;
    const auto now = TcpClock::now();
    if (ending) {
      if (leave_by == TcpClock::time_point{}) leave_by = now + kToLeave;
      if (failed || all_left() || now >= leave_by) return;
      if (entries[0].revents != 0) {  // read stop_, because poll() returns immediately while stop_ is readable
        uint64_t count = 0;
        (void)!::read(stop_, &count, sizeof count);
      }
      continue;
    }
    // A thread blocked on the lost peer, in a kernel or in MPI, cannot report the failure. This thread reports the
    // failure and ends the process.
    if (failed && now - failed_at >= kToSayFailure) say_failure();
    if (failed && now - failed_at >= kToEndAfterFailure) end_if_possible(exit_code(Kind::comm));
    for (Peer& peer : peers_)
      if (!failed && !peer.left && now - peer.heard > silence_)
        fail(peer, cat("has sent no heartbeat for ", silence_.count(),
                       " s: the process was stopped, or its host or the network does not answer"));
  }
}

void Watch::read_from(Peer& peer) {
  std::string text;
  try {
    text = peer.socket.receive_text(kMostWatchText, TcpClock::now() + kToSend);
  } catch (const Error&) {
    has_left(peer);
    return fail(peer, "ended before the other processes: the log of that process states the reason");
  }
  peer.heard = TcpClock::now();
  if (text == kBye) {
    has_left(peer);
  } else if (text.starts_with(kFailed)) {
    fail_with(printable(text.substr(kFailed.size(), kMostReasonText)));
  } else if (text.starts_with(kAbort)) {
    if (process_ == 0) send_to_all(text, &peer);
    say_failure();
    end_if_possible(exit_code_from(text.substr(kAbort.size())));
    fail_with(cat("process ", peer.process, " on ", hosts_.at(static_cast<size_t>(peer.process)),
                  " ended the other processes: the log of that process states the reason"));
  }
}

void Watch::has_left(Peer& peer) {
  const std::lock_guard lock(sending_);  // several threads read `left` in send_to_all()
  peer.left = true;
}

void Watch::fail(const Peer& peer, const std::string& why) {
  const std::string text =
      cat("process ", peer.process, " on ", hosts_.at(static_cast<size_t>(peer.process)), " ", why);
  bool ending = false;
  {
    const std::lock_guard lock(mutex_);
    ending = ending_;
  }
  if (ending) return;  // this process is shutting down and no longer needs the peer
  if (process_ == 0) send_to_all(kFailed + text, &peer);
  fail_with(text);
}

void Watch::fail_with(const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = Error(Kind::comm, text);
    failed_at_ = TcpClock::now();
  }
  raise_event(wake_);
}

void Watch::say_failure() {
  const auto known = failure();
  if (known && !std::exchange(said_, true) && on_lost_peer_) on_lost_peer_(*known);
}

void Watch::end_if_possible(int exit_code) {
  if (end_process_ && !std::exchange(ended_, true)) end_process_(exit_code);
}

void Watch::send_to_all(const std::string& text, const Peer* except) {
  const std::lock_guard lock(sending_);  // messages of two threads must not interleave
  for (const Peer& peer : peers_) try {
      if (&peer != except && !peer.left) peer.socket.send_text(text, TcpClock::now() + kToSend);
    } catch (const Error&) {  // ignore the error: the watch thread detects the lost peer
    }
}

bool Watch::all_left() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.left; });
}

}  // namespace hctr
