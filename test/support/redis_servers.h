// Redis servers of a test, on free ports of the loopback interface.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace hctr::test {

/// Empty where redis-server is installed; else why a test of it is skipped.
std::string why_no_redis();

struct RedisServerOptions {
  int count = 1;
  bool cluster = false;
  int replicas = 0;  ///< the last so many servers of a cluster are replicas of the first ones
  bool tls = false;  ///< with a certificate of "localhost" that an authority of the test has signed; of clients, too
  std::string password{};
  std::vector<std::string> more{};  ///< options of redis-server
};

/// Starts them and waits until they answer; of a cluster, until all slots are served. They end with this object, and
/// with the process in any case.
class RedisServers {
 public:
  explicit RedisServers(RedisServerOptions = {});
  ~RedisServers();
  RedisServers(const RedisServers&) = delete;
  RedisServers& operator=(const RedisServers&) = delete;

  std::vector<std::string> addresses() const;
  std::filesystem::path ca() const { return folder_ / "ca.crt"; }
  /// What clients have to show.
  std::filesystem::path certificate() const { return folder_ / "server.crt"; }
  std::filesystem::path key() const { return folder_ / "server.key"; }
  void kill(size_t server);
  /// Stops a server, so that it does not answer; goes on with it.
  void pause(size_t server) const;
  void resume(size_t server) const;
  /// Starts a killed server again, empty.
  void start(size_t server);
  /// What redis-cli prints. Throws std::runtime_error when it fails.
  std::string cli(size_t server, const std::string& arguments) const;
  /// Moves a slot with what is in it, as `redis-cli --cluster reshard` does.
  void move_slot(int slot, size_t from, size_t to) const;
  /// The server that has the slot of a key, and that slot.
  size_t owner_of(const std::string& key) const;
  int slot_of(const std::string& key) const;

 private:
  struct Server {
    int port = 0, bus_port = 0;
    pid_t pid = 0;
    std::string id{};  // of a node of a cluster
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
