// Network namespaces of this machine that act as hosts on a common switch. Each host has an interface, an address and a
// name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hctr::test {

class HostNetwork {
 public:
  /// Creates files of the hosts in `folder`. All hosts share the file system of this machine.
  HostNetwork(int hosts, const std::filesystem::path& folder);
  ~HostNetwork();
  HostNetwork(const HostNetwork&) = delete;
  HostNetwork& operator=(const HostNetwork&) = delete;

  /// The reason why this process cannot create hosts; empty if the hosts exist.
  const std::string& why_none() const { return why_none_; }
  int size() const { return static_cast<int>(names_.size()); }
  /// The host name: "host0", "host1", ...
  static std::string name(int host);
  static std::string address(int host);
  /// Adds another name that all hosts can resolve.
  void add_name(int host, const std::string& name);

  /// Path of a script: "on_host NUMBER COMMAND..." runs the command on a host. Test launchers use the script. Called as
  /// "ssh NAME COMMAND", the script acts as ssh.
  std::filesystem::path on_host() const { return folder_ / "on_host"; }
  std::filesystem::path ssh() const { return folder_ / "ssh"; }

  /// Disables the network interface of a host.
  void cut(int host) const;
  /// Drops all packets from one host to another, like a firewall.
  void drop(int from, int to) const;
  /// Sends a signal to all processes of a host, or to the processes of `program`.
  void signal(int host, int number, const std::string& program = "") const;
  /// Bytes sent by the interfaces of all hosts according to kernel counters, including packet headers.
  int64_t sent_bytes() const;
  /// Whether a process of this program runs on the host.
  bool runs(int host, const std::string& program) const;

 private:
  /// A shell command that prints the processes of a host, or of `program` on the host.
  std::string processes(int host, const std::string& program) const;

  std::filesystem::path folder_;
  std::vector<std::string> names_;  // names of the network namespaces
  std::string switch_, why_none_;
};

}  // namespace hctr::test

/// Skips the test with a message if hosts cannot be created.
#define HCTR_SKIP_WITHOUT_HOSTS(network) \
  if (!(network).why_none().empty()) GTEST_SKIP() << "this process may not make hosts: " << (network).why_none()
