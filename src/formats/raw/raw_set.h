// Raw files: fixed-size records without a header.
#pragma once

#include <functional>
#include <memory>

#include "formats/data/format_type.h"

namespace hctr {

inline constexpr DataFormat kRawFormat{"Raw"};
FormatType raw_format();

/// The layout of one record: label_dim and dense_dim numbers of 4 bytes each, then one key per slot.
struct RawShape {
  RawShape(const DataSection&, int key_bytes);

  int64_t label_dim, dense_dim, slots;
  int key_bytes;
  /// true: labels and dense values are float32; false: int32, and dense values become ln(x + 1)
  bool floats;
  std::vector<int64_t> offsets;  ///< [slots] added to the keys of each slot; empty: no offsets
  int64_t numbers() const { return 4 * (label_dim + dense_dim); }
  int64_t record() const { return numbers() + key_bytes * slots; }
};

/// Number of records in a file of `bytes` bytes. Errors: Error(data) if `bytes` is not a multiple of the record size.
int64_t raw_records(const RawShape&, const fs::path& file, int64_t bytes);

/// Opens one file or the files of a list. Errors: those of raw_records(); Error(data) if the files have no records or
/// fewer than num_samples, or their labels contradict float_label_dense.
std::unique_ptr<SampleSet> open_raw_set(const DataSection&, const Source&, KeyWidth, const Log&);

/// Reusable memory of a parser.
struct RawScratch {
  std::vector<std::byte*> slots;
  std::vector<const std::byte*> good;
};

/// Records in memory.
struct RawRecords {
  const std::byte* bytes;
  int64_t count;
  std::function<std::string(int64_t)> where;  ///< describes record i
};

/// Parses records into `block`. A record is bad if it has a negative key, a dense value without a logarithm, or a NaN.
/// The policy decides whether bad records are skipped and returned, or are an error.
BadRecords parse_raw(const RawShape&, const RawRecords&, std::optional<BadRecordPolicy>, RawScratch& scratch,
                     SampleBlock& block);

/// Parses records directly into rows of a batch. Bad records are errors.
void parse_raw_rows(const RawShape&, const RawRecords&, const OneHotRows& to);

}  // namespace hctr
