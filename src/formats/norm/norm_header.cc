#include "formats/norm/norm_header.h"

#include <numeric>

#include "core/base/expect.h"
#include "formats/norm/key_width.h"

namespace hctr {
namespace {

constexpr size_t kHeaderBytes = sizeof(formats::NormHeader);
constexpr size_t kFramedBytes = formats::kFrameLengthBytes + kHeaderBytes + formats::kFrameSumBytes;

/// Compares the header's numbers of labels, dense values and slots with the config.
void check_dimensions(const NormInfo& info, const RecordShape& shape) {
  const auto compare = [&](const char* field, int64_t in_file, int64_t wanted, const char* hint) {
    if (in_file != wanted)
      throw Error(Kind::data, cat("'", info.path.string(), "': its header says ", field, " ", in_file,
                                  ", but the Data layer expects ", wanted, hint));
  };
  compare("label_dim", info.header.label_dim, shape.label_dim, "");
  compare("dense_dim", info.header.dense_dim, shape.dense_dim, "");
  compare("slot_num", info.header.slot_num, shape.slots(), " (the sum over its sparse inputs)");
}

const char* word(Check check) { return check == Check::sum ? "Sum" : "None"; }

}  // namespace

NormDemands norm_demands(const DataSection& section, KeyWidth width) {
  return {.shape = record_shape(section), .check = section.check, .key_width = width};
}

NormInfo read_norm_header(const fs::path& path, const NormDemands& demands) {
  ByteFile file(path);
  NormInfo info{.path = path, .bytes = file.size(), .header = {}, .shape = demands.shape, .sizes = {}};
  std::byte start[kFramedBytes] = {};
  const size_t got = file.read(start, kFramedBytes);
  const auto fail = [&](const auto&... parts) { throw Error(Kind::data, cat("'", path.string(), "'", parts...)); };
  if (got < kHeaderBytes) fail(" is not a Norm file: the file has ", got, " bytes, but a header has ", kHeaderBytes);

  const auto sum =
      std::accumulate(start + 4, start + 4 + kHeaderBytes, 0u, [](unsigned s, std::byte b) { return s + unsigned(b); });
  const bool framed = got == kFramedBytes && load<int32_t>(start) == int32_t{kHeaderBytes} &&
                      static_cast<uint8_t>(sum) == static_cast<uint8_t>(start[kFramedBytes - 1]);
  info.header = load<formats::NormHeader>(framed ? start + 4 : start);
  info.check = framed ? Check::sum : Check::none;
  info.first_block = framed ? kFramedBytes : kHeaderBytes;

  const formats::NormHeader& h = info.header;
  constexpr int64_t most = 1 << 30;
  const bool plausible = h.error_check == (framed ? 1 : 0) && h.number_of_records >= 0 && h.label_dim >= 0 &&
                         h.label_dim < most && h.dense_dim >= 0 && h.dense_dim < most && h.slot_num >= 0 &&
                         h.slot_num < most;
  if (!plausible && !framed && load<int32_t>(start) == int32_t{kHeaderBytes})
    fail(": the check sum of the header does not match: the file is damaged");
  if (!plausible)
    fail(" is not a Norm file: its header says error_check ", h.error_check, ", number_of_records ",
         h.number_of_records, ", label_dim ", h.label_dim, ", dense_dim ", h.dense_dim, ", slot_num ", h.slot_num);
  if (demands.check && *demands.check != info.check)
    fail(": \"check\" is \"", word(*demands.check), "\" in the Data layer, but this file was written with \"",
         word(info.check), "\"");
  check_dimensions(info, demands.shape);

  const auto least = static_cast<int64_t>(NormSizes(demands.shape, 4).least) +
                     (framed ? formats::kFrameLengthBytes + formats::kFrameSumBytes : 0);
  const int64_t left = info.bytes - info.first_block;
  if (h.number_of_records > left / least)
    fail(": its header promises ", h.number_of_records, " records, of at least ", least, " bytes each, but only ", left,
         " bytes follow; was the file truncated?");
  return info;
}

NormInfo read_norm_info(const fs::path& path, const NormDemands& demands) {
  NormInfo info = read_norm_header(path, demands);
  info.key_bytes = detect_key_bytes(info, demands.key_width);
  info.sizes = NormSizes(info.shape, info.key_bytes);
  return info;
}

}  // namespace hctr
