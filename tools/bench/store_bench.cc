#include "store_bench.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "core/base/expect.h"
#include "hctr/store.h"
#include "store/block_writer.h"
#include "store/row_file.h"
#include "timing.h"

namespace hctr::bench {
namespace {

namespace fs = std::filesystem;

/// A table source with known row values, in blocks.
StoreTableSource known_rows(const StoreCase& of) {
  return {.name = "t",
          .dim = of.dim,
          .rows =
              [of](const StoreRowSink& sink) {
                constexpr int64_t kPiece = 16384;
                std::vector<int64_t> keys;
                std::vector<float> rows;
                for (int64_t key = 0; key < of.rows; ++key) {
                  keys.push_back(key);
                  rows.insert(rows.end(), static_cast<size_t>(of.dim), static_cast<float>(key % 1000003));
                  if (std::ssize(keys) < kPiece && key + 1 < of.rows) continue;
                  sink({}, keys, rows);
                  keys.clear();
                  rows.clear();
                }
              },
          .expected = of.rows};
}

struct LookUpRate {
  double rows_per_second, cpu_us_of_row;
};

/// Measures look-ups by several threads, one batch per request.
LookUpRate look_up(const StoreView& view, const StoreCase& of) {
  std::atomic<int64_t> rows_read{0}, wrong{0};
  std::atomic<bool> done{false};
  const auto read = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<int64_t> keys(static_cast<size_t>(of.batch));
    std::vector<float> rows(keys.size() * static_cast<size_t>(of.dim));
    while (!done.load(std::memory_order_relaxed)) {
      for (int64_t& key : keys) key = static_cast<int64_t>(random() % static_cast<uint64_t>(of.rows));
      int64_t bad = view.get(0, keys, rows.data());
      for (size_t i = 0; i < keys.size(); ++i)
        bad += rows[(i + 1) * static_cast<size_t>(of.dim) - 1] != static_cast<float>(keys[i] % 1000003);
      wrong += bad;
      rows_read += of.batch;
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  const double cpu_begin = cpu_seconds();
  std::vector<std::thread> threads;
  for (int t = 0; t < of.threads; ++t) threads.emplace_back(read, t);
  std::this_thread::sleep_for(std::chrono::duration<double>(of.seconds));
  done = true;
  for (std::thread& thread : threads) thread.join();
  if (wrong > 0) throw Error(Kind::bug, cat(wrong.load(), " rows are wrong"));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto rows = static_cast<double>(rows_read);
  return {rows / seconds, 1e6 * (cpu_seconds() - cpu_begin) / rows};
}

/// The output of a program; empty if it fails or is not installed.
std::string output_of(const std::string& command) {
  FILE* const pipe = ::popen((command + " 2>/dev/null").c_str(), "re");
  if (!pipe) return "";
  std::string text;
  char buffer[4096];
  for (size_t count = 0; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, count);
  return ::pclose(pipe) == 0 ? text : "";
}

/// The best GET rate of redis-benchmark, per second. `keys`: number of keys, of which each GET reads a random one; 1:
/// all GETs read one key, whose value stays in the processor's caches.
double redis_benchmark(const std::string& address, int64_t row_bytes, int64_t keys, const StoreCase& of) {
  const size_t colon = address.rfind(':');
  const std::string server = cat("-h ", address.substr(0, colon), " -p ", address.substr(colon + 1));
  const std::string command =
      cat("redis-benchmark ", server, " -d ", row_bytes, " --csv ", keys > 1 ? cat("-r ", keys, " ") : "");
  double best = 0;
  output_of(cat(command, "-t set -P 64 -n ", keys > 1 ? 3 * keys : 1));  // random keys: 95 % of them get a value
  for (const int pipeline : {64, 256, 1024}) {
    const std::string text = output_of(
        cat(command, "-t get -n ", static_cast<int64_t>(of.seconds * 1e5), " -c ", of.threads, " -P ", pipeline));
    const size_t at = text.find("\"GET\",\"");
    if (at != text.npos) best = std::max(best, std::atof(text.c_str() + at + 7));
  }
  if (keys > 1)
    output_of(cat("seq -f 'unlink key:%012.0f' 0 ", keys - 1, " | redis-cli ", server, " --pipe"));
  else
    output_of(cat("redis-cli ", server, " del key:__rand_int__"));
  return best;
}

/// Keys per second of db_bench's multireadrandom, with direct I/O and without a block cache.
double db_bench(const fs::path& folder, int64_t row_bytes, const StoreCase& of) {
  const std::string common = cat("db_bench --db='", folder.string(), "' --num=", of.rows, " --value_size=", row_bytes,
                                 " --key_size=8 --compression_type=none --bloom_bits=10 ");
  output_of(common + "--benchmarks=fillseq,compact");
  const std::string text =
      output_of(common + cat("--use_existing_db=1 --benchmarks=multireadrandom --threads=", of.threads,
                             " --batch_size=", of.batch, " --duration=", std::max(1, static_cast<int>(of.seconds)),
                             " --use_direct_reads=1 --cache_size=0 --multiread_batched=1"));
  const size_t at = text.find("micros/op", text.find("multireadrandom"));
  return at == text.npos ? 0 : std::atof(text.c_str() + at + 9);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The bytes per second of direct writes to a new file, until they are on disk.
double disk_rate(const fs::path& path, int64_t bytes) {
  constexpr int64_t kBlock = int64_t{4} << 20;
  const File file(std::fopen(path.c_str(), "w"));
  if (!file || ::posix_fallocate(::fileno(file.get()), 0, bytes) != 0)
    throw Error(Kind::io, cat("cannot write ", bytes, " bytes to '", path.string(), "'"));
  const auto begin = std::chrono::steady_clock::now();
  BlockWriter writer(path, kBlock);
  for (int64_t at = 0; at < bytes; at += kBlock) {
    std::byte* const block = writer.take();
    std::memset(block, 1, static_cast<size_t>(kBlock));
    writer.write(at, block, kBlock);
  }
  writer.finish();
  ::fsync(::fileno(file.get()));
  const double seconds = seconds_since(begin);
  fs::remove(path);
  return static_cast<double>(bytes) / seconds;
}

void bench_files(const fs::path& folder, const StoreCase& of, Report& report) {
  constexpr int64_t kLeastBytes = int64_t{64} << 20;
  StoreLevelOptions level{.kind = StoreLevelOptions::Kind::file};
  level.folder = folder / "store";
  const int64_t bytes = RowFile::expected_bytes(of.dim, of.rows);
  const double disk = disk_rate(folder / "direct", std::max(bytes, kLeastBytes));
  Store store({.levels = {level}});
  const auto begin = std::chrono::steady_clock::now();
  const double cpu_begin = cpu_seconds();
  store.load({.name = "m", .version = "1", .tables = {known_rows(of)}});
  const double seconds = seconds_since(begin), rows = static_cast<double>(of.rows);
  const std::string where = cat(of.rows, " rows of ", of.dim);
  report.add("files, load", where, static_cast<double>(bytes) / seconds / 1e9, "GB/s", disk / 1e9);
  report.add("files, load", where, rows / seconds / 1e6, "M rows/s");
  report.add("files, load, CPU time", where, 1e6 * (cpu_seconds() - cpu_begin) / rows, "us a row");
}

void bench_level(const char* name, const StoreLevelOptions& level, const StoreCase& of, const std::string& rival,
                 double rival_rate, Report& report) {
  Store store({.levels = {level}});
  const auto begin = std::chrono::steady_clock::now();
  store.load({.name = "m", .version = "1", .tables = {known_rows(of)}});
  const double seconds = seconds_since(begin);
  const std::string where = cat(of.rows, " rows of ", of.dim, ", ", of.threads, " threads");
  report.add(cat(name, ", load"), where, static_cast<double>(of.rows) / seconds / 1e6, "M rows/s");
  const LookUpRate rate = look_up(store.view("m"), of);
  report.add(cat(name, ", look-up"), cat(where, ", batches of ", of.batch), rate.rows_per_second / 1e6, "M rows/s",
             rival_rate / 1e6);
  report.add(cat(name, ", CPU time of this program"), where, rate.cpu_us_of_row, "us a row");
  if (rival_rate > 0)
    report.add(rival, where, rival_rate / 1e6, "M rows/s");
  else
    report.add(cat(rival, " (not run)"), where, 0, "M rows/s");
}

/// Calls body(folder) with a new folder, which is removed at the end.
template <class Body>
void in_new_folder(const fs::path& folder, const Body& body) {
  if (fs::exists(folder)) throw Error(Kind::usage, cat("'", folder.string(), "' already exists; name a new folder"));
  fs::create_directories(folder);
  try {
    body(folder);
  } catch (...) {
    fs::remove_all(folder);
    throw;
  }
  fs::remove_all(folder);
}

}  // namespace

void bench_store(const StoreCase& of, Report& report) {
  if (of.redis.empty() && of.rocksdb.empty() && of.files.empty())
    throw Error(Kind::usage, "bench store needs --redis HOST:PORT, --rocksdb FOLDER, or --files FOLDER");
  const auto row_bytes = of.dim * static_cast<int64_t>(sizeof(float));
  if (!of.redis.empty()) {
    StoreLevelOptions level{.kind = StoreLevelOptions::Kind::redis};
    level.redis.addresses.clear();
    std::istringstream list(of.redis);
    for (std::string one; std::getline(list, one, ',');) level.redis.addresses.push_back(one);
    level.redis.timeout_ms = 60000;
    level.redis.connections = of.threads;
    const std::string& first = level.redis.addresses.at(0);
    const double of_one_key = redis_benchmark(first, row_bytes, 1, of);
    if (of_one_key > 0)
      report.add("redis-benchmark, GET of one key", cat("values of ", row_bytes, " bytes"), of_one_key / 1e6,
                 "M rows/s");
    // A node of a cluster has only some of the keys.
    const double rival = level.redis.addresses.size() > 1 ? 0 : redis_benchmark(first, row_bytes, of.rows, of);
    bench_level("Redis", level, of, "redis-benchmark, GET of random keys", rival, report);
  }
  if (!of.files.empty()) in_new_folder(of.files, [&](const fs::path& folder) { bench_files(folder, of, report); });
  if (!of.rocksdb.empty())
    in_new_folder(of.rocksdb, [&](const fs::path& folder) {
      StoreLevelOptions level{.kind = StoreLevelOptions::Kind::rocksdb};
      level.rocksdb.folder = folder / "store";
      level.rocksdb.cache_bytes = 0;
      level.rocksdb.direct_reads = true;
      level.rocksdb.reader_threads = 64;
      bench_level("RocksDB", level, of, "db_bench, multireadrandom", db_bench(folder / "db_bench", row_bytes, of),
                  report);
    });
}

}  // namespace hctr::bench
