#include "store/level_sections.h"

namespace hctr {

template <>
const Words<StoreRocksOptions::Opening>& EnumWords<StoreRocksOptions::Opening>::table() {
  using Opening = StoreRocksOptions::Opening;
  static const Words<Opening> words = {
      {"update", Opening::update}, {"read_only", Opening::read_only}, {"follow", Opening::follow}};
  return words;
}

template <>
const Words<StoreNames>& EnumWords<StoreNames>::table() {
  static const Words<StoreNames> words = {{"own", StoreNames::own}, {"hugectr", StoreNames::hugectr}};
  return words;
}

template <>
const Words<StoreRedisOptions::Eviction>& EnumWords<StoreRedisOptions::Eviction>::table() {
  using Eviction = StoreRedisOptions::Eviction;
  static const Words<Eviction> words = {
      {"random", Eviction::random}, {"least_used", Eviction::least_used}, {"oldest", Eviction::oldest}};
  return words;
}

Schema<StoreRocksSection> rocks_schema() {
  using R = StoreRocksSection;
  return Schema<R>("rocksdb")
      .need("folder", &R::folder, "folder of the database; created if missing")
      .opt("open", &R::open,
           "how the database is opened. update: read and write, by one process at a time; read_only: read the "
           "current state; follow: read, and see what the updating process commits")
      .opt("own_folder", &R::own_folder,
           "with \"open\": \"follow\": a folder for the log of this reader, which no "
           "other process uses")
      .opt("names", &R::names,
           "naming of column families. own: with versions; hugectr: as HugeCTR's parameter "
           "server names them, so both can use the database")
      .opt("key_bytes", &R::key_bytes, "bytes of a stored key: 8, or 4 for the 32-bit keys of HugeCTR", between(4, 8))
      .opt("cache_mb", &R::cache_mb, "MiB of the block cache in memory; 0: no cache", at_least(0))
      .opt("direct_reads", &R::direct_reads, "read the disk directly, without the page cache")
      .opt("reader_threads", &R::reader_threads, "threads that read from the disk, for all requests together",
           between(0, 1024))
      .opt("background_threads", &R::background_threads, "threads that compact files", between(1, 1024))
      .together([](R& r, const std::string& pointer, Problems& problems) {
        const bool follows = r.open == StoreRocksOptions::Opening::follow;
        if (follows == r.own_folder.empty())
          problems.error(pointer, "\"open\": \"follow\" and \"own_folder\" need each other");
        if (r.key_bytes != 8 && r.key_bytes != 4) problems.error(pointer + "/key_bytes", "is neither 8 nor 4");
      })
      .closed();
}

StoreRocksOptions options_of(const StoreRocksSection& from) {
  return {.folder = from.folder,
          .opening = from.open,
          .own_folder = from.own_folder,
          .names = from.names,
          .key_bytes = static_cast<int32_t>(from.key_bytes),
          .cache_bytes = from.cache_mb << 20,
          .direct_reads = from.direct_reads,
          .reader_threads = static_cast<int32_t>(from.reader_threads),
          .background_threads = static_cast<int32_t>(from.background_threads)};
}

Schema<StoreRedisSection> redis_schema() {
  using R = StoreRedisSection;
  return Schema<R>("redis")
      .opt("addresses", &R::addresses, "host:port of some nodes; other nodes of a cluster are discovered")
      .opt("user", &R::user, "user name of the ACL; omitted: default")
      .opt("password", &R::password, "the user's password; \"${NAME}\" reads an environment variable")
      .opt("tls", &R::tls, "use TLS")
      .opt("ca", &R::ca, "a file or a folder of trusted certificates; omitted: the system's certificates")
      .opt("certificate", &R::certificate, "the client certificate, if servers require one; needs \"key\"")
      .opt("key", &R::key, "the private key of \"certificate\"")
      .opt("server_name", &R::server_name, "the name that server certificates must contain; omitted: the host")
      .opt("names", &R::names,
           "naming of hashes. own: for this process only; hugectr: as HugeCTR's parameter "
           "server names them, so both can use the database")
      .opt("key_bytes", &R::key_bytes, "bytes of a stored key: 8, or 4 for the 32-bit keys of HugeCTR", between(4, 8))
      .opt("partitions", &R::partitions,
           "number of hashes per table; with \"names\": \"own\" large tables have "
           "more",
           between(1, 65536))
      .opt("connections", &R::connections, "connections to each node, the number of concurrent requests",
           between(1, 1024))
      .opt("timeout_ms", &R::timeout_ms, "time limit of a request, retries included", between(1, 3600000))
      .opt("read_replicas", &R::read_replicas,
           "read from replicas while a master does not answer; replicas may have older rows")
      .opt("keep_rows", &R::keep_rows, "with \"names\": \"hugectr\": keep the rows that exist when the store opens")
      .opt("most_rows", &R::most_rows,
           "maximum number of rows in a partition if a level is below; further rows "
           "are evicted; 0: no limit",
           at_least(0))
      .opt("eviction", &R::eviction, "which rows are evicted: random, least_used or oldest")
      .opt("evict_to", &R::evict_to, "fraction of \"most_rows\" that an eviction keeps", strictly_between(0, 1))
      .opt("expire_seconds", &R::expire_seconds,
           "seconds without a change after which a partition is removed; 0: "
           "never",
           at_least(0))
      .opt("keep_missed", &R::keep_missed, "also store rows that were found in the level below")
      .opt("fill", &R::fill, "if a level is below: store all rows when the store opens")
      .together([](R& r, const std::string& pointer, Problems& problems) {
        if (r.key_bytes != 8 && r.key_bytes != 4) problems.error(pointer + "/key_bytes", "is neither 8 nor 4");
        if (r.addresses.empty()) problems.error(pointer + "/addresses", "names no server");
        if (r.certificate.empty() != r.key.empty())
          problems.error(pointer, "\"certificate\" and \"key\" need each other");
        if (!r.tls && !(r.ca + r.certificate + r.server_name).empty())
          problems.error(pointer, "certificates need \"tls\": true");
      })
      .closed();
}

StoreRedisOptions options_of(const StoreRedisSection& from) {
  return {.addresses = from.addresses,
          .user = from.user,
          .password = from.password,
          .tls = from.tls,
          .ca = from.ca,
          .certificate = from.certificate,
          .key = from.key,
          .server_name = from.server_name,
          .names = from.names,
          .key_bytes = static_cast<int32_t>(from.key_bytes),
          .partitions = static_cast<int32_t>(from.partitions),
          .connections = static_cast<int32_t>(from.connections),
          .timeout_ms = static_cast<int32_t>(from.timeout_ms),
          .read_replicas = from.read_replicas,
          .keep_rows = from.keep_rows,
          .most_rows = from.most_rows,
          .eviction = from.eviction,
          .evict_to = from.evict_to,
          .expire_seconds = from.expire_seconds,
          .keep_missed = from.keep_missed,
          .fill = from.fill};
}

}  // namespace hctr
