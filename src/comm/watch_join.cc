#include "comm/watch_join.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/host_name.h"
#include "comm/rank_list.h"

namespace hctr {
namespace {

using std::chrono::seconds;

constexpr size_t kMostGreeting = 256;
constexpr seconds kToGreet{2};
constexpr const char* kWelcome = "welcome";

/// What a process tells the others. Texts end with a zero.
struct Whereabouts {
  char host[256] = "";
  // Of process 0:
  char addresses[1024] = "";  // with blanks between them
  uint64_t job = 0;           // tells those who connect from others
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

/// The addresses of this host's interfaces, its own for processes beside this one included.
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
    if (address.find('%') != address.npos) continue;  // of one cable only
    if (text.size() + address.size() + 1 < sizeof(Whereabouts::addresses)) text += (text.empty() ? "" : " ") + address;
  }
  return text;
}

std::string greeting(uint64_t job) { return cat("huge_ctr watch ", job, " "); }

/// The number of the process that has connected; 0 if it is somebody else.
int greeted_by(const TcpSocket& socket, uint64_t job) {
  try {
    const std::string text = socket.receive_text(kMostGreeting, TcpClock::now() + kToGreet), start = greeting(job);
    if (!text.starts_with(start)) return 0;
    socket.send_text(kWelcome, TcpClock::now() + kToGreet);
    return std::atoi(text.c_str() + start.size());
  } catch (const Error&) {
    return 0;
  }
}

/// Process 0. Those who connect and say nothing keep nobody waiting: processes try several addresses at once.
std::vector<TcpSocket> accept_all(const TcpListener& listener, uint64_t job, int count, TcpClock::time_point end) {
  std::vector<TcpSocket> control(static_cast<size_t>(count)), silent;
  for (int missing = count - 1; missing > 0 && TcpClock::now() < end;) {
    std::vector<pollfd> entries = {{listener.descriptor(), POLLIN, 0}};
    for (const TcpSocket& socket : silent) entries.push_back({socket.descriptor(), POLLIN, 0});
    ::poll(entries.data(), entries.size(), milliseconds_until(end));
    for (size_t i = silent.size(); i-- > 0;) {
      if (entries[i + 1].revents == 0) continue;
      TcpSocket socket = std::move(silent[i]);
      silent.erase(silent.begin() + static_cast<std::ptrdiff_t>(i));
      const int process = greeted_by(socket, job);
      if (process < 1 || process >= count) continue;
      TcpSocket& place = control[static_cast<size_t>(process)];
      if (!place.connected()) --missing;
      place = std::move(socket);  // of two the first was too late
    }
    if (entries[0].revents == 0) continue;
    if (TcpSocket socket = listener.accept(TcpClock::now()); socket.connected()) silent.push_back(std::move(socket));
  }
  return control;
}

TcpSocket connect_to_first(const Whereabouts& first, int process, TcpClock::time_point end) {
  std::istringstream words(first.addresses);
  const std::vector<std::string> addresses(std::istream_iterator<std::string>(words), {});
  return connect_to_any(addresses, first.port, cat("process 0 on ", first.host), end, [&](const TcpSocket& socket) {
    try {
      const auto soon = std::min(end, TcpClock::now() + kToGreet);
      socket.send_text(greeting(first.job) + std::to_string(process), soon);
      return socket.receive_text(kMostGreeting, soon) == kWelcome;
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
    listener.emplace(0);
    put(address.value_or(own_addresses()), mine.addresses);
    std::random_device random;
    mine.job = uint64_t{random()} << 32 | random();
    mine.port = listener->port();
  }
  std::vector<Whereabouts> all(static_cast<size_t>(count));
  gather(&mine, sizeof mine, all.data());

  WatchConnections connections;
  for (const Whereabouts& each : all) connections.hosts.emplace_back(each.host);
  const TcpClock::time_point end = TcpClock::now() + limit;
  Verdict verdict;
  if (process == 0) {
    connections.control = accept_all(*listener, mine.job, count, end + kToGreet);
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
