// Starts Redis servers for a test, on free loopback ports.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace hctr::test {

/// The reason why Redis tests are skipped; empty if redis-server is installed.
std::string why_no_redis();

struct RedisServerOptions {
  int count = 1;
  bool cluster = false;
  int replicas = 0;  ///< in a cluster, the last `replicas` servers replicate the first ones
  bool tls = false;  ///< TLS with a certificate for "localhost" from a test authority; clients need a certificate, too
  std::string password{};
  std::vector<std::string> more{};  ///< further options of redis-server
};

/// Starts the servers, and waits until they answer; in a cluster, until all slots are served. The destructor ends the
/// servers. They also end with this process.
class RedisServers {
 public:
  explicit RedisServers(RedisServerOptions = {});
  ~RedisServers();
  RedisServers(const RedisServers&) = delete;
  RedisServers& operator=(const RedisServers&) = delete;

  std::vector<std::string> addresses() const;
  std::filesystem::path ca() const { return folder_ / "ca.crt"; }
  /// The client certificate.
  std::filesystem::path certificate() const { return folder_ / "server.crt"; }
  std::filesystem::path key() const { return folder_ / "server.key"; }
  void kill(size_t server);
  /// Suspends a server, so that it does not answer; resume() continues it.
  void pause(size_t server) const;
  void resume(size_t server) const;
  /// Restarts a killed server without data.
  void start(size_t server);
  /// Returns the output of redis-cli. Throws std::runtime_error if redis-cli fails.
  std::string cli(size_t server, const std::string& arguments) const;
  /// Moves a slot with its keys, as `redis-cli --cluster reshard` does.
  void move_slot(int slot, size_t from, size_t to) const;
  /// The server that owns the slot of `key`, and the slot.
  size_t owner_of(const std::string& key) const;
  int slot_of(const std::string& key) const;

 private:
  struct Server {
    int port = 0, bus_port = 0;
    pid_t pid = 0;
    std::string id{};  // node id in a cluster
  };
  size_t masters() const { return servers_.size() - static_cast<size_t>(options_.replicas); }
  void make_certificates() const;
  void form_cluster();
  void wait_until(const char* what, size_t server, const std::string& arguments, const std::string& answer) const;

  TemporaryFolder folder_;
  RedisServerOptions options_;
  std::vector<Server> servers_;
};

}  // namespace hctr::test
