#include "comm/tcp_join.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/host_name.h"
#include "comm/rank_list.h"

namespace hctr {
namespace {

using std::chrono::seconds;

constexpr std::string_view kGreeting = "huge_ctr job 1";  // the number is that of what is said below
constexpr size_t kMostText = 1 << 20;

/// What a process says when it has connected: fields by name.
using Hello = std::map<std::string, std::string>;

std::string text_of(const Hello& hello) {
  std::string text(kGreeting);
  for (const auto& [name, value] : hello) text += cat("\n", name, " ", value);
  return text;
}

/// Empty if the text is of another program.
Hello hello_from(const std::string& text) {
  Hello hello;
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != kGreeting) return {};
  while (std::getline(lines, line)) {
    const size_t blank = std::min(line.find(' '), line.size());
    hello[line.substr(0, blank)] = blank < line.size() ? line.substr(blank + 1) : "";
  }
  return hello;
}

int integer(const Hello& hello, const char* name) {
  const auto found = hello.find(name);
  return found == hello.end() ? -1 : std::atoi(found->second.c_str());
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

/// Process 0: waits for all others.
class Host {
 public:
  Host(const Launch& launch, std::string_view version, TcpClock::time_point end,
       std::optional<TcpClock::time_point> lost_after)
      : launch_(launch),
        version_(version),
        end_(end),
        lost_after_(lost_after),
        listener_(launch.port),
        members_(static_cast<size_t>(launch.processes)) {}

  JobConnections join(const Log& log) {
    members_[0].host = host_name();
    members_[0].address = launch_.address;
    try {
      while (!missing().empty()) {
        TcpSocket socket = listener_.accept(lost_after_.value_or(end_));
        if (!socket.connected() && lost_after_) break;
        if (!socket.connected()) fail_missing();
        take(std::move(socket));
      }
    } catch (const Error& error) {
      tell_all(error);
      throw;
    }
    leave_out_missing(log);
    send_table();
    JobConnections job;
    std::map<std::string, int> on_host;
    for (Member& member : members_) {
      ++on_host[member.host];
      job.hosts.push_back(member.host);
      job.data.push_back(std::move(member.data));
      job.control.push_back(std::move(member.control));
    }
    std::string hosts;
    for (const auto& [name, count] : on_host) hosts += cat(hosts.empty() ? "" : ", ", name, " (", count, ")");
    log.info(members_.size(), members_.size() == 1 ? " process goes on alone, on " : " processes joined over TCP, on ",
             hosts, ".");
    return job;
  }

 private:
  struct Member {
    std::string host, address;
    int port = 0;
    TcpSocket data, control;
    int launched = 0;  // the number that the launcher gave
  };

  std::vector<int> missing() const {
    std::vector<int> processes;
    for (size_t p = 1; p < members_.size(); ++p)
      if (!members_[p].data.connected() || !members_[p].control.connected()) processes.push_back(static_cast<int>(p));
    return processes;
  }
  /// The job cannot start: those that are here hear why, and those that come within a few seconds, so that they do not
  /// try to connect until their own time is over.
  void tell_all(const Error& error) {
    const std::string text = cat("error\n", error.what());
    for (const Member& member : members_)
      if (member.data.connected()) try_to_send(member.data, text);
    std::vector<int> late = missing();
    std::erase(late, refused_);
    const TcpClock::time_point end = std::min(end_, TcpClock::now() + seconds(10));
    while (!late.empty()) {
      const TcpSocket socket = listener_.accept(end);
      if (!socket.connected()) return;
      try {
        Hello hello = hello_from(socket.receive_text(kMostText, std::min(end, TcpClock::now() + seconds(2))));
        if (hello.empty() || hello["job"] != launch_.job) continue;
        std::erase(late, integer(hello, "process"));
        try_to_send(socket, text);
      } catch (const Error&) {  // somebody else
      }
    }
  }
  [[noreturn]] void fail_missing() const {
    const std::vector<int> late = missing();
    throw Error(Kind::comm, cat(process_list({late.begin(), late.end()}), late.size() == 1 ? " has" : " have",
                                " not reported to process 0 on ", host_name(), ", port ", listener_.port(),
                                ", in time; ", launch_.processes, " were started (", launch_.launcher,
                                "). Have all been started, and does a firewall let the port through?"));
  }
  /// After a restart: the others take the numbers of those that have not come.
  void leave_out_missing(const Log& log) {
    const std::vector<int> lost = missing();
    if (lost.empty()) return;
    log.warning(process_list({lost.begin(), lost.end()}), lost.size() == 1 ? " has" : " have",
                " not come back in time after the restart (--restart-wait): training goes on without ",
                lost.size() == 1 ? "it" : "them");
    std::vector<Member> here;
    for (size_t p = 0; p < members_.size(); ++p)
      if (!std::binary_search(lost.begin(), lost.end(), static_cast<int>(p))) here.push_back(std::move(members_[p]));
    members_ = std::move(here);
  }
  /// Takes a connection. One of another program, or of another job, is closed.
  void take(TcpSocket socket) {
    Hello hello;
    try {
      hello = hello_from(socket.receive_text(kMostText, std::min(end_, TcpClock::now() + seconds(5))));
    } catch (const Error&) {
      return;  // somebody else, who looks what listens here
    }
    if (hello.empty() || hello["job"] != launch_.job) return;
    const int process = integer(hello, "process");
    const std::string who = cat("process ", process, " on ", hello["host"]);
    const auto refuse = [&](const std::string& why) {
      const Error error(Kind::comm, cat(who, " ", why));
      refused_ = process;
      try_to_send(socket, cat("error\n", error.what()));
      throw error;
    };
    if (hello["version"] != version_)
      refuse(cat("runs ", hello["version"], " and process 0 on ", host_name(), " runs ", version_,
                 ": all must run one program"));
    if (integer(hello, "processes") != launch_.processes)
      refuse(cat("was started as one of ", hello["processes"], " and process 0 as one of ", launch_.processes));
    if (process < 1 || process >= launch_.processes)
      refuse(cat("has a number that is not between 1 and ", launch_.processes - 1));
    Member& member = members_[static_cast<size_t>(process)];
    TcpSocket& place = hello["kind"] == "control" ? member.control : member.data;
    if (place.connected()) refuse(cat("was started twice; the first is on ", member.host));
    member.host = hello["host"];
    // Others cannot reach the loopback address of this host.
    const std::string address = socket.peer_address();
    member.address = is_loopback(address) ? launch_.address : address;
    member.launched = process;
    if (hello["kind"] != "control") member.port = integer(hello, "port");
    try_to_send(socket, "welcome");  // whoever is refused hears of it at once
    place = std::move(socket);
  }
  static void try_to_send(const TcpSocket& socket, const std::string& text) {
    try {
      socket.send_text(text, TcpClock::now() + seconds(2));
    } catch (const Error&) {  // it ends by its own limit
    }
  }

  void send_table() const {
    std::string table = "members";
    for (const Member& member : members_)
      table += cat("\n", member.launched, " ", member.port, " ", member.address, " ", member.host);
    for (size_t p = 1; p < members_.size(); ++p)
      in_context(
          [&] {
            return cat("telling process ", members_[p].launched, " on ", members_[p].host, " where the others are");
          },
          [&] { members_[p].data.send_text(table, end_); });
  }

  const Launch& launch_;
  std::string version_;
  TcpClock::time_point end_;
  std::optional<TcpClock::time_point> lost_after_;
  TcpListener listener_;
  std::vector<Member> members_;
  int refused_ = 0;  // the process with which the job cannot start
};

/// The other processes.
class Guest {
 public:
  Guest(const Launch& launch, std::string_view version, TcpClock::time_point end)
      : launch_(launch), version_(version), end_(end), listener_(0) {}

  JobConnections join() {
    JobConnections job;
    job.data.resize(1);
    const auto to_host = [&](const char* kind) {
      TcpSocket socket = connect_to(launch_.address, launch_.port, "process 0", end_);
      socket.send_text(hello(kind), end_);
      next_message(socket);  // "welcome"
      return socket;
    };
    job.data[0] = to_host("data");
    try {
      job.control.push_back(to_host("control"));
    } catch (const Error&) {
      next_message(job.data[0]);  // process 0 has given up, and says here why
      throw;
    }
    std::istringstream lines(next_message(job.data[0]));
    std::string line;
    std::getline(lines, line);  // "members"
    std::vector<int> launched;  // by process
    bool before = true;         // this one in the table
    for (size_t p = 0; std::getline(lines, line); ++p) {
      std::istringstream words(line);
      int number = 0, port = 0;
      std::string address, host;
      words >> number >> port >> address >> host;
      job.hosts.push_back(host);
      launched.push_back(number);
      job.data.resize(std::max(job.data.size(), p + 1));
      if (number == launch_.process) {
        job.process = static_cast<int>(p);
        before = false;
      }
      if (p == 0 || !before) continue;
      job.data[p] = connect_to(address, port, cat("process ", number, " on ", host), end_);
      job.data[p].send_text(hello("data"), end_);
    }
    while (std::any_of(job.data.begin() + job.process + 1, job.data.end(),
                       [](const TcpSocket& socket) { return !socket.connected(); }))
      accept_into(job, launched);
    return job;
  }

 private:
  std::string hello(const char* kind) const {
    return text_of({{"kind", kind},
                    {"job", launch_.job},
                    {"version", version_},
                    {"process", std::to_string(launch_.process)},
                    {"processes", std::to_string(launch_.processes)},
                    {"host", host_name()},
                    {"port", std::to_string(listener_.port())}});
  }
  std::string next_message(const TcpSocket& from) const {
    std::string text = in_context(
        [&] { return cat("joining process 0 at ", launch_.address, ", port ", launch_.port); },
        [&] { return from.receive_text(kMostText, end_ + seconds(5)); });  // which has a reason to say at `end`
    constexpr std::string_view kError = "error\n";
    if (text.starts_with(kError)) throw Error(Kind::comm, text.substr(kError.size()));
    return text;
  }
  void accept_into(JobConnections& job, const std::vector<int>& launched) const {
    TcpSocket socket = listener_.accept(end_);
    if (!socket.connected())
      throw Error(Kind::comm, cat("process ", launch_.process, " on ", host_name(), ", port ", listener_.port(),
                                  ", has waited in vain for processes with higher numbers: does a firewall let "
                                  "connections between the hosts through?"));
    Hello hello;
    try {
      hello = hello_from(socket.receive_text(kMostText, std::min(end_, TcpClock::now() + seconds(5))));
    } catch (const Error&) {
      return;
    }
    const auto found = std::find(launched.begin() + job.process + 1, launched.end(), integer(hello, "process"));
    if (hello.empty() || hello["job"] != launch_.job || found == launched.end()) return;
    job.data[static_cast<size_t>(found - launched.begin())] = std::move(socket);
  }

  const Launch& launch_;
  std::string version_;
  TcpClock::time_point end_;
  TcpListener listener_;
};

}  // namespace

JobConnections join_job(const Launch& launch, std::string_view version, TcpClock::time_point end, const Log& log,
                        std::optional<TcpClock::time_point> lost_after) {
  return launch.process == 0 ? Host(launch, version, end, lost_after).join(log) : Guest(launch, version, end).join();
}

}  // namespace hctr
