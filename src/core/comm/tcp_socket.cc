#include "core/comm/tcp_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/expect.h"
#include "core/base/host_name.h"

namespace hctr {
namespace {

std::string reason_of(int error) { return std::strerror(error); }

/// Returns the address as text, or an empty text if the system cannot format it.
std::string address_text(const sockaddr_storage& address, socklen_t size) {
  char text[NI_MAXHOST] = "";
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) !=
      0)
    return "";
  const std::string name(text);
  constexpr std::string_view kMapped = "::ffff:";  // prefix of an IPv4 address on an IPv6 socket
  return name.starts_with(kMapped) ? name.substr(kMapped.size()) : name;
}

/// A non-blocking send() or recv(). If the call would block, wait in poll() for `event`, then repeat the call.
template <class Byte>
struct TransferCall {
  const char* name;
  short event;
  ssize_t (*call)(int descriptor, Byte* data, size_t bytes);
};
constexpr TransferCall<const char> kSend{"send", POLLOUT, [](int descriptor, const char* data, size_t count) {
                                           return ::send(descriptor, data, count, MSG_NOSIGNAL | MSG_DONTWAIT);
                                         }};
constexpr TransferCall<char> kReceive{"recv", POLLIN, [](int descriptor, char* data, size_t count) {
                                        return ::recv(descriptor, data, count, MSG_DONTWAIT);
                                      }};

/// Sends or receives all bytes.
template <class Byte>
void transfer_all(int descriptor, std::span<Byte> bytes, TcpClock::time_point end, const TransferCall<Byte>& transfer) {
  while (!bytes.empty()) {
    const ssize_t done = transfer.call(descriptor, bytes.data(), bytes.size());
    if (done > 0) {
      bytes = bytes.subspan(static_cast<size_t>(done));
    } else if (done == 0) {
      throw Error(Kind::comm, "the peer closed the connection");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_until_ready(descriptor, transfer.event, end))
        throw Error(Kind::comm, "the peer did not answer in time");
    } else if (errno != EINTR) {
      throw Error(Kind::comm, cat(transfer.name, ": ", reason_of(errno)));
    }
  }
}

/// Starts to connect. Returns 0 if connected, EINPROGRESS if the socket will become writable, otherwise the errno.
int begin_connect(const addrinfo& address, TcpSocket& socket) {
  socket = TcpSocket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.connected()) return errno;
  return ::connect(socket.descriptor(), address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
}

/// After the socket became writable: returns 0 if it is connected, otherwise the errno of the connection attempt.
int connect_result(const TcpSocket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

/// Tries one address. Returns 0 or the errno.
int try_address(const addrinfo& address, TcpClock::time_point end, TcpSocket& socket) {
  const int begun = begin_connect(address, socket);
  if (begun != EINPROGRESS) return begun;
  return wait_until_ready(socket.descriptor(), POLLOUT, end) ? connect_result(socket) : ETIMEDOUT;
}

}  // namespace

std::unique_ptr<addrinfo, FreeAddresses> addresses_of(const std::string& host, int port, std::string& why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) why = cat("the host name is unknown (", ::gai_strerror(status), ")");
  return std::unique_ptr<addrinfo, FreeAddresses>(found);
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "localhost" || address.ends_with(".localhost");
}

bool wait_until_ready(int descriptor, short events, TcpClock::time_point end) {
  pollfd entry{descriptor, events, 0};
  for (;;) {
    const int ready = ::poll(&entry, 1, milliseconds_until(end));
    if (ready > 0) return true;
    if (ready == 0 && TcpClock::now() >= end) return false;
    if (ready < 0 && errno != EINTR) throw Error(Kind::comm, cat("poll: ", reason_of(errno)));
  }
}

void send_at_once(int descriptor) {
  const int on = 1;
  // Nagle's algorithm would delay the requests and responses of the protocol.
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int milliseconds_until(TcpClock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - TcpClock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left + 1, 0, 1000 * 1000));
}

TcpSocket::~TcpSocket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

TcpSocket& TcpSocket::operator=(TcpSocket&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = other.release();
  }
  return *this;
}

int TcpSocket::release() { return std::exchange(descriptor_, -1); }

std::string TcpSocket::peer_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const bool known = ::getpeername(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const std::string text = known ? address_text(address, size) : "";
  return text.empty() ? "unknown address" : text;
}

std::string TcpSocket::own_address() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) == 0 ? address_text(address, size)
                                                                                       : "";
}

void TcpSocket::send_bytes(std::string_view bytes, TcpClock::time_point end) const {
  transfer_all(descriptor_, std::span(bytes), end, kSend);
}

void TcpSocket::receive_bytes(std::span<char> bytes, TcpClock::time_point end) const {
  transfer_all(descriptor_, bytes, end, kReceive);
}

void TcpSocket::send_text(std::string_view text, TcpClock::time_point end) const {
  const uint64_t size = text.size();
  std::string message(reinterpret_cast<const char*>(&size), sizeof size);
  message += text;
  send_bytes(message, end);
}

std::string TcpSocket::receive_text(size_t most, TcpClock::time_point end) const {
  uint64_t size = 0;
  receive_bytes({reinterpret_cast<char*>(&size), sizeof size}, end);
  if (size > most) throw Error(Kind::comm, cat("a message of ", size, " bytes: the peer runs another program"));
  std::string text(size, '\0');
  receive_bytes(text, end);
  return text;
}

TcpSocket connect_to(const std::string& host, int port, const std::string& what, TcpClock::time_point end) {
  const TcpClock::time_point begin = TcpClock::now();
  const auto fail = [&](const std::string& why) {
    // Round to whole seconds. The caller computed `end` before `begin`, so truncation would report a second too few.
    const auto seconds = std::chrono::round<std::chrono::seconds>(TcpClock::now() - begin).count();
    throw Error(
        Kind::comm,
        cat(host_name(), " cannot connect to ", what, " at ", host, ", port ", port, ": ", why, " (tried for ", seconds,
            " s). Was the process started, does the address belong to its host, and does a firewall block the port?"));
  };
  std::string why = "no answer";
  for (;;) {
    const auto list = addresses_of(host, port, why);
    for (const addrinfo* each = list.get(); each; each = each->ai_next) {
      // Limit each address to 10 s, because an address that drops packets must leave time for the other addresses.
      const auto until = std::min(end, TcpClock::now() + std::chrono::seconds(10));
      TcpSocket socket;
      const int error = try_address(*each, until, socket);
      if (error == 0) {
        send_at_once(socket.descriptor());
        return socket;
      }
      why = reason_of(error);
    }
    if (TcpClock::now() >= end) fail(why);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

TcpSocket connect_to_any(const std::vector<std::string>& addresses, int port, const std::string& what,
                         TcpClock::time_point end, const std::function<bool(const TcpSocket&)>& suits) {
  struct Attempt {
    std::string address, why;
    TcpSocket socket;
  };
  std::vector<Attempt> attempts;
  const auto settle = [](Attempt& attempt, const std::string& why) {
    attempt.why = why;
    attempt.socket = TcpSocket();
  };
  for (const std::string& address : addresses) {
    std::string why;
    const auto list = addresses_of(address, port, why);
    if (!list) attempts.push_back({address, why, {}});
    for (const addrinfo* each = list.get(); each; each = each->ai_next) {
      Attempt& attempt = attempts.emplace_back(Attempt{address, "no answer", {}});
      const int begun = begin_connect(*each, attempt.socket);
      if (begun != 0 && begun != EINPROGRESS) settle(attempt, reason_of(begun));
    }
  }
  const auto open = [](const Attempt& attempt) { return attempt.socket.connected(); };
  while (TcpClock::now() < end && std::any_of(attempts.begin(), attempts.end(), open)) {
    std::vector<pollfd> entries;
    for (const Attempt& attempt : attempts) entries.push_back({attempt.socket.descriptor(), POLLOUT, 0});
    ::poll(entries.data(), entries.size(), milliseconds_until(end));
    for (size_t i = 0; i < attempts.size(); ++i) {
      if (entries[i].revents == 0) continue;
      const int error = connect_result(attempts[i].socket);
      if (error != 0) {
        settle(attempts[i], reason_of(error));
        continue;
      }
      send_at_once(attempts[i].socket.descriptor());
      if (suits(attempts[i].socket)) return std::move(attempts[i].socket);
      settle(attempts[i], "another program answers");
    }
  }
  std::string tried;
  for (const Attempt& attempt : attempts) tried += cat(tried.empty() ? "" : ", ", attempt.address, ": ", attempt.why);
  throw Error(Kind::comm, cat(host_name(), " cannot connect to ", what, ", port ", port, " (", tried, ")"));
}

}  // namespace hctr
