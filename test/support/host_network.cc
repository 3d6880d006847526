#include "support/host_network.h"

#include <unistd.h>

#include <atomic>
#include <fstream>

#include "core/base/expect.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

Outcome in_shell(const std::string& script, const fs::path& folder) {
  return run_program("/bin/bash", {"-c", "export PATH=$PATH:/usr/sbin:/sbin; " + script}, folder);
}

void write_program(const fs::path& path, const std::string& text) {
  write_file(path, "#!/bin/bash\nexport PATH=$PATH:/usr/sbin:/sbin\n" + text);
  fs::permissions(path, fs::perms::owner_all);
}

}  // namespace

HostNetwork::HostNetwork(int hosts, const fs::path& folder) : folder_(folder) {
  static std::atomic<int> networks = 0;
  const std::string id = cat("hctr", ::getpid(), "x", networks++);
  switch_ = id + "s";
  std::string script = cat("set -e; ip netns add ", switch_, "; ip -n ", switch_,
                           " link add switch type bridge; ip -n ", switch_, " link set switch up; ");
  for (int h = 0; h < hosts; ++h) {
    names_.push_back(cat(id, "h", h));
    const std::string in_host = cat("ip -n ", names_.back(), " "), in_switch = cat("ip -n ", switch_, " ");
    script += cat("ip netns add ", names_.back(), "; ip link add eth0 netns ", names_.back(), " type veth peer name p",
                  h, " netns ", switch_, "; ", in_switch, "link set p", h, " master switch; ", in_switch, "link set p",
                  h, " up; ", in_host, "addr add ", address(h), "/24 dev eth0; ", in_host, "link set eth0 up; ",
                  in_host, "link set lo up; ");
  }
  const Outcome outcome = in_shell(script + "unshare --uts true", folder_);
  if (outcome.exit_code != 0) why_none_ = outcome.err.empty() ? "no reason given" : outcome.err;
  write_file(folder_ / "hosts", "127.0.0.1 localhost\n");
  for (int h = 0; h < hosts; ++h) add_name(h, name(h));
  write_program(on_host(), cat("host=$1; shift\nexec ip netns exec ", id, "h$host unshare --uts /bin/bash -c ",
                               "'hostname host'$host'; mount --bind ", (folder_ / "hosts").string(),
                               " /etc/hosts; exec \"$@\"' bash \"$@\"\n"));
  write_program(ssh(), cat("while [[ $1 == -* ]]; do shift; done\nhost=${1#host}; shift\nexec ", on_host().string(),
                           " $host /bin/bash -c \"$*\"\n"));
}

HostNetwork::~HostNetwork() {
  std::string script;
  for (const std::string& each : names_) script += cat("ip netns del ", each, "; ");
  in_shell(script + "ip netns del " + switch_ + "; true", folder_);
}

std::string HostNetwork::name(int host) { return cat("host", host); }
std::string HostNetwork::address(int host) { return cat("10.9.8.", host + 1); }

void HostNetwork::add_name(int host, const std::string& name) {
  std::ofstream(folder_ / "hosts", std::ios::app) << address(host) << " " << name << "\n";
}

void HostNetwork::cut(int host) const {
  in_shell(cat("ip -n ", names_[static_cast<size_t>(host)], " link set eth0 down"), folder_);
}

void HostNetwork::drop(int from, int to) const {
  in_shell(cat("ip -n ", names_[static_cast<size_t>(from)], " neigh replace ", address(to),
               " lladdr 02:00:00:00:00:99 dev eth0 nud permanent"),
           folder_);
}

void HostNetwork::signal(int host, int number, const std::string& program) const {
  in_shell(cat("kill -", number, " $(", processes(host, program), ")"), folder_);
}

int64_t HostNetwork::sent_bytes() const {
  int64_t sum = 0;
  for (const std::string& each : names_)
    sum +=
        std::stoll(in_shell(cat("ip netns exec ", each, " cat /sys/class/net/eth0/statistics/tx_bytes"), folder_).out);
  return sum;
}

bool HostNetwork::runs(int host, const std::string& program) const {
  return !in_shell(processes(host, program), folder_).out.empty();
}

std::string HostNetwork::processes(int host, const std::string& program) const {
  const std::string all = cat("ip netns pids ", names_[static_cast<size_t>(host)]);
  if (program.empty()) return all;
  return cat("for p in $(", all, "); do if [ \"$(cat /proc/$p/comm)\" = ", program, " ]; then echo $p; fi; done");
}

}  // namespace hctr::test
