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

template <>
const Words<StoreCacheSection::Miss>& EnumWords<StoreCacheSection::Miss>::table() {
  using Miss = StoreCacheSection::Miss;
  static const Words<Miss> words = {{"look_up", Miss::look_up}, {"default", Miss::default_row}};
  return words;
}

template <>
const Words<StoreCacheOptions::Rows>& EnumWords<StoreCacheOptions::Rows>::table() {
  using Rows = StoreCacheOptions::Rows;
  static const Words<Rows> words = {
      {"f32", Rows::f32}, {"f16", Rows::f16}, {"bf16", Rows::bf16}, {"fp8", Rows::fp8}, {"int8", Rows::int8}};
  return words;
}

Schema<StoreCacheSection> cache_schema() {
  using C = StoreCacheSection;
  return Schema<C>("gpu_cache")
      .opt("bytes", &C::bytes, "GPU memory for rows and their index", at_least(0))
      .opt("most_rows", &C::most_rows, "maximum number of rows of each table in the cache", at_least(0))
      .opt("share", &C::share, "maximum fraction of the rows of each table in the cache", between(0, 1))
      .opt(
          "row_type", &C::row_type,
          "type of cached elements. f32: look-ups return the rows of the store; f16, bf16, fp8 and int8: rounded rows; "
          "fp8 and int8 have one scale per row")
      .opt("on_miss", &C::on_miss,
           "result for a key that the cache lacks. look_up: its row in the levels below; default: the default row, "
           "without waiting for the levels")
      .opt("admit_after", &C::admit_after, "number of requests that must miss a key before its row is cached",
           between(1, 1000000))
      .opt("wait_ms", &C::wait_ms,
           "maximum time that a request waits for an update of the cache; then the levels below answer",
           between(0, 3600000))
      .opt("needs_gpu", &C::needs_gpu,
           "true: opening the cache, or a model that reads through it, fails without a GPU, unless the program chooses "
           "the CPU; false: without a GPU, the levels of the store answer")
      .together([](C& c, const std::string& pointer, Problems& problems) {
        if ((c.bytes > 0) + (c.most_rows > 0) + (c.share > 0) > 1)
          problems.error(pointer, "set only one of \"bytes\", \"most_rows\" and \"share\"");
      })
      .closed();
}

StoreCacheOptions options_of(const StoreCacheSection& from) {
  return {.gpu = StoreCacheOptions::kGpuIfAny,
          .bytes = from.bytes,
          .most_rows = from.most_rows,
          .share = from.share,
          .rows = from.row_type,
          .admit_after = static_cast<int>(from.admit_after),
          .default_on_miss = from.on_miss == StoreCacheSection::Miss::default_row,
          .wait_ms = static_cast<int>(from.wait_ms),
          .needs_gpu = from.needs_gpu};
}

Schema<StoreRocksSection> rocks_schema() {
  using R = StoreRocksSection;
  return Schema<R>("rocksdb")
      .need("folder", &R::folder, "folder of the database; created if missing")
      .opt("open", &R::open,
           "how the database is opened. update: read and write, by one process at a time; read_only: read the "
           "current state; follow: read, and see what the updating process commits")
      .opt("own_folder", &R::own_folder,
           "a folder for the log of this reader, which no other process uses; only with \"open\": \"follow\"")
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
          problems.error(pointer, follows ? "\"open\": \"follow\" needs \"own_folder\""
                                          : "\"own_folder\" needs \"open\": \"follow\"");
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
           "number of hashes per table; with \"names\": \"own\", large tables have "
           "more",
           between(1, 65536))
      .opt("connections", &R::connections, "connections to each node, the number of concurrent requests",
           between(1, 1024))
      .opt("timeout_ms", &R::timeout_ms, "time limit of a request, retries included", between(1, 3600000))
      .opt("read_replicas", &R::read_replicas,
           "read from replicas while a master does not answer; replicas may have older rows")
      .opt("keep_rows", &R::keep_rows,
           "keep the rows that exist when the store opens; only with \"names\": \"hugectr\"")
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
          problems.error(pointer, r.key.empty() ? "\"certificate\" needs \"key\"" : "\"key\" needs \"certificate\"");
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
