// Reads the start of a Norm file: header and framing. The header does not record the key width, which is detected from
// the records.
#pragma once

#include <memory>
#include <optional>

#include "formats/data/norm_record.h"
#include "formats/data/source.h"
#include "formats/io/byte_file.h"
#include "hctr/formats.h"

namespace hctr {

/// The requirements of a config on each Norm file.
struct NormDemands {
  RecordShape shape;
  std::optional<Check> check;  ///< if set, every file must have this check
  /// The key width that every file must have. If the records of a file fit both widths, this width is used. detect: any
  /// width.
  KeyWidth key_width = KeyWidth::detect;
};
NormDemands norm_demands(const DataSection&, KeyWidth);

/// The properties of one Norm file.
struct NormInfo {
  fs::path path;
  int64_t bytes = 0;
  formats::NormHeader header;
  Check check = Check::none;
  int64_t first_block = 0;  ///< offset of the first record's block
  int key_bytes = 4;        ///< set by detect_key_bytes()
  RecordShape shape;
  NormSizes sizes;
};

/// Reads and checks the header. Does not set key_bytes and sizes. Errors: Error(data) naming the file, the header's
/// value and the demanded value if the two differ.
NormInfo read_norm_header(const fs::path&, const NormDemands&);

/// Reads the header and detects the key width, 4 or 8. Errors: those of read_norm_header(). Also Error(data) in three
/// cases: the file fits neither width; the file fits only the width that was not requested; or the file fits both
/// widths and none was requested (the message says how to choose).
NormInfo read_norm_info(const fs::path&, const NormDemands&);

}  // namespace hctr
