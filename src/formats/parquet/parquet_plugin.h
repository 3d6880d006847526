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
  number,   ///< f64: the value of a decimal; the seconds of a time, since midnight or 1970-01-01 00:00 UTC
  integer,  ///< i64, only for whole_decimal
  value,    ///< normalized text, equal for equal values: "12.5", "2024-01-31 07:05:00"
  text      ///< text with the column's precision: "12.50", "2024-01-31 07:05:00Z"
};

struct ParquetField {
  const char* name;
  ParquetType type;  ///< type of the values; for a list, of its items
  bool list;
  const char* said;        ///< Arrow's name of the type, for messages
  bool nullable = false;   ///< the column may have nulls; used only for writing
  bool formatted = false;  ///< the values are converted to text (ParquetForm)
};

struct ParquetGroup {
  int64_t rows, bytes;  ///< bytes: compressed size of all columns
};

struct ParquetFileInfo {
  int64_t rows = 0, field_count = 0, group_count = 0;
  const ParquetField* fields = nullptr;
  const ParquetGroup* groups = nullptr;
  const char* written_by = "";  ///< the program that wrote the file; packed: its compression, such as "snappy"
  const char* packed = "";
};

/// Values of a column in consecutive rows. An item is a row's value, or one of the values in a row's list.
///   list   [rows + 1]   row r has the items list[r], ..., list[r + 1] - 1; null: row r has only item r
///   values [items]      numbers; for booleans, bits; for text, the bytes of all items; for nulls, not used
///   text   [items + 1]  item i of text is the bytes [text[i], text[i + 1]) of `values`
struct ParquetValues {
  int64_t rows = 0;
  /// validity bitmap: bit valid_rows_at + r is set if row r has a value; null: every row has a value
  const uint8_t* valid_rows = nullptr;
  int64_t valid_rows_at = 0;
  const int32_t* list = nullptr;
  /// Lists only: item i is valid if bit valid_items_at + i is set; null: all items are valid.
  const uint8_t* valid_items = nullptr;
  int64_t valid_items_at = 0;
  const void* values = nullptr;
  int64_t bits_at = 0;  ///< booleans only: bit offset of the first value in `values`
  const int32_t* text = nullptr;
};

/// Functions that can fail return an error text, or null on success. The text is valid until the same thread calls the
/// plug-in again.

/// A column of one row group, read sequentially by one thread at a time.
class ParquetColumn {
 public:
  virtual ~ParquetColumn() = default;
  /// Reads the next piece_rows rows; fewer at the end of the row group. `owner` keeps the values alive; free it with
  /// drop().
  virtual const char* read(ParquetValues& values, void*& owner) = 0;
};

/// An open Parquet file. open_column() is thread-safe.
class ParquetFile {
 public:
  virtual ~ParquetFile() = default;
  virtual const ParquetFileInfo& info() const = 0;
  virtual const char* open_column(int64_t group, int64_t field, ParquetForm form, ParquetColumn*& column) = 0;
  /// Whether a column of signed integers may contain negative values; false if its statistics exclude them.
  virtual bool may_be_negative(int64_t field) const = 0;
};

/// Receives the bytes of a file in order. Returns false to stop the writer.
struct ParquetSink {
  void* self;
  bool (*write)(void* self, const void* bytes, int64_t count);
};

class ParquetWriter {
 public:
  virtual ~ParquetWriter() = default;
  /// Writes a row group. `columns`: `rows` values of each field; bitmaps start at bit 0.
  virtual const char* write(const ParquetValues* columns, int64_t rows) = 0;
  /// Writes the footer, which completes the file.
  virtual const char* finish() = 0;
};

struct ParquetPlugin {
  int64_t version;    ///< kParquetPlugin of the source tree that built the plug-in
  const char* about;  ///< such as "Arrow C++ 26.0.1"
  /// Opens a file. `piece_rows`: rows per ParquetColumn::read().
  const char* (*open)(const char* path, int64_t piece_rows, ParquetFile** file);
  void (*drop)(void* owner);
  /// Creates a file. Fields may have the types up to `text` in ParquetType, and null; `said` is ignored. `threads`
  /// threads encode columns; their number does not change the bytes.
  const char* (*create)(const ParquetField* fields, int64_t count, int64_t threads, ParquetSink sink,
                        ParquetWriter** writer);
};

inline constexpr int64_t kParquetPlugin = 5;
inline constexpr const char* kParquetPluginFile = "libhuge_ctr_parquet.so";
/// Name of the plug-in's only exported function, const ParquetPlugin* ().
inline constexpr const char* kParquetPluginEntry = "hctr_parquet_plugin";

}  // namespace hctr
