// The start of a Norm file: header, framing, and the width of its keys, which only the records show.
#pragma once

#include <memory>
#include <optional>

#include "formats/data/norm_record.h"
#include "formats/data/source.h"
#include "formats/io/byte_file.h"
#include "hctr/formats.h"

namespace hctr {

/// A Norm reader's requirements on each file.
struct NormDemands {
  RecordShape shape;
  std::optional<Check> check;             ///< must agree with the files where given
  KeyWidth key_width = KeyWidth::detect;  ///< must agree with the files where they show it
};
NormDemands norm_demands(const DataSection&, KeyWidth);

/// One file, understood.
struct NormInfo {
  fs::path path;
  int64_t bytes = 0;
  formats::NormHeader header;
  Check check = Check::none;
  int64_t first_block = 0;  ///< offset of the first record's block
  int key_bytes = 4;        ///< filled by detect_key_bytes()
  RecordShape shape;
  NormSizes sizes;
};

/// Reads and checks the header. Leaves key_bytes and sizes alone.
/// Errors: Error(data) naming the file and both values where the header and the demands disagree.
NormInfo read_norm_header(const fs::path&, const NormDemands&);

/// Reads the header and finds the key width: 4 or 8. Errors: as above, and Error(data) when the file fits
/// neither width, both (then the message says how to choose), or only the one that was not asked for.
NormInfo read_norm_info(const fs::path&, const NormDemands&);

}  // namespace hctr
