// The interface of the Redis plug-in. Only plain types cross it: no exceptions, no containers.
//
// The plug-in (src/plugins/redis) is a library of its own, loaded when a store has a level in Redis: without hiredis
// and OpenSSL everything else builds and runs.
#pragma once

#include <cstdint>

namespace hctr {

struct RedisSettings {
  const char* addresses;        ///< "host:port,host:port": nodes to begin with; the rest of a cluster is discovered
  const char *user, *password;  ///< empty: none
  bool tls;
  const char* ca;                 ///< a file or a folder of certificates; empty: those of the system
  const char *certificate, *key;  ///< of this client; empty: none
  const char* server_name;        ///< that certificates must have; empty: the host
  int32_t connections;            ///< to each node
  int32_t timeout_ms;             ///< of a call of run(), with all that it tries again
  bool read_replicas;             ///< replicas answer while their master does not
};

/// Where a reply goes, value by value. `depth`: arrays around the value; `at`: its place in the innermost. A reply that
/// breaks off is passed again from its start.
struct RedisSink {
  void* self;
  void (*text)(void* self, int32_t depth, int64_t at, const char* bytes, int64_t count);  ///< null bytes: nil
  void (*integer)(void* self, int32_t depth, int64_t at, int64_t value);
};

struct RedisCommand {
  const char* bytes;  ///< as it is sent
  int64_t size;
  const char* key;  ///< decides about the node
  int64_t key_size;
  bool reads;  ///< changes nothing
  RedisSink sink;
  bool done;  ///< set by run(): it is answered, and not by an error
};

struct RedisCounts {
  int64_t connected, redirected, refreshed,
      broken;  ///< connections made, replies MOVED and ASK, slot maps, broken ones
};

/// Any thread calls any member.
class RedisClient {
 public:
  virtual ~RedisClient() = default;
  /// Sends commands to their nodes, all at once, and follows slots that move and nodes that are replaced. `waits`: for
  /// a node that is lost, until the time is over; else its commands fail at once. Returns null, or why some are not
  /// done. Commands of one call to one key are executed in their order, unless connections break.
  virtual const char* run(RedisCommand* commands, int64_t count, bool waits) = 0;
  virtual RedisCounts counts() const = 0;
};

struct RedisPlugin {
  int64_t version;    ///< kRedisPlugin of the program that it was built with
  const char* about;  ///< "hiredis 0.14, OpenSSL 3.0.11"
  /// Connects to nothing yet. Returns null, or what is wrong with the settings; the text lives until the same thread
  /// calls the plug-in again, as that of run() does.
  const char* (*open)(const RedisSettings&, RedisClient** client);
};

inline constexpr int64_t kRedisPlugin = 1;
inline constexpr const char* kRedisPluginFile = "libhuge_ctr_redis.so";
/// The plug-in's one symbol: const RedisPlugin* ().
inline constexpr const char* kRedisPluginEntry = "hctr_redis_plugin";

}  // namespace hctr
