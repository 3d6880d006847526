// Network namespaces of this machine that act as hosts, joined by a switch: each has an interface, an address and a
// name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hctr::test {

class HostNetwork {
 public:
  /// Files of the hosts are in `folder`. They all share the file system of this machine.
  HostNetwork(int hosts, const std::filesystem::path& folder);
  ~HostNetwork();
  HostNetwork(const HostNetwork&) = delete;
  HostNetwork& operator=(const HostNetwork&) = delete;

  /// Why this process cannot create hosts; empty if it has.
  const std::string& why_none() const { return why_none_; }
  int size() const { return static_cast<int>(names_.size()); }
  /// "host0": the host name.
  static std::string name(int host);
  static std::string address(int host);
  /// Adds another name that all hosts can resolve.
  void add_name(int host, const std::string& name);

  /// A program: on_host NUMBER COMMAND... runs the command on that host. The launchers of tests use it. Called as "ssh
  /// NAME COMMAND", it replaces ssh.
  std::filesystem::path on_host() const { return folder_ / "on_host"; }
  std::filesystem::path ssh() const { return folder_ / "ssh"; }

  /// Takes the interface of a host down.
  void cut(int host) const;
  /// Drops packets from one host to another, like a firewall.
  void drop(int from, int to) const;
  /// Sends a signal to all processes of a host, or to those of one program.
  void signal(int host, int number, const std::string& program = "") const;
  /// Bytes that the interfaces of all hosts have sent, by the kernel's counters, including packet headers.
  int64_t sent_bytes() const;
  /// Whether a process of this program runs on the host.
  bool runs(int host, const std::string& program) const;

 private:
  /// Commands that print the processes of a host, or those of one program.
  std::string processes(int host, const std::string& program) const;

  std::filesystem::path folder_;
  std::vector<std::string> names_;  // names of the namespaces
  std::string switch_, why_none_;
};

}  // namespace hctr::test

/// Skips a test if hosts cannot be created, with the reason.
#define HCTR_SKIP_WITHOUT_HOSTS(network) \
  if (!(network).why_none().empty()) GTEST_SKIP() << "this process may not make hosts: " << (network).why_none()
