// The interface of the Parquet plug-in. Only plain types cross the interface: no exceptions, no containers.
//
// The plug-in (src/plugins/parquet) is a separate library that is loaded only for Parquet data. The rest of the program
// builds and runs without Arrow.
#pragma once

#include <cstdint>

namespace hctr {

enum class ParquetType : int32_t {
  boolean,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  f32,
  f64,
  text,
  null,
  decimal,
  whole_decimal,
  date,
  timestamp,
  clock,
  other
};  // null: a column without values; whole_decimal: no digits after the point; clock: time of day

/// The form in which decimals, dates and times are returned, because C++ has no such types. Other types are returned as
/// stored.
enum class ParquetForm : int32_t {
  number,   ///< f64: nearest to a decimal; seconds since 1970-01-01 00:00 UTC or since midnight
  integer,  ///< i64, for whole_decimal
  value,    ///< normalized text, equal for equal values: "12.5", "2024-01-31 07:05:00"
  text      ///< text with the column's precision: "12.50", "2024-01-31 07:05:00Z"
};

struct ParquetField {
  const char* name;
  ParquetType type;  ///< type of the values; for a list, of its items
  bool list;
  const char* said;        ///< Arrow's name of the type, for messages
  bool nullable = false;   ///< for writing: whether the column may have nulls
  bool formatted = false;  ///< text produced by a ParquetForm
};

struct ParquetGroup {
  int64_t rows, bytes;  ///< bytes: compressed size of all columns
};

struct ParquetFileInfo {
  int64_t rows = 0, field_count = 0, group_count = 0;
  const ParquetField* fields = nullptr;
  const ParquetGroup* groups = nullptr;
  const char* written_by = "";  ///< such as "parquet-mr version 1.8.3"; `packed`: such as "snappy"
  const char* packed = "";
};

/// Values of a column in consecutive rows. An item is a row's value, or one of the values in a row's list.
///   list   [rows + 1]   row r has the items list[r], ..., list[r + 1] - 1; null: row r has only item r
///   values [items]      numbers; for booleans, bits; for text, the bytes of all items; for nulls, not used
///   text   [items + 1]  item i of text is the bytes [text[i], text[i + 1]) of `values`
struct ParquetValues {
  int64_t rows = 0;
  const uint8_t* valid_rows = nullptr;  ///< bit valid_rows_at + r: row r has a value; null: each has
  int64_t valid_rows_at = 0;
  const int32_t* list = nullptr;
  /// lists only: item i is valid if bit valid_items_at + i is set; null: all are
  const uint8_t* valid_items = nullptr;
  int64_t valid_items_at = 0;
  const void* values = nullptr;
  int64_t bits_at = 0;  ///< booleans only: the bit of the first one in `values`
  const int32_t* text = nullptr;
};

/// Functions that can fail return what went wrong, or null. The text lives until the same thread calls the plug-in
/// again.

/// One column of one row group, front to back. One thread at a time.
class ParquetColumn {
 public:
  virtual ~ParquetColumn() = default;
  /// The next rows: as many as the file was opened for, fewer at the end of the row group. `owner` keeps them alive and
  /// is given to drop().
  virtual const char* read(ParquetValues& values, void*& owner) = 0;
};

/// One file. Any thread may open columns.
class ParquetFile {
 public:
  virtual ~ParquetFile() = default;
  virtual const ParquetFileInfo& info() const = 0;
  virtual const char* open_column(int64_t group, int64_t field, ParquetForm form, ParquetColumn*& column) = 0;
  /// False when the statistics of a column of signed integers say that none is negative.
  virtual bool may_be_negative(int64_t field) const = 0;
};

/// Takes the bytes of a file, in order; false stops the writer.
struct ParquetSink {
  void* self;
  bool (*write)(void* self, const void* bytes, int64_t count);
};

class ParquetWriter {
 public:
  virtual ~ParquetWriter() = default;
  /// Adds a row group: values of each field, `rows` rows each, bits from 0 on.
  virtual const char* write(const ParquetValues* columns, int64_t rows) = 0;
  /// Writes the footer, without which a file is none.
  virtual const char* finish() = 0;
};

struct ParquetPlugin {
  int64_t version;    ///< kParquetPlugin of the program that it was built with
  const char* about;  ///< "Arrow C++ 26.0.1"
  /// Columns will be read in pieces of `piece_rows` rows.
  const char* (*open)(const char* path, int64_t piece_rows, ParquetFile** file);
  void (*drop)(void* owner);
  /// Fields of any type up to `text`, or null; `said` does not matter. Columns are encoded by `threads` threads, to the
  /// same bytes for any number.
  const char* (*create)(const ParquetField* fields, int64_t count, int64_t threads, ParquetSink sink,
                        ParquetWriter** writer);
};

inline constexpr int64_t kParquetPlugin = 5;
inline constexpr const char* kParquetPluginFile = "libhuge_ctr_parquet.so";
/// The plug-in's one symbol: const ParquetPlugin* ().
inline constexpr const char* kParquetPluginEntry = "hctr_parquet_plugin";

}  // namespace hctr
