#include "core/comm/watch_join.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>

#include "core/base/expect.h"
#include "core/base/host_name.h"
#include "core/comm/acceptor.h"
#include "core/comm/join_text.h"
#include "core/comm/rank_list.h"

namespace hctr {
namespace {

using std::chrono::seconds;

constexpr seconds kToGreet{2};
constexpr const char* kWelcomeToWatch = "welcome";

/// Data that a process sends to the other processes. Texts are null-terminated.
struct Whereabouts {
  char host[256] = "";
  // Only process 0 sets the next two members.
  char addresses[1024] = "";  // separated by blanks
  Digest secret{};            // distributed through MPI, so only the job's processes know the secret
  int32_t port = 0;
};

/// Why a process could not connect; empty if it is connected.
struct Verdict {
  char why[512] = "";
};

template <size_t N>
void put(const std::string& text, char (&field)[N]) {
  text.copy(field, N - 1);
}

/// The addresses of this host's interfaces. Includes loopback, for processes on the same host.
std::string own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return host_name();
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::string text;
  for (const ifaddrs* each = list; each; each = each->ifa_next) {
    if (!each->ifa_addr || (each->ifa_flags & IFF_UP) == 0) continue;
    const bool v4 = each->ifa_addr->sa_family == AF_INET, v6 = each->ifa_addr->sa_family == AF_INET6;
    char name[NI_MAXHOST] = "";
    if ((!v4 && !v6) || ::getnameinfo(each->ifa_addr, v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6), name,
                                      sizeof name, nullptr, 0, NI_NUMERICHOST) != 0)
      continue;
    const std::string address = name;
    if (address.find('%') != address.npos) continue;  // skip link-local addresses, which end with a zone
    if (text.size() + address.size() + 1 < sizeof(Whereabouts::addresses)) text += (text.empty() ? "" : " ") + address;
  }
  return text;
}

JobKey watch_key(const Whereabouts& first) { return {std::string(std::begin(first.secret), std::end(first.secret))}; }

/// Process 0: accepts the heartbeat connections of the other processes.
std::vector<TcpSocket> accept_all(const TcpListener& listener, const JobKey& key, int count, TcpClock::time_point end) {
  std::vector<TcpSocket> control(static_cast<size_t>(count));
  Acceptor acceptor(listener, {key}, std::string(1, static_cast<char>(ConnectionKind::watch)));
  for (int missing = count - 1; missing > 0;) {
    auto accepted = acceptor.next(end);
    if (!accepted) break;
    const auto process = whole_number(accepted->greeting, 1, count - 1);
    if (!process) continue;
    try {
      accepted->socket.send_text(kWelcomeToWatch, TcpClock::now() + kToGreet);
    } catch (const Error&) {
      continue;  // the process has closed this connection, because it has connected through another address
    }
    TcpSocket& place = control[static_cast<size_t>(*process)];
    if (!place.connected()) --missing;
    // if a process connects twice, use the second connection, because the first attempt timed out
    place = std::move(accepted->socket);
  }
  return control;
}

TcpSocket connect_to_first(const Whereabouts& first, int process, TcpClock::time_point end) {
  std::istringstream words(first.addresses);
  const std::vector<std::string> addresses(std::istream_iterator<std::string>(words), {});
  return connect_to_any(addresses, first.port, cat("process 0 on ", first.host), end, [&](const TcpSocket& socket) {
    try {
      const auto soon = std::min(end, TcpClock::now() + kToGreet);
      if (!prove_membership(socket, watch_key(first), ConnectionKind::watch, soon)) return false;
      socket.send_text(std::to_string(process), soon);
      return socket.receive_text(kMostGreeting, soon) == kWelcomeToWatch;
    } catch (const Error&) {
      return false;
    }
  });
}

}  // namespace

WatchConnections connect_watches(int process, int count, const std::optional<std::string>& address, seconds limit,
                                 const GatherBytes& gather) {
  std::optional<TcpListener> listener;
  Whereabouts mine;
  put(host_name(), mine.host);
  if (process == 0) {
    listener.emplace(0, address.value_or(""));
    put(address.value_or(own_addresses()), mine.addresses);
    mine.secret = unpredictable_bytes();
    mine.port = listener->port();
  }
  std::vector<Whereabouts> all(static_cast<size_t>(count));
  gather(&mine, sizeof mine, all.data());

  WatchConnections connections;
  for (const Whereabouts& each : all) connections.hosts.emplace_back(each.host);
  const TcpClock::time_point end = TcpClock::now() + limit;
  Verdict verdict;
  if (process == 0) {
    connections.control = accept_all(*listener, watch_key(mine), count, end + kToGreet);
  } else {
    connections.control.resize(1);
    try {
      connections.control[0] = connect_to_first(all[0], process, end);
    } catch (const Error& error) {
      put(error.what(), verdict.why);
    }
  }
  std::vector<Verdict> verdicts(static_cast<size_t>(count));
  gather(&verdict, sizeof verdict, verdicts.data());
  std::set<int> missing;
  std::string why;
  for (int p = 1; p < count; ++p) {
    const std::string its = verdicts[static_cast<size_t>(p)].why;
    if (its.empty()) continue;
    if (missing.empty()) why = its;
    missing.insert(p);
    if (process == 0) connections.control[static_cast<size_t>(p)] = TcpSocket();
  }
  if (!missing.empty()) connections.missing = cat(process_list(missing), ": ", why);
  return connections;
}

}  // namespace hctr
