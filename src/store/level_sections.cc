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
      .need("folder", &R::folder, "of the database; made if it is missing")
      .opt("open", &R::open,
           "update: one process at a time. read_only: as it is now. follow: reads, and sees what the updater commits")
      .opt("own_folder", &R::own_folder, "of open follow: a folder of this reader alone, for its log")
      .opt("names", &R::names, "of column families: own, with versions; or hugectr, shared with its parameter server")
      .opt("key_bytes", &R::key_bytes, "8, or 4 as HugeCTR has 32-bit keys", between(4, 8))
      .opt("cache_mb", &R::cache_mb, "of blocks, in memory; 0: none", at_least(0))
      .opt("direct_reads", &R::direct_reads, "read past the page cache")
      .opt("reader_threads", &R::reader_threads, "that wait for the disk, of all requests together", between(0, 1024))
      .opt("background_threads", &R::background_threads, "that compact files", between(1, 1024))
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
      .opt("addresses", &R::addresses, "host:port of some nodes; the others of a cluster are discovered")
      .opt("user", &R::user, "of the ACL; omitted: default")
      .opt("password", &R::password, "its password; \"${NAME}\" is of the environment")
      .opt("tls", &R::tls, "speak TLS")
      .opt("ca", &R::ca, "a file or a folder of certificates to trust; omitted: those of the system")
      .opt("certificate", &R::certificate, "the certificate of this client, if servers demand one; needs key too")
      .opt("key", &R::key, "the private key of that certificate")
      .opt("server_name", &R::server_name, "that certificates of servers must have; omitted: the host")
      .opt("names", &R::names, "of hashes: own, of this process alone; or hugectr, shared with its parameter server")
      .opt("key_bytes", &R::key_bytes, "8, or 4 as HugeCTR has 32-bit keys", between(4, 8))
      .opt("partitions", &R::partitions, "hashes of a table; with own names more if it is large", between(1, 65536))
      .opt("connections", &R::connections, "to each node: requests at one time", between(1, 1024))
      .opt("timeout_ms", &R::timeout_ms, "time limit of a request, retries included", between(1, 3600000))
      .opt("read_replicas", &R::read_replicas,
           "replicas, which may have older rows, answer while their master does not")
      .opt("keep_rows", &R::keep_rows, "with names hugectr: rows that are there when the store opens stay")
      .opt("most_rows", &R::most_rows, "most rows of a partition, above another level; others are evicted; 0: no limit",
           at_least(0))
      .opt("eviction", &R::eviction, "which rows: random, least_used or oldest")
      .opt("evict_to", &R::evict_to, "the share of most_rows that stays", strictly_between(0, 1))
      .opt("expire_seconds", &R::expire_seconds, "a partition that has not changed for so long is removed; 0: never",
           at_least(0))
      .opt("keep_missed", &R::keep_missed, "keep rows that the level below has answered")
      .opt("fill", &R::fill, "above another level: has all rows at first")
      .together([](R& r, const std::string& pointer, Problems& problems) {
        if (r.key_bytes != 8 && r.key_bytes != 4) problems.error(pointer + "/key_bytes", "is neither 8 nor 4");
        if (r.addresses.empty()) problems.error(pointer + "/addresses", "names no server");
        if (r.certificate.empty() != r.key.empty())
          problems.error(pointer, "\"certificate\" and \"key\" need each other");
        if (!r.tls && !(r.ca + r.certificate + r.server_name).empty())
          problems.error(pointer, "has certificates, and \"tls\" is false");
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
