#include "store/shared_level.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "core/base/files.h"
#include "hctr/error.h"
#include "hctr/store.h"
#include "support/level_rows.h"
#include "support/message_of.h"
#include "support/store_model.h"

namespace hctr::test {
namespace {

std::string name_for(const char* test) { return "test-" + std::to_string(::getpid()) + "-" + test; }

StoreOptions shared_options(const std::string& name) { return {.levels = {{.shared = name}}}; }

bool segment_exists(const std::string& name) { return fs::exists(SharedSegment::path_of(name)); }

// --- A table. Update n changes the entries selected by a hash of key and n, so each process can compute the table.

constexpr int64_t kSharedKeys = 4000, kWideDim = 70, kNarrowDim = 3;

uint64_t choice(int64_t key, int64_t update) {
  const uint64_t x = (static_cast<uint64_t>(update) * 1'000'003 + static_cast<uint64_t>(key)) * 0x9E3779B97F4A7C15u;
  return (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u >> 40;
}

int64_t key_at(int64_t number) {
  if (number == 0) return std::numeric_limits<int64_t>::min();
  if (number == 1) return std::numeric_limits<int64_t>::max();
  return number % 2 ? number : -number * 1'000'000'007;
}

struct ChangesOfUpdate {
  std::vector<int64_t> keys{}, removed{};
  std::vector<float> rows{};
};

ChangesOfUpdate changes_at(int64_t update, int64_t dim) {
  ChangesOfUpdate changes;
  for (int64_t k = 0; k < kSharedKeys; ++k) {
    const uint64_t what = choice(k, update) % 8;
    if (what == 0) changes.removed.push_back(key_at(k));
    if (what == 0 || what > 6) continue;
    changes.keys.push_back(key_at(k));
    for (int64_t e = 0; e < dim; ++e)
      changes.rows.push_back(static_cast<float>(update * 8192 + k) + static_cast<float>(e) / 128);
  }
  return changes;
}

class PlainTables {
 public:
  void replay_to(int64_t update) {
    for (; update_ < update; ++update_)
      for (int t = 0; t < 2; ++t) {
        const ChangesOfUpdate changes = changes_at(update_ + 1, dim_of(t));
        for (const int64_t key : changes.removed) rows_[t].erase(key);
        for (size_t i = 0; i < changes.keys.size(); ++i) {
          const auto row = changes.rows.begin() + static_cast<int64_t>(i) * dim_of(t);
          rows_[t][changes.keys[i]].assign(row, row + dim_of(t));
        }
      }
  }
  static int64_t dim_of(int table) { return table == 0 ? kWideDim : kNarrowDim; }
  /// Compares every key of one state of the view. Returns the iteration of that state.
  int64_t expect_equal(const StoreView& view) {
    const StoreReading reading(view);
    replay_to(reading.iteration());
    EXPECT_EQ(update_, reading.iteration()) << "the view went back to an earlier update";
    std::vector<int64_t> keys;
    for (int64_t k = 0; k < kSharedKeys; ++k) keys.push_back(key_at(k));
    int64_t wrong = 0;
    for (int t = 0; t < 2; ++t) {
      std::vector<float> rows(keys.size() * static_cast<size_t>(dim_of(t)));
      std::vector<uint8_t> found(keys.size());
      reading.get(static_cast<size_t>(t), keys, rows.data(), 0, found.data());
      for (size_t i = 0; i < keys.size(); ++i) {
        const auto row = rows_[t].find(keys[i]);
        wrong += (row != rows_[t].end()) != (found[i] != 0) ||
                 (found[i] && !std::equal(row->second.begin(), row->second.end(),
                                          rows.begin() + static_cast<int64_t>(i) * dim_of(t)));
      }
    }
    EXPECT_EQ(wrong, 0) << "rows after update " << update_;
    return update_;
  }

 private:
  int64_t update_ = 0;
  std::map<int64_t, std::vector<float>> rows_[2];
};

void apply_update(Store& store, int64_t update) {
  const ChangesOfUpdate wide = changes_at(update, kWideDim), narrow = changes_at(update, kNarrowDim);
  const StoreTableUpdate updates[2] = {
      {.table = "wide", .keys = wide.keys, .rows = wide.rows.data(), .removed = wide.removed},
      {.table = "narrow", .keys = narrow.keys, .rows = narrow.rows.data(), .removed = narrow.removed}};
  EXPECT_TRUE(store.apply("m", update, updates));
}

StoreModel empty_model() {
  const auto nothing = [](const StoreRowSink&) {};
  return {.name = "m",
          .version = "1",
          .iteration = 0,
          .tables = {{.name = "wide", .dim = kWideDim, .rows = nothing},
                     {.name = "narrow", .dim = kNarrowDim, .rows = nothing}}};
}

/// Writes one byte to `descriptor` when this process has become the writer. Then applies an update for each byte that
/// it reads, and writes one byte after each update.
[[noreturn]] void update_for_ever(const std::string& name, int descriptor) {
  Store store(shared_options(name));
  while (!store.writable()) store.refresh();
  if (!store.has("m")) store.load(empty_model());
  char byte = 'c';
  for (int64_t update = store.models().at(0).iteration;;) {
    if (::write(descriptor, &byte, 1) != 1 || ::read(descriptor, &byte, 1) != 1) _exit(1);
    apply_update(store, ++update);
  }
}

TEST(SharedMemory, ChildOfTheKillsWrites) {
  if (const char* const name = std::getenv("HCTR_TEST_SHARED"))
    update_for_ever(name, std::atoi(std::getenv("HCTR_TEST_SHARED_TO")));
}

struct Child {
  pid_t process = 0;
  int pipe = -1;
  bool wait() const {
    char byte = 0;
    return ::read(pipe, &byte, 1) == 1;
  }
  /// Starts an update.
  bool start() const { return ::send(pipe, "u", 1, MSG_NOSIGNAL) == 1; }
  void kill_it() const {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
    ::close(pipe);
  }
};

Child start_child(const std::string& name) {
  int pipe[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipe), 0);
  const int to = ::dup(pipe[1]);  // stays open in the child
  for (const char* share : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) unsetenv(share);
  setenv("HCTR_TEST_SHARED", name.c_str(), 1);
  setenv("HCTR_TEST_SHARED_TO", std::to_string(to).c_str(), 1);
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    execl("/proc/self/exe", "unit_tests", "--gtest_filter=SharedMemory.ChildOfTheKillsWrites", nullptr);
    _exit(1);
  }
  unsetenv("HCTR_TEST_SHARED");
  ::close(to);
  ::close(pipe[1]);
  return {child, pipe[0]};
}

TEST(SharedMemory, KilledWritersLeaveWholeUpdatesAndAnotherProcessTakesOver) {
  const char* const more = std::getenv("HCTR_TEST_KILLS");
  const int kills = more ? std::atoi(more) : 20;
  const std::string name = name_for("kills");
  std::mt19937 random(3);
  PlainTables plain;
  Child writer = start_child(name);
  ASSERT_TRUE(writer.wait());
  Store reader(shared_options(name));
  reader.refresh();
  EXPECT_FALSE(reader.writable());
  const StoreView view = reader.view("m");
  int64_t seen = 0, checks = 0;
  for (int number = 0; number < kills; ++number) {
    for (uint32_t updates = random() % 3; updates > 0; --updates) {
      ASSERT_TRUE(writer.start() && writer.wait());
      reader.refresh();
      ++checks;
      ASSERT_NO_FATAL_FAILURE(seen = plain.expect_equal(view));
    }
    ASSERT_TRUE(writer.start());
    usleep(random() % 12000);  // an update takes about 10 ms
    writer.kill_it();
    EXPECT_EQ(plain.expect_equal(view), seen) << "without a writer, the last state stays";
    writer = start_child(name);
    ASSERT_TRUE(writer.wait());  // the new process has become the writer
    ASSERT_FALSE(testing::Test::HasFailure()) << "after kill " << number;
  }
  EXPECT_GT(checks, kills / 2);
  writer.kill_it();
  reader.refresh();
  EXPECT_TRUE(reader.writable());
  seen = plain.expect_equal(view);
  apply_update(reader, seen + 1);
  EXPECT_EQ(plain.expect_equal(view), seen + 1);
  // The tables have 1.2 MB. Each update writes all of their blocks.
  struct stat status {};
  ASSERT_EQ(::stat(SharedSegment::path_of(name).c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 12 << 20) << "memory of killed writers is reused";
}

TEST(SharedMemory, ReadersDuringUpdatesSeeWholeUpdatesOfAllTables) {
  const std::string name = name_for("reads");
  const Child writer = start_child(name);
  ASSERT_TRUE(writer.wait());
  {
    Store reader(shared_options(name));
    reader.refresh();
    const StoreView view = reader.view("m");
    std::atomic<bool> stops{false};
    std::thread refreshing([&] {
      while (!stops) reader.refresh();
    });
    std::thread updating([&] {
      while (writer.start() && writer.wait()) continue;
    });
    PlainTables plain;
    int64_t last = 0;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    for (int reads = 0; reads < 10 || std::chrono::steady_clock::now() < end; ++reads) last = plain.expect_equal(view);
    EXPECT_GT(last, 3);
    stops = true;
    refreshing.join();
    kill(writer.process, SIGKILL);
    updating.join();
  }
  waitpid(writer.process, nullptr, 0);
  ::close(writer.pipe);
}

TEST(SharedMemory, ALevelAndItsReadersEqualPlainMapsInRandomOperations) {
  const std::string name = name_for("random");
  std::mt19937_64 random(5);
  SharedLevel writer(name);
  std::optional<SharedLevel> reader(name);
  using Tables = std::map<std::string, LevelRows>;
  const std::map<std::string, int64_t> dims = {{"a", 1}, {"b", 5}, {"c", 16}};
  Tables now, committed;
  std::shared_ptr<LevelTable> old;
  LevelRows rows_of_old;
  for (int step = 0; step < 600; ++step) {
    const auto& [space, dim] = *std::next(dims.begin(), static_cast<int64_t>(random() % dims.size()));
    const uint64_t what = random() % 40;
    std::vector<int64_t> keys(random() % 500);
    for (int64_t& key : keys) key = static_cast<int64_t>(random() % (step < 300 ? 500 : 8000)) - 100;
    if (what < 20) {
      std::vector<float> rows(keys.size() * static_cast<size_t>(dim));
      for (float& one : rows) one = static_cast<float>(random() % 100000);
      writer.table(space, dim, 0)->put(keys, rows.data());
      for (size_t i = 0; i < keys.size(); ++i) {
        const auto row = rows.begin() + static_cast<int64_t>(i) * dim;
        now[space][keys[i]].assign(row, row + dim);
      }
      now[space];
    } else if (what < 28) {
      writer.table(space, dim, 0)->remove(keys);
      for (const int64_t key : keys) now[space].erase(key);
      now[space];
    } else if (what < 30) {
      writer.drop(space);
      now.erase(space);
      committed.erase(space);  // roll_back() does not restore a dropped table
    } else if (what < 32) {
      writer.roll_back();
      now = committed;
    } else {
      writer.commit(std::to_string(step));
      committed = now;
      EXPECT_TRUE(reader->refresh());
      EXPECT_EQ(reader->note(), std::to_string(step));
      EXPECT_EQ(reader->namespaces(), writer.namespaces());
      ASSERT_EQ(reader->namespaces().size(), committed.size());
      for (const auto& [of, rows] : committed) {
        const auto table = reader->table(of, dims.at(of), 0);
        ASSERT_EQ(level_rows(*table), rows) << of << " at step " << step;
        ASSERT_EQ(level_rows(*writer.table(of, dims.at(of), 0)), rows);
        EXPECT_EQ(table->size(), std::ssize(rows));
        for (const int64_t key : keys) ASSERT_EQ(table->contains(key), rows.contains(key));
      }
      if (old) {
        ASSERT_EQ(level_rows(*old), rows_of_old) << "an earlier commit at step " << step;
      }
      if (random() % 4 == 0 && !committed.empty()) {
        old = reader->table(committed.begin()->first, dims.at(committed.begin()->first), 0);
        rows_of_old = committed.begin()->second;
      }
    }
  }
}

TEST(SharedMemory, DifferencesAreChangedAndRemovedRows) {
  const std::string name = name_for("differences");
  SharedLevel writer(name), reader(name);
  const auto table = writer.table("t", 1, 0);
  std::vector<int64_t> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i);
  table->put(keys, std::vector<float>(1000, 1).data());
  writer.commit("1");
  reader.refresh();
  const auto before = reader.table("t", 1, 0);
  const std::vector<int64_t> changed = {5, 6, 5000}, removed = {7, 8};
  table->put(changed, std::vector<float>{2, 1, 3}.data());
  table->remove(removed);
  writer.commit("2");
  reader.refresh();
  LevelRows differs;
  std::vector<int64_t> gone;
  reader.table("t", 1, 0)->differences(
      *before,
      [&](std::span<const int64_t> of, std::span<const float> rows) { differs[of[0]] = {rows.begin(), rows.end()}; },
      gone);
  EXPECT_EQ(differs, (LevelRows{{5, {2}}, {5000, {3}}})) << "6 has its old value";
  std::sort(gone.begin(), gone.end());
  EXPECT_EQ(gone, removed);
}

TEST(SharedMemory, AStoreEqualsPlainMapsInRandomOperations) {
  Store store(shared_options(name_for("operations")));
  StoreOperations operations(store, 7, 2000, false);
  for (int step = 0; step < 1500; ++step) operations.step();
  EXPECT_EQ(operations.wrong(), 0);
  EXPECT_GT(operations.operations(), 10000);
}

TEST(SharedMemory, TakesAtMostAQuarterMoreThanKeysAndRows) {
  for (const int64_t dim : {1, 16}) {
    const std::string name = name_for("bytes");
    SharedLevel level(name);
    const auto table = level.table("t", dim, 0);
    const int64_t rows = 400'000 / dim;
    std::vector<int64_t> keys(1000);
    const std::vector<float> values(keys.size() * static_cast<size_t>(dim), 1);
    for (int64_t first = 0; first < rows; first += 1000) {
      for (size_t i = 0; i < keys.size(); ++i) keys[i] = (first + static_cast<int64_t>(i)) * 977;
      table->put(keys, values.data());
    }
    level.commit("1");
    level.refresh();
    const auto most = static_cast<double>(rows * (8 + 4 * dim)) * 1.25;
    EXPECT_LE(static_cast<double>(table->statistics().bytes), most);
    EXPECT_LE(SharedRowTable::expected_bytes(dim, rows), most);
    struct stat status {};
    ASSERT_EQ(::stat(SharedSegment::path_of(name).c_str(), &status), 0);
    EXPECT_LE(static_cast<double>(status.st_blocks * 512), most + (3 << 20)) << "dim " << dim;
  }
}

TEST(SharedMemory, OnlyOneProcessUpdatesAndTheErrorNamesIt) {
  const std::string name = name_for("one");
  std::optional<Store> first(shared_options(name));
  first->load(empty_model());
  first->loaded();
  Store second(shared_options(name));
  EXPECT_TRUE(second.has("m"));
  EXPECT_FALSE(second.writable());
  EXPECT_FALSE(second.loading());
  const std::string reason = "process " + std::to_string(::getpid()) + " updates the shared memory '" + name +
                             "', which this process only reads";
  EXPECT_EQ(message_of(Kind::usage, [&] { second.apply("m", 1, {}); }), "an update: " + reason);
  StoreModel other = empty_model();
  other.version = "2";
  EXPECT_NE(message_of(Kind::usage, [&] { second.load(other); }).find(reason), std::string::npos);
  EXPECT_FALSE(second.has("m", "2"));
  EXPECT_EQ(message_of(Kind::usage, [&] { second.unload("m", "1"); }), "unloading a version: " + reason);
  EXPECT_EQ(message_of(Kind::usage, [&] { second.activate("m", "1"); }), "activating a version: " + reason);
  first.reset();
  EXPECT_FALSE(second.writable()) << "a process takes over in refresh()";
  second.refresh();
  EXPECT_TRUE(second.writable());
  second.load(other);
  EXPECT_TRUE(second.has("m", "2"));
}

TEST(SharedMemory, SegmentsWithoutProcessesAreRemoved) {
  const std::string name = name_for("left"), other = name_for("other");
  {
    const Store store(shared_options(name));
    EXPECT_TRUE(segment_exists(name));
  }
  EXPECT_FALSE(segment_exists(name)) << "by the last process";
  const Child killed = start_child(name);
  ASSERT_TRUE(killed.wait());
  killed.kill_it();
  EXPECT_TRUE(segment_exists(name));
  {
    const Store store(shared_options(other));
    EXPECT_FALSE(segment_exists(name)) << "after a kill, by the next process, also under another name";
  }
  const Child again = start_child(name);
  ASSERT_TRUE(again.wait());
  again.kill_it();
  const Store store(shared_options(name));
  EXPECT_TRUE(store.models().empty()) << "rows of ended processes are not served";
}

TEST(SharedMemory, RefusesSegmentsThatItCannotRead) {
  const auto message = [](Kind kind, const std::string& name) {
    return message_of(kind, [&] { SharedSegment::open(name); });
  };
  EXPECT_NE(message(Kind::config, "a/b").find("'a/b' is not a name of shared memory"), std::string::npos);
  const std::string name = name_for("damaged"), path = SharedSegment::path_of(name);
  SharedLevel level(name);
  const int64_t key = 1;
  const float row = 2;
  level.table("t", 1, 0)->put({&key, 1}, &row);
  level.commit("1");
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const auto with_bytes = [&](off_t at, uint32_t value, auto check) {
    uint32_t before = 0;
    ASSERT_EQ(::pread(file, &before, sizeof before, at), 4);
    ASSERT_EQ(::pwrite(file, &value, sizeof value, at), 4);
    check();
    ASSERT_EQ(::pwrite(file, &before, sizeof before, at), 4);
  };
  with_bytes(0, 1, [&] {
    EXPECT_NE(message(Kind::data, name).find("does not start as a segment of huge_ctr"), std::string::npos);
  });
  with_bytes(8, 99, [&] {
    EXPECT_NE(message(Kind::config, name).find("is used by another version of huge_ctr (layout 99/"),
              std::string::npos);
  });
  EXPECT_EQ(message_of(Kind::data, [&] { level.table("t", 2, 0); }),
            "'t' has rows of 1 elements in shared memory '" + name + "', not 2");
  struct stat status {};
  ASSERT_EQ(::fstat(file, &status), 0);
  ASSERT_EQ(::ftruncate(file, 1 << 20), 0);
  EXPECT_NE(message(Kind::data, name).find("is truncated to 1048576 of "), std::string::npos);
  ASSERT_EQ(::ftruncate(file, status.st_size), 0);
  ::close(file);
  EXPECT_NE(
      message_of(
          Kind::config,
          [&] { Store store({.levels = {{.shared = name}, {.kind = StoreLevelOptions::Kind::file, .folder = "x"}}}); })
          .find("must be the only level"),
      std::string::npos);
}

}  // namespace
}  // namespace hctr::test
