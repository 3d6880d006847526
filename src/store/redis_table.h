// A table of a level in Redis: its rows in hashes, a partition of the keys each.
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

/// Work that look-ups do not wait for: a thread, and a queue that drops what it has no room for.
class RedisBackground;

/// What tables of a level have in common.
struct RedisShared {
  std::shared_ptr<RedisClient> client;
  StoreRedisOptions options{};
  bool lowest = false;
  std::shared_ptr<RedisBackground> background{};
};

inline constexpr std::string_view kRedisMark = "*";

/// A partition p is a hash "<base>{<tag>/p<p>}v": fields are the bytes of keys, values the floats of rows. Beside it,
/// "...t" has when or how often rows were used, where that decides about evictions. With own names the tag has a number
/// drawn by chance, so that no row of another process, or of before a change that did not arrive, is taken for one of
/// this table; and where it is the lowest level, a field "*" says that the hash was not lost.
///
/// Above another level nothing throws: keys that cannot be asked for have no rows here, and where a change may not have
/// arrived all rows are given up. As the lowest level, what cannot be asked for or changed is Error(io).
class RedisTable : public LevelTable {
 public:
  /// `name`: of the table, in tags. Contacts nobody.
  RedisTable(const RedisShared&, std::string name, int64_t dim, int64_t partitions);
  ~RedisTable() override;  // removes rows under own names

  /// Before the first use: `clear` removes rows that are there.
  void begin(bool clear);
  /// Of the lowest level: what was put and removed since the last commit reaches Redis by flush(), and stays with
  /// committed(), or is taken back.
  void flush();
  void committed();
  void roll_back();
  /// The level has the table no longer. Rows under HugeCTR's names are removed now, if at all: readers that still have
  /// the table get an error, or what levels below answer.
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
    std::vector<std::string> values{}, uses{};  // by partition
  };
  using NamesPointer = std::shared_ptr<const Names>;
  /// Places of keys by partition.
  struct Grouped {
    std::vector<int32_t> places{};
    std::vector<size_t> begins{};  // [partitions + 1]

    /// Calls body(partition, first, count) for pieces of at most `most` places.
    template <class Body>
    void each_piece(size_t most, Body body) const {
      for (size_t p = 0; p + 1 < begins.size(); ++p)
        for (size_t first = begins[p]; first < begins[p + 1]; first += most)
          body(p, first, std::min(most, begins[p + 1] - first));
    }
  };
  NamesPointer make_names() const;
  NamesPointer names() const;
  /// Those to ask, or null while rows here are not to be believed.
  NamesPointer believed_names();
  bool has_marks() const { return shared_.lowest && shared_.options.names == StoreNames::own; }
  bool counts_uses() const;
  Grouped group(std::span<const int64_t> keys, const uint8_t* found) const;
  int64_t find(const Names&, KeysToFind, float* rows, int64_t stride, uint8_t* found);
  void write(const Names&, std::span<const int64_t> keys, const float* rows);
  void write_gone(const Names&, std::span<const int64_t> keys);
  void clear(const Names&, bool waits) const;
  void clear_quietly() const;
  /// Runs what changes rows; gives them up where it may not have arrived.
  void change(size_t keys, const std::function<void(const Names&)>&);
  void give_up();
  void remember(std::span<const int64_t> keys);
  void restore();
  /// Where changes could not be taken back yet, the rows before them in place of those that were found.
  int64_t show_before(KeysToFind, float* rows, int64_t stride, const uint8_t* known, uint8_t* found);
  void evict(const Names&, int64_t partition, int64_t rows) const;
  void note_uses(NamesPointer, KeysToFind, const uint8_t* before, const uint8_t* found) const;
  void check(const char* problem) const;
  void check_keys(std::span<const int64_t> keys) const;
  RedisShared shared_;
  std::string name_;
  int64_t dim_, row_bytes_, partitions_;
  mutable std::mutex mutex_;  // guards names_ and the next two
  NamesPointer names_;
  bool believed_ = true, closed_ = false;
  std::chrono::steady_clock::time_point next_try_{};
  using RowsOrNone = std::map<int64_t, std::optional<std::vector<float>>>;
  bool waits_for_commit_ = false;  // of the lowest level, once a commit has the table
  RowsOrNone waiting_{};           // for the next commit
  std::atomic<bool> restores_ = false;
  std::mutex restoring_;  // guards before_
  RowsOrNone before_{};   // rows that changes since the last commit have replaced
  std::atomic<int64_t> asked_{0}, found_{0};
  mutable std::atomic<int64_t> failed_{0};
};

}  // namespace hctr
