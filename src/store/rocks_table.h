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

/// Throws what a call of the plug-in has returned: Error(data) where data are damaged, else Error(io).
void check_rocks(const char* problem, const fs::path& folder);

/// get() and the like see what is committed; of a new table, all of its rows once they are loaded. Any thread calls
/// get() at any time, the others one thread at a time.
class RocksTable : public LevelTable {
 public:
  /// `rows`: that it has; empty: not known, they are counted when they are asked for. `fresh`: no commit has it yet.
  RocksTable(std::shared_ptr<RocksDatabase>, std::shared_ptr<RocksColumn>, const StoreRocksOptions&, int64_t dim,
             std::optional<int64_t> rows, bool fresh);

  int64_t dim() const override { return dim_; }
  int64_t get(KeysToFind, float* rows, int64_t stride, uint8_t* found) override;
  bool contains(int64_t key) override { return count({&key, 1}) > 0; }
  int64_t count(std::span<const int64_t> keys) override;
  void put(std::span<const int64_t> keys, const float* rows) override;
  void remove(std::span<const int64_t> keys) override;
  int64_t size() const override;
  void each(const RowSink&) override;
  LevelStatistics statistics() const override;

  const std::shared_ptr<RocksColumn>& column() const { return column_; }
  bool fresh() const { return fresh_; }
  void set_rows(std::optional<int64_t> rows) { rows_ = rows.value_or(-1); }
  /// Loads what was put into a new table.
  void finish() const;
  /// Whether something waits for a commit.
  bool changed() const { return fresh_ || !pending_.empty(); }
  /// Adds what waits. Returns the rows of the table with it, or nothing where they are not known.
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
  mutable std::atomic<int64_t> rows_;  // -1: not known
  bool fresh_;
  mutable std::unique_ptr<SortedRows> loading_{};   // of a new table
  std::unordered_map<int64_t, int64_t> pending_{};  // key to its place in rows_put_, or kGone
  std::vector<float> rows_put_{};
  std::atomic<int64_t> asked_{0}, found_{0};
};

}  // namespace hctr
