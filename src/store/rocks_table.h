// One column family as a table of a level.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "hctr/store.h"
#include "store/level.h"
#include "store/rocks_plugin.h"
#include "store/sorted_rows.h"

namespace hctr {

/// Throws an error that a call of the plug-in has returned: Error(data) if data are damaged, else Error(io).
void check_rocks(const char* problem, const fs::path& folder);

/// get(), count() and contains() see committed rows. In a table that no commit contains yet, they see all rows once
/// finish() has loaded the rows. Any thread may call get() at any time. Only one thread at a time may call the other
/// members.
class RocksTable : public LevelTable {
 public:
  /// `rows`: number of rows; none: unknown, counted on request. `fresh`: whether no commit contains the table yet.
  RocksTable(std::shared_ptr<RocksDatabase>, std::shared_ptr<RocksColumn>, const StoreRocksOptions&, int64_t dim,
             std::optional<int64_t> rows, bool fresh);

  int64_t dim() const override { return dim_; }
  int64_t get(KeysToFind, float* rows, int64_t stride, uint8_t* found) override;
  bool contains(int64_t key) override { return count({&key, 1}) > 0; }
  int64_t count(std::span<const int64_t> keys) override;
  void put(std::span<const int64_t> keys, const float* rows) override;
  void put_all(std::span<const int64_t> keys, const float* rows, ThreadPool&) override;
  void remove(std::span<const int64_t> keys) override;
  int64_t size() const override;
  void each(const RowSink&) override;
  LevelStatistics statistics() const override;

  const std::shared_ptr<RocksColumn>& column() const { return column_; }
  bool fresh() const { return fresh_; }
  void set_rows(std::optional<int64_t> rows) { rows_ = rows.value_or(-1); }
  /// The number of committed rows; none: not counted yet.
  std::optional<int64_t> known_rows() const { return rows_ < 0 ? std::nullopt : std::optional<int64_t>(rows_); }
  /// Loads the rows that were put into a new table.
  void finish() const;
  /// Whether there are changes for the next commit.
  bool changed() const { return fresh_ || !pending_.empty(); }
  /// Adds the changes for the next commit to the list. Returns the table's number of rows after this commit, or none if
  /// unknown.
  std::optional<int64_t> collect(std::vector<RocksChange>&);
  void committed(std::optional<int64_t> rows);
  void roll_back();

 private:
  static constexpr int64_t kGone = -1;
  int64_t find(KeysToFind, float* rows, int64_t stride, uint8_t* found) const;
  void check_keys(std::span<const int64_t> keys) const;
  int64_t counted() const;

  std::shared_ptr<RocksDatabase> database_;
  std::shared_ptr<RocksColumn> column_;
  fs::path folder_;
  int32_t key_bytes_;
  int64_t dim_;
  mutable std::atomic<int64_t> rows_;  // -1: unknown
  bool fresh_;
  mutable std::unique_ptr<SortedRows> loading_{};   // rows to be loaded into a new table
  std::unordered_map<int64_t, int64_t> pending_{};  // [key] index in rows_put_, or kGone
  std::vector<float> rows_put_{};
  std::atomic<int64_t> asked_{0}, found_{0};
};

}  // namespace hctr
