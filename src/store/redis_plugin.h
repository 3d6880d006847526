// The interface of the Redis plug-in, with plain types only: no exceptions and no containers.
//
// The plug-in (src/plugins/redis) is a separate library that is loaded when a store has a level in Redis. The rest of
// the project builds and runs without hiredis and OpenSSL.
#pragma once

#include <cstdint>

namespace hctr {

struct RedisSettings {
  const char* addresses;        ///< "host:port,host:port": the first nodes; other nodes of a cluster are discovered
  const char *user, *password;  ///< empty: none
  bool tls;
  const char* ca;                 ///< a file or folder of CA certificates; empty: the system's
  const char *certificate, *key;  ///< client certificate and key; empty: none
  const char* server_name;        ///< host name that the server's certificate must have; empty: the host
  int32_t connections;            ///< number of connections per node
  int32_t timeout_ms;             ///< timeout of a call of run(), including retries
  bool read_replicas;             ///< whether replicas may answer while their master is unreachable
};

/// Receives a reply, value by value. `depth`: number of enclosing arrays; `at`: index in the innermost array. A reply
/// that breaks off is passed again from the start.
struct RedisSink {
  void* self;
  /// `bytes` null: the reply is nil.
  void (*text)(void* self, int32_t depth, int64_t at, const char* bytes, int64_t count);
  void (*integer)(void* self, int32_t depth, int64_t at, int64_t value);
};

struct RedisCommand {
  const char* bytes;  ///< the encoded command
  int64_t size;
  const char* key;  ///< the command's key, which selects the node
  int64_t key_size;
  bool reads;  ///< whether the command only reads
  RedisSink sink;
  bool done;  ///< set by run(): whether the command was answered without an error
};

struct RedisCounts {
  int64_t connected, redirected, refreshed,
      broken;  ///< number of connections, MOVED and ASK replies, slot map updates, and broken connections
};

/// Thread-safe.
class RedisClient {
 public:
  virtual ~RedisClient() = default;
  /// Sends all commands to their nodes concurrently. Follows moved slots and replaced nodes. `waits`: whether to wait
  /// for an unreachable node until the timeout; if false, commands for such a node fail immediately. Returns null, or
  /// the reason if some commands failed. Commands for the same key run in order, unless connections break.
  virtual const char* run(RedisCommand* commands, int64_t count, bool waits) = 0;
  virtual RedisCounts counts() const = 0;
};

struct RedisPlugin {
  int64_t version;    ///< kRedisPlugin as it was when the plug-in was built
  const char* about;  ///< library versions, such as "hiredis 0.14, OpenSSL 3.0.11"
  /// Creates a client, without connecting. Returns null, or the problem with the settings. This text, like that of
  /// run(), is valid until the same thread calls the plug-in again.
  const char* (*open)(const RedisSettings&, RedisClient** client);
};

inline constexpr int64_t kRedisPlugin = 1;
inline constexpr const char* kRedisPluginFile = "libhuge_ctr_redis.so";
/// The only exported symbol of the plug-in: const RedisPlugin* ().
inline constexpr const char* kRedisPluginEntry = "hctr_redis_plugin";

}  // namespace hctr
