#include "formats/norm/key_width.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr size_t kFirstLook = 64 << 10;  // bytes to examine first; enough for nearly every file
constexpr size_t kLastLook = 64 << 20;   // maximum bytes to examine; few files fit both widths up to here

/// The result of reading records with one key width.
struct Reading {
  int64_t records = 0;  ///< number of valid records
  bool alive = true;    ///< whether all records so far are valid
  bool keys = false;    ///< some record has a key; without keys, both widths give the same records
  std::string problem{};
};

void die(Reading& reading, std::string problem) {
  reading.alive = false;
  reading.problem = cat("record ", reading.records + 1, ": ", problem);
}

/// Widens the limits so that only garbage exceeds them, because true key counts may exceed the declared limits.
RecordShape loose(RecordShape shape) {
  for (RecordShape::Input& input : shape.inputs) {
    input.max_nnz = std::max<int64_t>(input.max_nnz, 1 << 16);
    input.nnz.clear();
    input.max_keys = std::max<int64_t>(input.max_keys, input.slots << 16);
  }
  return shape;
}

/// Reads records with one key width. `bytes`: the bytes of the file from the first record's block on. `whole`: whether
/// these bytes reach the end of the file.
Reading read_as(int key_bytes, const NormInfo& info, const RecordShape& shape, const std::vector<std::byte>& bytes,
                bool whole) {
  Reading reading;
  const size_t numbers = NormSizes(shape, key_bytes).numbers;
  const std::byte *p = bytes.data(), *end = p + bytes.size();
  while (reading.records < info.header.number_of_records) {
    const bool sum = info.check == Check::sum;
    const std::byte *payload = p, *stop = end;
    if (sum) {
      if (end - p < 4) break;
      const auto length = load<int32_t>(p);
      if (length < static_cast<int64_t>(numbers)) return die(reading, cat("is ", length, " bytes long")), reading;
      payload = p + 4;
      if (end - payload < int64_t{length} + 1) break;
      stop = payload + length;
    } else if (end - p < static_cast<int64_t>(numbers)) {
      break;
    }
    const SlotWalk walk = walk_slots(payload + numbers, stop, shape, key_bytes);
    if (walk.end == SlotWalk::End::bad) return die(reading, walk.problem), reading;
    if (walk.end == SlotWalk::End::short_of_bytes) {
      if (!sum) break;
      return die(reading, "its slots are longer than the record"), reading;
    }
    if (sum && walk.at != stop) return die(reading, "its slots are shorter than the record"), reading;
    reading.keys |= walk.at - (payload + numbers) > shape.slots() * 4;
    p = sum ? stop + 1 : walk.at;
    ++reading.records;
  }
  if (!whole) return reading;
  if (reading.records < info.header.number_of_records)
    die(reading, "reaches past the end of the file");
  else if (p != end)
    die(reading, cat("does not exist, but ", end - p, " more bytes follow"));
  return reading;
}

struct Readings {
  Reading as4, as8;
  bool decided() const { return as4.alive != as8.alive; }
  int winner() const { return as4.alive ? 4 : 8; }
};

const char* width_name(int key_bytes) { return key_bytes == 4 ? "32-bit" : "64-bit"; }

}  // namespace

int detect_key_bytes(const NormInfo& info, KeyWidth asked) {
  const int wanted = asked == KeyWidth::u32 ? 4 : asked == KeyWidth::i64 ? 8 : 0;
  if (info.header.number_of_records == 0 || info.header.slot_num == 0) return wanted ? wanted : 8;

  // Framed records store their length, so wide limits suffice to distinguish the widths. Records without frames need
  // the strict limits.
  const RecordShape wide = loose(info.shape), &strict = info.check == Check::sum ? wide : info.shape;
  const auto follow = static_cast<size_t>(info.bytes - info.first_block);
  Readings near;
  for (size_t look = std::min(kFirstLook, follow);; look = std::min(look * 16, follow)) {
    std::vector<std::byte> bytes(look);
    ByteFile file(info.path);
    file.seek(info.first_block);
    bytes.resize(file.read(bytes.data(), look));
    const bool whole = bytes.size() == follow;
    near = {read_as(4, info, strict, bytes, whole), read_as(8, info, strict, bytes, whole)};
    if (!near.as4.alive && !near.as8.alive && info.check == Check::none)
      if (const Readings far = {read_as(4, info, wide, bytes, whole), read_as(8, info, wide, bytes, whole)};
          far.decided())
        near = far;
    if (near.decided() || (!near.as4.alive && !near.as8.alive) || whole || look >= kLastLook) break;
  }

  int found = 0;
  if (near.decided())
    found = near.winner();
  else if (near.as4.alive && !near.as4.keys && !near.as8.keys)
    found = wanted ? wanted : 8;  // no keys: both widths are valid
  else if (!near.as4.alive && near.as4.records != near.as8.records)
    found = near.as4.records > near.as8.records ? 4 : 8;

  const std::string file = cat("'", info.path.string(), "'");
  if (found == 0 && wanted != 0) return wanted;
  if (found == 0 && near.as4.alive)
    throw Error(
        Kind::data,
        cat(file,
            " is valid with 32-bit and with 64-bit keys; set \"input_key_type\": \"I32\" or \"I64\" in the solver"));
  if (found == 0)
    throw Error(Kind::data, cat(file, " is invalid with keys of either width\n  read with 32-bit keys: ",
                                near.as4.problem, "\n  read with 64-bit keys: ", near.as8.problem));
  if (wanted != 0 && wanted != found && near.decided())
    throw Error(Kind::data,
                cat(file, " holds ", width_name(found), " keys, but ", width_name(wanted),
                    " keys were requested by \"input_key_type\"; remove \"input_key_type\" to detect the width of "
                    "each file"));
  return wanted ? wanted : found;
}

}  // namespace hctr
