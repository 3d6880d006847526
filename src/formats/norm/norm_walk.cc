#include "formats/norm/norm_walk.h"

#include <algorithm>
#include <limits>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr ptrdiff_t kFrame = formats::kFrameLengthBytes + formats::kFrameSumBytes;

std::string length_problem(const NormInfo& info, const std::byte* record, const std::byte* end, int64_t length) {
  const NormSizes& sizes = info.sizes;
  const std::byte* slots = record + formats::kFrameLengthBytes + sizes.numbers;
  if (length > static_cast<int64_t>(sizes.most) && slots < end)  // if some slot has too many keys, report that slot
    if (const SlotWalk walk = walk_slots(slots, end, info.shape, info.key_bytes); walk.end == SlotWalk::End::bad)
      return walk.problem;
  return cat("has a stated length of ", length, " bytes; the Data layer allows ", sizes.least, " to ", sizes.most);
}

/// Whether a framed record may start at `p`. Requires that the length of the record is allowed and, if the record is
/// complete, that its checksum is correct. `budget`: bytes that may still be summed. Returns false if the budget is
/// exhausted.
bool frame_fits(const NormSizes& sizes, const std::byte* p, const std::byte* end, int64_t& budget) {
  if (end - p < formats::kFrameLengthBytes) return true;  // too few bytes to exclude a record
  const auto length = load<int32_t>(p);
  if (length < static_cast<int64_t>(sizes.least) || length > static_cast<int64_t>(sizes.most)) return false;
  if (end - p < kFrame + length) return true;
  budget -= length;
  if (budget < 0) return false;
  p += formats::kFrameLengthBytes;
  return byte_sum(p, static_cast<size_t>(length)) == static_cast<uint8_t>(p[length]);
}

/// Whether `records` consecutive unframed records may start at `p`. They must contain at least one key.
bool slots_fit(const NormInfo& info, const std::byte* p, const std::byte* end, int records) {
  const NormSizes& sizes = info.sizes;
  bool keys = false;
  for (; records > 0; --records) {
    if (end - p < static_cast<ptrdiff_t>(sizes.least)) return keys;
    const SlotWalk walk = walk_slots(p + sizes.numbers, end, info.shape, info.key_bytes);
    if (walk.end != SlotWalk::End::whole) return walk.end == SlotWalk::End::short_of_bytes && keys;
    keys |= walk.at - p > static_cast<ptrdiff_t>(sizes.least);
    p = walk.at;
  }
  return keys;
}

}  // namespace

RecordWalk walk_records(const NormInfo& info, std::span<const std::byte> bytes, size_t stop, int64_t most,
                        std::vector<uint32_t>& begins) {
  using End = RecordWalk::End;
  const NormSizes& sizes = info.sizes;
  const std::byte *const begin = bytes.data(), *const end = begin + bytes.size(), *const stop_at = begin + stop,
                         *p = begin + begins.back();
  // A record is usually as long as the previous one. Predicting its length avoids a dependency of the next position on
  // a load.
  ptrdiff_t expected = std::numeric_limits<ptrdiff_t>::min();  // matches no length
  for (int64_t records = 0;; ++records) {
    if (p >= stop_at) return {End::stop};
    if (records == most) return {End::most};
    if (info.check == Check::sum) {
      if (end - p < formats::kFrameLengthBytes) return {End::short_of_bytes};
      const auto length = load<int32_t>(p);
      if (length + kFrame != expected) {
        if (length < static_cast<int64_t>(sizes.least) || length > static_cast<int64_t>(sizes.most))
          return {End::bad, length_problem(info, p, end, length)};
        expected = length + kFrame;
      }
      if (end - p < expected) return {End::short_of_bytes};
      p += expected;
    } else if (end - p >= static_cast<ptrdiff_t>(sizes.one_hot) && sizes.one_hot_fits &&
               all_one(p + sizes.numbers, sizes.slots, sizes.slot_stride)) {
      p += sizes.one_hot;
    } else {
      if (end - p < static_cast<ptrdiff_t>(sizes.numbers)) return {End::short_of_bytes};
      SlotWalk walk = walk_slots(p + sizes.numbers, end, info.shape, info.key_bytes);
      if (walk.end == SlotWalk::End::bad) return {End::bad, std::move(walk.problem)};
      if (walk.end == SlotWalk::End::short_of_bytes) return {End::short_of_bytes};
      p = walk.at;
    }
    begins.push_back(static_cast<uint32_t>(p - begin));
  }
}

std::optional<uint32_t> guess_record(const NormInfo& info, std::span<const std::byte> bytes, int64_t offset) {
  constexpr size_t kSearch = 64 << 10;  // a longer search would take longer than waiting for the preceding range
  const NormSizes& sizes = info.sizes;
  const std::byte *const begin = bytes.data(), *const end = begin + bytes.size();
  const std::byte* const last = begin + std::min({bytes.size(), kSearch, sizes.most + kFrame});
  const auto offset_of = [&](const std::byte* p) { return static_cast<uint32_t>(p - begin); };
  if (info.check == Check::sum) {
    // Maximum bytes to checksum. Without a limit the search could be slow: if records may be long, many integers look
    // like the length of a record.
    int64_t budget = 4 * static_cast<int64_t>(bytes.size());
    for (const std::byte* p = begin; p < last && end - p >= kFrame && budget >= 0; ++p) {
      if (!frame_fits(sizes, p, end, budget)) continue;
      const ptrdiff_t length = load<int32_t>(p) + kFrame;
      if (end - p < length || frame_fits(sizes, p + length, end, budget)) return offset_of(p);
    }
    return {};
  }
  // Without frames, records are aligned to 4 bytes.
  const auto first = static_cast<ptrdiff_t>((info.first_block - offset) & 3);
  if (sizes.one_hot_fits)
    for (const std::byte* p = begin + first; p < last && end - p >= static_cast<ptrdiff_t>(2 * sizes.one_hot); p += 4)
      if (load<int32_t>(p + sizes.numbers) == 1 && all_one(p + sizes.numbers, sizes.slots, sizes.slot_stride) &&
          all_one(p + sizes.one_hot + sizes.numbers, sizes.slots, sizes.slot_stride))
        return offset_of(p);
  for (const std::byte* p = begin + first; p < last && end - p >= static_cast<ptrdiff_t>(sizes.least); p += 4)
    if (slots_fit(info, p, end, 8)) return offset_of(p);
  return {};
}

}  // namespace hctr
