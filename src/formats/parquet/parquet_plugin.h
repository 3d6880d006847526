// The interface of the Parquet plug-in. Only plain types cross it: no exceptions, no containers.
//
// The plug-in (src/plugins/parquet) is a library of its own, loaded when data is Parquet: without Arrow everything else
// builds and runs.
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
};  // null: no row has a value; whole_decimal: without places after the point; clock: a time of day

/// How decimals, dates and times are read, which have no type of C++. Values of other types are as they are.
enum class ParquetForm : int32_t {
  number,   ///< f64: the nearest to a decimal; seconds since 1970-01-01 00:00 UTC, or since midnight
  integer,  ///< i64, of whole_decimal
  value,    ///< text that is equal where values are equal: "12.5", "2024-01-31 07:05:00"
  text      ///< text as the column has it: "12.50", "2024-01-31 07:05:00Z"
};

struct ParquetField {
  const char* name;
  ParquetType type;  ///< type; for a list, of its items
  bool list;
  const char* said;        ///< the type in Arrow's words, for messages
  bool nullable = false;   ///< whether a column to write may have nulls
  bool formatted = false;  ///< a text that ParquetForm makes
};

struct ParquetGroup {
  int64_t rows, bytes;  ///< bytes: packed, of all columns
};

struct ParquetFileInfo {
  int64_t rows = 0, field_count = 0, group_count = 0;
  const ParquetField* fields = nullptr;
  const ParquetGroup* groups = nullptr;
  const char* written_by = "";  ///< "parquet-mr version 1.8.3", "snappy"
  const char* packed = "";
};

/// Values of a column in consecutive rows. An item is a row's value, or one of the values in a row's list.
///   list   [rows + 1]   the items of row r are list[r] up to list[r + 1]; null: row r has item r
///   values [items]      of numbers; of booleans bits, of text its bytes, of nulls nothing
///   text   [items + 1]  item i of text is values[text[i], text[i + 1])
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
