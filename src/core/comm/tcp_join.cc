#include "core/comm/tcp_join.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "core/base/expect.h"
#include "core/base/host_name.h"
#include "core/base/printable.h"
#include "core/comm/acceptor.h"
#include "core/comm/job_secret.h"
#include "core/comm/join_text.h"
#include "core/comm/rank_list.h"

namespace hctr {
namespace {

using std::chrono::seconds;

constexpr seconds kHandshakeLimit{10}, kLookAtHost{1};
constexpr size_t kMostReason = 4096;
constexpr const char *kWelcome = "welcome", *kKept = "kept";

JobKey key_of(const Launch& launch, const AgreedSecret& agreed) {
  if (!launch.secret.empty()) return {launch.secret, launch.job};
  const std::string made = agreed.text();
  return {made, launch.job, !made.empty()};
}

/// Why the job cannot start.
struct Refusal {
  Error error;
  /// Sent to other processes if there is no secret. Without a secret any program may connect, so this text reveals
  /// neither the host name nor the version of process 0.
  std::string to_others;
};

/// Process 0: waits for all other processes.
class Host {
 public:
  Host(const Launch& launch, std::string_view version, TcpClock::time_point end,
       std::optional<TcpClock::time_point> lost_after, AgreedSecret& agreed)
      : launch_(launch),
        version_(version),
        end_(end),
        lost_after_(lost_after),
        agreed_(agreed),
        open_(launch.secret.empty() && !agreed.known_to_all()),
        listener_(launch.port, launch.address),
        acceptor_(listener_, keys(), "dc"),
        members_(static_cast<size_t>(launch.processes)) {}

  JobConnections join(const Log& log) {
    say_who_may_join(log);
    members_[0].host = host_name();
    members_[0].address = launch_.address;
    try {
      while (!missing().empty()) {
        auto accepted = acceptor_.next(lost_after_.value_or(end_));
        if (!accepted && lost_after_) break;
        if (!accepted) fail_missing();
        take(std::move(*accepted));
      }
    } catch (const Refusal& refusal) {
      tell_all(open_ ? refusal.to_others : refusal.error.what());
      throw Error(refusal.error);
    } catch (const Error& error) {
      tell_all(error.what());
      throw;
    }
    if (acceptor_.refused() > 0) log.warning(refused_connections());
    leave_out_missing(log);
    send_table();
    if (launch_.secret.empty()) hear_that_all_keep_the_secret();
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
    log.info(members_.size(),
             members_.size() == 1 ? " process continues alone, on " : " processes joined over TCP, on ", hosts, ".");
    return job;
  }

 private:
  struct Member {
    std::string host, address;
    int port = 0;
    TcpSocket data, control;
    int launched = 0;  // number assigned by the launcher
  };

  /// Returns the accepted keys. If the user set no secret, generates one and stores it before sending it. Every process
  /// that received the generated secret can therefore join again. Until all processes have acknowledged a generated
  /// secret, an empty secret is also accepted.
  std::vector<JobKey> keys() const {
    if (launch_.secret.empty() && agreed_.text().empty()) agreed_.set(make_job_secret());
    std::vector<JobKey> keys{key_of(launch_, agreed_)};
    if (open_) keys.push_back({"", launch_.job});
    return keys;
  }
  std::vector<int> missing() const {
    std::vector<int> processes;
    for (size_t p = 1; p < members_.size(); ++p)
      if (!members_[p].data.connected() || !members_[p].control.connected()) processes.push_back(static_cast<int>(p));
    return processes;
  }
  void say_who_may_join(const Log& log) const {
    const std::string& because = listener_.all_because();
    const std::string all =
        because.empty() ? "" : cat(" on all interfaces (MASTER_ADDR=\"", launch_.address, "\": ", because, ")");
    const bool this_host_only = is_loopback(launch_.address) && !listener_.at_all_interfaces();
    if (open_ && !this_host_only && !lost_after_)
      log.warning("any process that reaches port ", listener_.port(), " of ", host_name(), all,
                  " can join this job or end it, because the job has no secret. Set HCTR_JOB_SECRET or "
                  "HCTR_JOB_SECRET_FILE, the same for all processes (openssl rand -hex 32 creates a secret)");
    else if (!all.empty())
      log.info("Process 0 waits for the other processes at port ", listener_.port(), all, ".");
  }
  std::string refused_connections() const {
    const int64_t refused = acceptor_.refused();
    return cat(refused, refused == 1 ? " connection, from " : " connections, the first from ",
               acceptor_.first_refused(), refused == 1 ? ", was closed: its" : ", were closed: their", " peer ",
               "runs another program, belongs to another job, ",
               open_ ? "or has a secret, while this process has none"
               : launch_.secret.empty()
                   ? "or was restarted and does not know the secret that the processes created when they first "
                     "joined: set HCTR_JOB_SECRET or HCTR_JOB_SECRET_FILE on all hosts so that restarted processes "
                     "can join"
                   : "or has a different secret or none");
  }
  /// Called if the job cannot start. Sends the reason to the connected processes, and to processes that connect within
  /// the next 10 s. Processes that receive the reason fail without waiting for their own time limit.
  void tell_all(const std::string& why) {
    const std::string text = cat("error\n", why);
    for (const Member& member : members_)
      if (member.data.connected()) try_to_send(member.data, text);
    std::vector<int> late = missing();
    std::erase(late, refused_);
    const TcpClock::time_point end = std::min(end_, TcpClock::now() + seconds(10));
    while (!late.empty()) {
      const auto accepted = acceptor_.next(end);
      if (!accepted) return;
      const auto greeting = greeting_from(accepted->greeting);
      if (!greeting) continue;
      std::erase(late, greeting->process);
      try_to_send(accepted->socket, text);
    }
  }
  [[noreturn]] void fail_missing() const {
    const std::vector<int> late = missing();
    throw Error(Kind::comm, cat(process_list({late.begin(), late.end()}), late.size() == 1 ? " has" : " have",
                                " not reported to process 0 on ", host_name(), ", port ", listener_.port(),
                                ", in time; ", launch_.processes, " were started (", launch_.launcher,
                                "). Have all been started, and does a firewall block the port?",
                                acceptor_.refused() > 0 ? cat(" ", refused_connections()) : ""));
  }
  /// After a restart: removes lost processes and renumbers the remaining ones.
  void leave_out_missing(const Log& log) {
    const std::vector<int> lost = missing();
    if (lost.empty()) return;
    log.warning(process_list({lost.begin(), lost.end()}), lost.size() == 1 ? " has" : " have",
                " not returned in time after the restart (--restart-wait): training continues without ",
                lost.size() == 1 ? "it" : "them");
    std::vector<Member> here;
    for (size_t p = 0; p < members_.size(); ++p)
      if (!std::binary_search(lost.begin(), lost.end(), static_cast<int>(p))) here.push_back(std::move(members_[p]));
    members_ = std::move(here);
  }
  /// Registers a connection, or closes it if its greeting is invalid.
  void take(Accepted accepted) {
    const auto greeting = greeting_from(accepted.greeting);
    if (!greeting) return;
    const int process = greeting->process;
    const std::string who = cat("process ", process, " on ", greeting->host);
    const auto refuse = [&](const std::string& why, const std::string& to_others) {
      const Refusal refusal{Error(Kind::comm, cat(who, " ", why)), cat(who, " ", to_others)};
      refused_ = process;
      try_to_send(accepted.socket, cat("error\n", open_ ? refusal.to_others : refusal.error.what()));
      throw Refusal(refusal);
    };
    if (greeting->version != version_) {
      const std::string runs = cat("runs ", greeting->version, " and process 0 "),
                        all = ": all processes must run the same program";
      refuse(cat(runs, "on ", host_name(), " runs ", version_, all),
             cat(runs, "runs another version (see the log of process 0)", all));
    }
    if (greeting->processes != launch_.processes) {
      const std::string counts =
          cat("was started as one of ", greeting->processes, ", but process 0 as one of ", launch_.processes);
      refuse(counts, counts);
    }
    if (process < 1 || process >= launch_.processes) {
      const std::string range = cat("has a number that is not between 1 and ", launch_.processes - 1);
      refuse(range, range);
    }
    Member& member = members_[static_cast<size_t>(process)];
    const bool is_control = accepted.kind == ConnectionKind::control;
    TcpSocket& place = is_control ? member.control : member.data;
    if (place.connected())
      refuse(cat("was started twice; the first process runs on ", member.host), "was started twice");
    member.host = greeting->host;
    // Other hosts cannot reach a loopback address of this host.
    const std::string address = accepted.socket.peer_address();
    member.address = is_loopback(address) ? launch_.address : address;
    member.launched = process;
    if (!is_control) member.port = greeting->port;
    try_to_send(accepted.socket, kWelcome);  // a process that refuse() rejects gets the reason instead
    place = std::move(accepted.socket);
  }
  static void try_to_send(const TcpSocket& socket, const std::string& text) {
    try {
      socket.send_text(text, TcpClock::now() + seconds(2));
    } catch (const Error&) {  // no retry: a peer that misses the text fails at its own time limit
    }
  }

  void send_table() const {
    std::vector<Whereabout> members;
    for (const Member& member : members_)
      members.push_back({member.launched, member.port, member.address, member.host});
    const std::string table = text_of(members);
    for (size_t p = 1; p < members_.size(); ++p)
      in_context(
          [&] {
            return cat("sending process ", members_[p].launched, " on ", members_[p].host,
                       " the addresses of the other "
                       "processes");
          },
          [&] {
            if (launch_.secret.empty()) members_[p].data.send_text(text_of_secret(agreed_.text()), end_);
            members_[p].data.send_text(table, end_);
          });
  }
  void hear_that_all_keep_the_secret() {
    for (size_t p = 1; p < members_.size(); ++p)
      in_context(
          [&] { return cat("waiting for the answer of process ", members_[p].launched, " on ", members_[p].host); },
          [&] {
            if (members_[p].data.receive_text(std::string_view(kKept).size(), end_) != kKept)
              throw Error(Kind::comm, "the process does not confirm the job's secret");
          });
    agreed_.set_known_to_all();
  }

  const Launch& launch_;
  std::string version_;
  TcpClock::time_point end_;
  std::optional<TcpClock::time_point> lost_after_;
  AgreedSecret& agreed_;
  bool open_;  // whether processes without a secret are accepted
  TcpListener listener_;
  Acceptor acceptor_;
  std::vector<Member> members_;
  int refused_ = 0;  // the process whose greeting prevents the start
};

/// Every process except process 0.
class Guest {
 public:
  Guest(const Launch& launch, std::string_view version, TcpClock::time_point end, AgreedSecret& agreed)
      : launch_(launch), version_(version), end_(end), agreed_(agreed) {}

  JobConnections join() {
    JobConnections job;
    job.data.push_back(to_host(ConnectionKind::data));
    try {
      job.control.push_back(to_host(ConnectionKind::control));
    } catch (const Error&) {
      next_message(job.data[0]);  // throws the reason of process 0, which has given up
      throw;
    }
    if (launch_.secret.empty()) keep_secret(next_message(job.data[0]));
    const std::vector<Whereabout> table =
        in_context([&] { return at_host(); },
                   [&] { return table_from(next_message(job.data[0]), launch_.process, launch_.processes); });
    if (launch_.secret.empty()) job.data[0].send_text(kKept, end_);
    job.data.resize(table.size());
    for (size_t p = 0; p < table.size(); ++p) {
      job.hosts.push_back(table[p].host);
      if (table[p].launched == launch_.process) job.process = static_cast<int>(p);
    }
    for (size_t p = 1; p < static_cast<size_t>(job.process); ++p) {
      const Whereabout& at = table[p];
      // Process `p` answers after it has connected to all processes with lower numbers.
      job.data[p] = connect_as_member({at.address, at.port, cat("process ", at.launched, " on ", at.host)},
                                      key_of(launch_, agreed_), ConnectionKind::peer, end_,
                                      std::chrono::ceil<seconds>(end_ - TcpClock::now()));
      job.data[p].send_text(greeting(), end_);
    }
    accept_others(job, table);
    return job;
  }

 private:
  TcpSocket to_host(ConnectionKind kind) {
    TcpSocket socket = connect_as_member({launch_.address, launch_.port, "process 0"}, key_of(launch_, agreed_), kind,
                                         end_, kHandshakeLimit);
    // Listen at the address that process 0 sees for this process. If that address is a loopback address, listen at the
    // address of process 0.
    const std::string own = socket.own_address();
    if (!listener_) listener_.emplace(0, is_loopback(own) ? launch_.address : own);
    socket.send_text(greeting(), end_);
    next_message(socket);  // the message is kWelcome
    return socket;
  }
  void keep_secret(const std::string& message) {
    const auto secret = secret_from(message);
    if (!secret) throw Error(Kind::comm, cat(at_host(), ": process 0 sends no secret for later joins"));
    if (*secret != agreed_.text()) agreed_.set(*secret);
  }
  std::string greeting() const {
    return text_of(
        Greeting{launch_.process, launch_.processes, listener_ ? listener_->port() : 0, host_name(), version_});
  }
  std::string at_host() const { return cat("joining process 0 at ", launch_.address, ", port ", launch_.port); }
  std::string next_message(const TcpSocket& from) const {
    std::string text = in_context([&] { return at_host(); },
                                  // process 0 sends its reason at `end`, so wait a little longer
                                  [&] { return from.receive_text(kMostTable, end_ + seconds(5)); });
    constexpr std::string_view kError = "error\n";
    if (text.starts_with(kError)) throw Error(Kind::comm, printable(text.substr(kError.size(), kMostReason)));
    return text;
  }
  static bool has_ended(const TcpSocket& other) {
    char first = 0;
    return ::recv(other.descriptor(), &first, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }
  void accept_others(JobConnections& job, const std::vector<Whereabout>& table) {
    const auto behind = job.data.begin() + job.process + 1;
    Acceptor acceptor(*listener_, {key_of(launch_, agreed_)}, "p");
    while (!std::all_of(behind, job.data.end(), [](const TcpSocket& socket) { return socket.connected(); })) {
      auto accepted = acceptor.next(std::min(end_, TcpClock::now() + kLookAtHost));
      if (!accepted && has_ended(job.data[0]))
        throw Error(Kind::comm, cat(at_host(), ": process 0 ended while the processes were connecting to each other"));
      if (!accepted && TcpClock::now() < end_) continue;
      if (!accepted)
        throw Error(Kind::comm, cat("process ", launch_.process, " on ", host_name(), ", port ", listener_->port(),
                                    ", timed out waiting for processes with higher numbers: does a firewall block "
                                    "connections between the hosts?"));
      const auto from = greeting_from(accepted->greeting);
      if (!from) continue;
      const auto found = std::find_if(table.begin() + job.process + 1, table.end(),
                                      [&](const Whereabout& each) { return each.launched == from->process; });
      if (found == table.end()) continue;
      TcpSocket& place = job.data[static_cast<size_t>(found - table.begin())];
      if (!place.connected()) place = std::move(accepted->socket);
    }
  }

  const Launch& launch_;
  std::string version_;
  TcpClock::time_point end_;
  AgreedSecret& agreed_;
  std::optional<TcpListener> listener_;
};

}  // namespace

JobConnections join_job(const Launch& launch, std::string_view version, TcpClock::time_point end, const Log& log,
                        std::optional<TcpClock::time_point> lost_after, AgreedSecret* agreed) {
  AgreedSecret of_this_join;
  AgreedSecret& secret = agreed ? *agreed : of_this_join;
  return launch.process == 0 ? Host(launch, version, end, lost_after, secret).join(log)
                             : Guest(launch, version, end, secret).join();
}

}  // namespace hctr
