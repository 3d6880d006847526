#include "support/redis_servers.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>

#include "core/base/files.h"

namespace hctr::test {
namespace {

constexpr std::chrono::seconds kPatience{60};

/// Returns distinct ports that are currently unused.
std::vector<int> free_ports(size_t count) {
  std::vector<int> ports, sockets;
  for (size_t i = 0; i < count; ++i) {
    const int one = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(one, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
        ::getsockname(one, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      throw std::runtime_error("no free port");
    ports.push_back(ntohs(at.sin_port));
    sockets.push_back(one);
  }
  for (const int one : sockets) ::close(one);
  return ports;
}

struct PrintedBy {
  std::string text;
  int status;
};

PrintedBy printed_by(const std::string& command) {
  PrintedBy printed{};
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "re");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::array<char, 4096> buffer{};
  for (size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    printed.text.append(buffer.data(), count);
  printed.status = ::pclose(pipe);
  return printed;
}

}  // namespace

std::string why_no_redis() {
  if (printed_by("command -v redis-server && command -v redis-cli").status == 0) return "";
  return "redis-server is not installed (apt-get install redis-server redis-tools)";
}

RedisServers::RedisServers(RedisServerOptions options) : options_(std::move(options)) {
  if (options_.tls) make_certificates();
  servers_.resize(static_cast<size_t>(options_.count));
  const std::vector<int> ports = free_ports(2 * servers_.size());
  for (size_t s = 0; s < servers_.size(); ++s) {
    servers_[s].port = ports[2 * s];
    servers_[s].bus_port = ports[2 * s + 1];
  }
  try {
    for (size_t s = 0; s < servers_.size(); ++s) start(s);
    if (options_.cluster) form_cluster();
  } catch (...) {
    for (size_t s = 0; s < servers_.size(); ++s) kill(s);
    throw;
  }
}

RedisServers::~RedisServers() {
  for (size_t s = 0; s < servers_.size(); ++s) kill(s);
}

void RedisServers::start(size_t number) {
  Server& server = servers_[number];
  const std::string port = std::to_string(server.port), folder = folder_.path().string();
  std::vector<std::string> words = {"redis-server",
                                    "--port",
                                    options_.tls ? "0" : port,
                                    "--bind",
                                    "127.0.0.1",
                                    "--save",
                                    "",
                                    "--appendonly",
                                    "no",
                                    "--dir",
                                    folder,
                                    "--dbfilename",
                                    "dump" + port + ".rdb",
                                    "--repl-diskless-sync-delay",
                                    "0"};
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (options_.tls)
    add({"--tls-port", port, "--tls-cert-file", folder + "/server.crt", "--tls-key-file", folder + "/server.key",
         "--tls-ca-cert-file", folder + "/ca.crt", "--tls-auth-clients", "yes"});
  if (options_.cluster)
    add({"--cluster-enabled", "yes", "--cluster-config-file", "nodes" + port + ".conf", "--cluster-port",
         std::to_string(server.bus_port), "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"});
  if (!options_.password.empty()) add({"--requirepass", options_.password, "--masterauth", options_.password});
  words.insert(words.end(), options_.more.begin(), options_.more.end());
  const std::string log = folder + "/log" + port;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  server.pid = ::fork();
  if (server.pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const int to = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(to, 1);
    ::dup2(to, 2);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  wait_until("to answer", number, "ping", "PONG");
}

void RedisServers::kill(size_t number) {
  Server& server = servers_[number];
  if (server.pid <= 0) return;
  ::kill(server.pid, SIGKILL);
  ::waitpid(server.pid, nullptr, 0);
  server.pid = 0;
}

void RedisServers::pause(size_t number) const { ::kill(servers_[number].pid, SIGSTOP); }
void RedisServers::resume(size_t number) const { ::kill(servers_[number].pid, SIGCONT); }

std::vector<std::string> RedisServers::addresses() const {
  std::vector<std::string> all;
  for (const Server& server : servers_)
    all.push_back((options_.tls ? "localhost:" : "127.0.0.1:") + std::to_string(server.port));
  return all;
}

std::string RedisServers::cli(size_t number, const std::string& arguments) const {
  std::string command = "redis-cli -h 127.0.0.1 -p " + std::to_string(servers_[number].port) + " --no-auth-warning";
  if (options_.tls)
    command += " --tls --cacert " + ca().string() + " --cert " + certificate().string() + " --key " + key().string();
  if (!options_.password.empty()) command += " -a " + options_.password;
  const PrintedBy printed = printed_by(command + " " + arguments);
  if (printed.status != 0) throw std::runtime_error(arguments + ": " + printed.text);
  return printed.text.substr(0, printed.text.find_last_not_of("\r\n") + 1);
}

void RedisServers::wait_until(const char* what, size_t number, const std::string& arguments,
                              const std::string& answer) const {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::string last;
  while (std::chrono::steady_clock::now() < until) {
    try {
      last = cli(number, arguments);
      if (last.find(answer) != last.npos) return;
    } catch (const std::exception& error) {
      last = error.what();
    }
    int status = 0;
    if (::waitpid(servers_[number].pid, &status, WNOHANG) == servers_[number].pid) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const std::string log = (folder_ / ("log" + std::to_string(servers_[number].port))).string();
  throw std::runtime_error(std::string("waited for redis-server ") + what + ": " + last + "\n" +
                           printed_by("tail -20 " + log).text);
}

void RedisServers::form_cluster() {
  const size_t count = servers_.size();
  for (size_t s = 0; s < count; ++s) {
    servers_[s].id = cli(s, "cluster myid");
    cli(s, "cluster set-config-epoch " + std::to_string(s + 1));
    if (s >= masters()) continue;
    const size_t first = s * 16384 / masters(), last = (s + 1) * 16384 / masters() - 1;
    cli(s, "cluster addslotsrange " + std::to_string(first) + " " + std::to_string(last));
  }
  for (size_t s = 1; s < count; ++s)
    cli(0, "cluster meet 127.0.0.1 " + std::to_string(servers_[s].port) + " " + std::to_string(servers_[s].bus_port));
  for (size_t s = 0; s < count; ++s) {
    wait_until("to serve all slots", s, "cluster info", "cluster_slots_assigned:16384");
    wait_until("to form a cluster", s, "cluster info", "cluster_state:ok");
  }
  for (size_t s = masters(); s < count; ++s) {
    const std::string of = servers_[s - masters()].id;
    wait_until("to know its master", s, "cluster nodes", of);
    cli(s, "cluster replicate " + of);
    wait_until("to copy its master", s, "info replication", "master_link_status:up");
    for (size_t other = 0; other < count; ++other)
      wait_until("to know replicas", other, "cluster slots", std::to_string(servers_[s].port));
  }
}

int RedisServers::slot_of(const std::string& key) const { return std::stoi(cli(0, "cluster keyslot '" + key + "'")); }

size_t RedisServers::owner_of(const std::string& key) const {
  const auto slot = static_cast<size_t>(slot_of(key));
  size_t owner = 0;
  while ((owner + 1) * 16384 / masters() <= slot) ++owner;
  return owner;
}

void RedisServers::move_slot(int slot, size_t from, size_t to) const {
  const std::string number = std::to_string(slot);
  cli(to, "cluster setslot " + number + " importing " + servers_[from].id);
  cli(from, "cluster setslot " + number + " migrating " + servers_[to].id);
  for (std::string key; !(key = cli(from, "cluster getkeysinslot " + number + " 1")).empty();)
    cli(from, "migrate 127.0.0.1 " + std::to_string(servers_[to].port) + " '" + key + "' 0 10000");
  for (const size_t server : {to, from}) cli(server, "cluster setslot " + number + " node " + servers_[to].id);
}

void RedisServers::make_certificates() const {
  const std::string folder = folder_.path().string();
  write_text(folder_ / "names", "subjectAltName=DNS:localhost\n");
  const std::string in = "cd '" + folder + "' && ";
  for (const char* command :
       {"openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 2 -subj /CN=authority",
        "openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost",
        "openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out "
        "server.crt"})
    if (const PrintedBy printed = printed_by(in + command); printed.status != 0) throw std::runtime_error(printed.text);
}

}  // namespace hctr::test
