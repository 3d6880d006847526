// The arrays of a table that have one element per row: their memory, and the pointers for kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expect.h"
#include "core/device/buffer.h"
#include "core/device/context.h"
#include "engine/rows/row_column.h"
#include "engine/spec/table_spec.h"
#include "ops/embedding/access_stats.h"
#include "ops/embedding/embedding_rows.h"
#include "ops/embedding/row_removal.h"

namespace hctr {

/// The arrays reserve addresses for the maximum number of rows. Growth moves no data, so recorded work stays valid. The
/// index determines which rows exist.
class RowArrays {
 public:
  /// Reserves addresses for `rows` rows without allocating memory. `budget`: counts the bytes of vectors and optimizer
  /// states; must outlive this object. `on_disk`: rows may be on disk.
  RowArrays(Runtime&, RowMemory& budget, const TableSpec&, bool on_disk, int64_t rows);

  Runtime& runtime() const { return runtime_; }
  /// Returns "table 'wide' on rank 0".
  static std::string label_of(const TableSpec& spec) { return cat("table '", spec.name, "' on rank ", spec.rank); }
  const std::string& label() const { return label_; }

  std::vector<RowColumn>& columns() { return columns_; }
  const std::vector<RowColumn>& columns() const { return columns_; }
  const RowColumn& column(std::string_view name) const;
  /// The first column that checkpoints contain.
  const RowColumn& first_saved() const;
  /// Adds a column that checkpoints do not contain.
  void add(RowColumn column) { columns_.push_back(std::move(column)); }

  // Pointers for kernels.
  const ops::RowData& data() const { return data_; }
  const ops::RowInit& init() const { return init_; }
  const ops::AccessStats& access_stats() const { return access_stats_; }
  int64_t* keys() const { return keys_; }    ///< null: rows are found by arithmetic
  int32_t* slots() const { return slots_; }  ///< null: rows do not depend on slots, or are found by arithmetic
  /// Fate::leaves marks a row that is evicted to disk. Null without a disk tier.
  ops::Fate* left() const { return left_; }
  /// Marks of changed rows; null: changes are not marked.
  uint8_t* marks() const { return access_stats_.changed; }
  /// The record number of each row in the last full checkpoint. Null if changed rows are not marked, or if the table
  /// has no disk tier.
  int32_t* base_places() const { return base_places_; }
  /// Sets how direct keys are mapped to rows, possibly through places().
  void set_direct(const ops::DirectIndex& direct) { data_.identity.direct = direct; }
  /// With direct keys: [rows + 1] on the device, the position of each row number in the arrays. Null: position and row
  /// number are equal.
  const int32_t* places() const { return data_.identity.direct.places; }
  /// The inverse of places(): the row number at each position.
  const int32_t* numbers() const { return data_.identity.direct.numbers; }
  /// Sets on the device the number of steps, modulo 2^32, that the access statistics have counted before the first step
  /// of this run.
  void set_steps_before(uint32_t steps);

  /// most_rows(): rows with reserved addresses. capacity(): rows with allocated memory.
  int64_t most_rows() const { return most_rows_; }
  int64_t capacity() const { return capacity_; }
  /// Memory grows in three calls. grow_besides_numbers() allocates all columns other than vectors and optimizer states.
  /// grow_numbers() allocates vectors and optimizer states, with the first `on_device` rows on the device.
  /// set_capacity() confirms that all memory is allocated. Errors: Error(device).
  void grow_besides_numbers(int64_t rows);
  void grow_numbers(int64_t rows, int64_t on_device);
  void set_capacity(int64_t rows) { capacity_ = rows; }
  /// Moves vectors and optimizer states of all rows after the first `staying` rows to the host. Waits for the compute
  /// stream; see ReservedBuffer.
  void move_to_host(int64_t staying);
  bool has_numbers_on_host() const;
  /// Device bytes of vectors and optimizer states.
  int64_t number_bytes_on_device() const;
  int64_t staging_bytes() const { return staging_ ? static_cast<int64_t>(staging_->bytes()) : 0; }
  int64_t mark_bytes() const { return marks_ ? static_cast<int64_t>(marks_->bytes()) : 0; }

  /// Device memory for copies to and from the host. Allocated only with change marks or a disk tier.
  std::span<std::byte> staging() const { return {staging_->data(), staging_->bytes()}; }
  /// Calls body(context, row numbers on the device, count) for chunks of a list, and waits for the stream. Uses
  /// staging().
  void for_listed(StreamRef, std::span<const int32_t> rows,
                  const std::function<void(Context&, const int32_t*, int64_t)>& body) const;
  /// Copies rows of a column to the host. Uses staging().
  void copy_out(const RowColumn&, std::span<const int32_t> rows, std::byte* to) const;
  /// Copies bytes of a column's array, from byte `first` on, in the order of row numbers, whatever the positions of the
  /// rows. The first row is row 1.
  void read(StreamRef, const RowColumn&, int64_t first, std::span<std::byte> to) const;

 private:
  template <class T>
  T* add_column(std::string name, std::string_view type, bool wanted, int64_t elements_per_row,
                RowMemory* budget = nullptr);
  ops::RowMemory add_numbers(std::string name, DType, int64_t elements_per_row, RowMemory& budget);
  void set_init(const TableSpec&, bool on_disk);
  void read_places(StreamRef, const RowColumn&, int64_t first, std::span<std::byte> to) const;

  Runtime& runtime_;
  std::string label_;
  int64_t most_rows_, capacity_ = 0;
  std::vector<RowColumn> columns_;
  std::optional<ReservedBuffer> marks_;  // [rows]
  std::optional<Buffer> staging_;
  Buffer slot_bounds_, steps_before_;
  int64_t* keys_ = nullptr;
  int32_t* slots_ = nullptr;
  ops::Fate* left_ = nullptr;
  int32_t* base_places_ = nullptr;
  ops::RowData data_;
  ops::RowInit init_;
  ops::AccessStats access_stats_;
};

}  // namespace hctr
