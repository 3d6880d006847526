// Raw files: records of one fixed size and no header.
#pragma once

#include <functional>
#include <memory>

#include "formats/data/format_type.h"

namespace hctr {

inline constexpr DataFormat kRawFormat{"Raw"};
FormatType raw_format();

/// The bytes of one record: label_dim and dense_dim numbers of 4 bytes, then one key for each slot.
struct RawShape {
  RawShape(const DataSection&, int key_bytes);

  int64_t label_dim, dense_dim, slots;
  int key_bytes;
  bool floats;                   ///< label and dense are float32; else int32, and dense becomes ln(x + 1)
  std::vector<int64_t> offsets;  ///< added to the keys of each slot; empty: nothing is
  int64_t numbers() const { return 4 * (label_dim + dense_dim); }
  int64_t record() const { return numbers() + key_bytes * slots; }
};

/// Records of a file of `bytes` bytes. Errors: Error(data) when they are not a multiple of the record.
int64_t raw_records(const RawShape&, const fs::path& file, int64_t bytes);

/// One file or the files of a list. Errors: as above; Error(data) when the files hold fewer than num_samples records,
/// none, or labels of the other kind (integers for floats).
std::unique_ptr<SampleSet> open_raw_set(const DataSection&, const Source&, KeyWidth, const Log&);

/// Memory that a parser uses again.
struct RawScratch {
  std::vector<std::byte*> slots;
  std::vector<const std::byte*> good;
};

/// Parses `records` records at `bytes` into `block`. Bad ones (a negative key, a dense value without a logarithm, a
/// NaN) are skipped and returned, or an error, as the policy decides. `where(i)` names record i.
BadRecords parse_raw(const RawShape&, const std::byte* bytes, int64_t records, std::optional<BadRecordPolicy>,
                     const std::function<std::string(int64_t)>& where, RawScratch& scratch, SampleBlock& block);

/// The same as rows of a batch, where bad records are errors.
void parse_raw_rows(const RawShape&, const std::byte* bytes, int64_t records,
                    const std::function<std::string(int64_t)>& where, const OneHotRows& to);

}  // namespace hctr
