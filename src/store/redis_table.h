// A table of a level in Redis. Each partition of the keys is a hash.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hctr/store.h"
#include "store/level.h"
#include "store/redis_batch.h"

namespace hctr {

/// A background thread for work that must not delay look-ups; drops work if its queue is full.
class RedisBackground;

/// Data shared by the tables of a level.
struct RedisShared {
  std::shared_ptr<RedisClient> client;
  StoreRedisOptions options{};
  bool lowest = false;
  std::shared_ptr<RedisBackground> background{};
};

inline constexpr std::string_view kRedisMark = "*";

/// Partition p is the hash "<base>{<tag>/p<p>}v": fields are keys, values are rows, both as bytes. The hash with suffix
/// "t" has the last use or the use count of each row, if eviction needs it. With StoreNames::own the tag contains a
/// random number, which distinguishes the table's rows from rows of other processes, and from the table's own rows
/// before a change that may have been lost. If this level is also the lowest, a field "*" in each hash proves that the
/// hash was not lost.
///
/// If there is a level below, errors of Redis are not thrown: keys whose look-up failed count as missing, and after a
/// change that may have been lost, all rows of the table are abandoned. In the lowest level, failed look-ups and
/// changes throw Error(io).
class RedisTable : public LevelTable {
 public:
  /// `name`: the table's name, used in tags. Does not connect.
  RedisTable(const RedisShared&, std::string name, int64_t dim, int64_t partitions);
  ~RedisTable() override;  // with StoreNames::own, removes the rows

  /// Call before the first use. `clear`: removes existing rows.
  void begin(bool clear);
  /// For the lowest level. flush() sends all changes since the last commit to Redis. After flush(), committed() makes
  /// the changes final, and roll_back() reverts them.
  void flush();
  void committed();
  void roll_back();
  /// Call when the level drops the table. `remove`: deletes rows under HugeCTR's names now. Readers that still hold the
  /// table then get an error, or the rows of levels below.
  void close(bool remove);

  int64_t dim() const override { return dim_; }
  int64_t get(KeysToFind, float* rows, int64_t stride, uint8_t* found) override;
  bool contains(int64_t key) override { return count({&key, 1}) > 0; }
  int64_t count(std::span<const int64_t> keys) override;
  void put(std::span<const int64_t> keys, const float* rows) override;
  void update(std::span<const int64_t> keys, const float* rows) override { put(keys, rows); }
  void remove(std::span<const int64_t> keys) override;
  void offer(std::span<const int64_t> keys, const float* rows) override;
  bool complete() const override { return shared_.lowest; }
  bool is_filled() const override { return shared_.options.fill; }
  int64_t size() const override;
  void each(const RowSink&) override;
  LevelStatistics statistics() const override;

 private:
  struct Names {
    // [partition] names of the Redis hashes that hold rows, and of those that hold the last uses or use counts
    std::vector<std::string> values{}, uses{};
  };
  using NamesPointer = std::shared_ptr<const Names>;
  /// Positions of keys, grouped by partition.
  struct Grouped {
    std::vector<int32_t> places{};
    std::vector<size_t> begins{};  // [partitions + 1]

    /// Calls body(partition, first, count) for pieces of at most `most` positions.
    template <class Body>
    void each_piece(size_t most, Body body) const {
      for (size_t p = 0; p + 1 < begins.size(); ++p)
        for (size_t first = begins[p]; first < begins[p + 1]; first += most)
          body(p, first, std::min(most, begins[p + 1] - first));
    }
  };
  NamesPointer make_names() const;
  NamesPointer names() const;
  /// The names to look up, or null while the rows in Redis may be out of date.
  NamesPointer believed_names();
  bool has_marks() const { return shared_.lowest && shared_.options.names == StoreNames::own; }
  bool counts_uses() const;
  Grouped group(std::span<const int64_t> keys, const uint8_t* found) const;
  int64_t find(const Names&, KeysToFind, float* rows, int64_t stride, uint8_t* found);
  void write(const Names&, std::span<const int64_t> keys, const float* rows);
  void write_gone(const Names&, std::span<const int64_t> keys);
  void clear(const Names&, bool waits) const;
  void clear_quietly() const;
  /// Runs `body`, which changes rows. If the change may be lost, abandons all rows.
  void change(size_t keys, const std::function<void(const Names&)>&);
  void give_up();
  void remember(std::span<const int64_t> keys);
  void restore();
  /// For look-ups while a rollback is incomplete. If Redis has returned changed rows, overwrites them with the rows as
  /// they were before the change.
  int64_t show_before(KeysToFind, float* rows, int64_t stride, const uint8_t* known, uint8_t* found);
  void evict(const Names&, int64_t partition, int64_t rows) const;
  void note_uses(NamesPointer, KeysToFind, const uint8_t* before, const uint8_t* found) const;
  void check(const char* problem) const;
  void check_keys(std::span<const int64_t> keys) const;
  RedisShared shared_;
  std::string name_;
  int64_t dim_, row_bytes_, partitions_;
  mutable std::mutex mutex_;  // guards names_, believed_ and closed_
  NamesPointer names_;
  bool believed_ = true, closed_ = false;
  std::chrono::steady_clock::time_point next_try_{};
  using RowsOrNone = std::map<int64_t, std::optional<std::vector<float>>>;
  bool waits_for_commit_ = false;  // for the lowest level: whether a commit contains the table
  RowsOrNone waiting_{};           // changes for the next commit
  std::atomic<bool> restores_ = false;
  std::mutex restoring_;  // guards before_
  RowsOrNone before_{};   // rows before the changes since the last commit
  std::atomic<int64_t> asked_{0}, found_{0};
  mutable std::atomic<int64_t> failed_{0};
};

}  // namespace hctr
