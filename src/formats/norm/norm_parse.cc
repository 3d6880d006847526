// Checks checksums and limits record by record, then transposes keys from record order to slot order.
#include <algorithm>

#include "core/base/expect.h"
#include "formats/data/one_hot.h"
#include "formats/norm/norm_parse.h"

namespace hctr {
namespace {

constexpr const char* kFailed = "fails its check sum";

template <class Key>
int64_t widened(const std::byte* p) {
  return static_cast<int64_t>(load<Key>(p));
}

void load_floats(const std::byte* from, int64_t count, float* to) {
  if (count > 0) std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

/// The index of the first of `count` floats that is NaN or infinite, or -1.
int64_t find_not_finite(const std::byte* floats, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;  // exponent bits, all set in NaN and infinity
  bool found = false;
  for (int64_t i = 0; i < count; ++i) found |= (load<uint32_t>(floats + i * 4) & kExponent) == kExponent;
  for (int64_t i = 0; found && i < count; ++i)
    if ((load<uint32_t>(floats + i * 4) & kExponent) == kExponent) return i;
  return -1;
}

/// Transposes the keys of an input with one key per slot, like place_one_hot(), and sets the offsets. `at`: index of
/// the first key. Returns the index after the last key.
template <class Key>
int32_t place_ones(const ParseScratch& scratch, size_t input, int64_t first, int64_t slots, size_t stride, int32_t at,
                   SampleBlock& block) {
  constexpr int64_t kTile = 64;
  const int64_t n = block.rows;
  const size_t inputs = scratch.one_hot.size();
  int32_t* offsets = block.offsets.data() + first * n;
  for (int64_t i = 0; i < slots * n; ++i) offsets[i] = at + static_cast<int32_t>(i);
  grow(block.keys, at + slots * n);
  for (int64_t r0 = 0; r0 < n; r0 += kTile)
    for (int64_t s = 0; s < slots; ++s) {
      int64_t* to = block.keys.data() + at + s * n;
      for (int64_t r = r0; r < std::min(r0 + kTile, n); ++r)
        to[r] = widened<Key>(scratch.inputs[static_cast<size_t>(r) * inputs + input] + static_cast<size_t>(s) * stride +
                             sizeof(int32_t));
    }
  return at + static_cast<int32_t>(slots * n);
}

/// Like place_ones(), for slots with any number of keys.
template <class Key>
int32_t place_input(const ParseScratch& scratch, size_t input, int64_t first, int64_t slots, int64_t all_slots,
                    int32_t at, SampleBlock& block) {
  const int64_t n = block.rows;
  const size_t inputs = scratch.one_hot.size();
  for (int64_t s = first; s < first + slots; ++s)
    for (int64_t r = 0; r < n; ++r) {
      block.offsets[static_cast<size_t>(s * n + r)] = at;
      at += scratch.nnz[static_cast<size_t>(r * all_slots + s)];
    }
  grow(block.keys, at);
  for (int64_t r = 0; r < n; ++r) {
    const std::byte* p = scratch.inputs[static_cast<size_t>(r) * inputs + input];
    for (int64_t s = first; s < first + slots; ++s) {
      const int32_t count = scratch.nnz[static_cast<size_t>(r * all_slots + s)];
      int64_t* to = block.keys.data() + block.offsets[static_cast<size_t>(s * n + r)];
      p += sizeof(int32_t);
      for (int32_t k = 0; k < count; ++k, p += sizeof(Key)) to[k] = widened<Key>(p);
    }
  }
  return at;
}

template <class Key>
void place_bags(const ParseScratch& scratch, const NormInfo& info, SampleBlock& block) {
  int64_t first = 0;
  int32_t at = 0;
  for (size_t i = 0; i < info.shape.inputs.size(); ++i) {
    const int64_t slots = info.shape.inputs[i].slots;
    at = scratch.one_hot[i] ? place_ones<Key>(scratch, i, first, slots, info.sizes.slot_stride, at, block)
                            : place_input<Key>(scratch, i, first, slots, info.sizes.slots, at, block);
    first += slots;
  }
  block.offsets[static_cast<size_t>(first * block.rows)] = at;
}

/// Sets the start address of each input in a record with one key per slot.
void place_inputs(const std::byte* slots, const NormInfo& info, const std::byte** inputs) {
  for (const RecordShape::Input& input : info.shape.inputs) {
    *inputs++ = slots;
    slots += static_cast<size_t>(input.slots) * info.sizes.slot_stride;
  }
}

int64_t offset_of(const Chunk& chunk, int64_t record) {
  return chunk.begin.offset + chunk.begins[static_cast<size_t>(record)] - chunk.begins[0];
}

/// The message "'a.data': record 7 of 100, at byte 64: ...".
std::string describe(const NormInfo& info, const Chunk& chunk, int64_t record, const std::string& problem) {
  return cat("'", info.path.string(), "': record ", chunk.begin.record + record + 1, " of ",
             info.header.number_of_records, ", at byte ", offset_of(chunk, record), ": ", problem);
}

/// Adds a skipped record to `bad`. `rows`: number of good rows before the record.
void leave_out(const NormInfo& info, const Chunk& chunk, int64_t record, int64_t rows, const std::string& problem,
               bool named, BadRecords& bad) {
  bad.add(rows, [&] { return describe(info, chunk, record, problem); });
  if (named)
    bad.records.push_back({info.path.string(), chunk.begin.record + record + 1, offset_of(chunk, record), problem});
}

/// Whether the checksum of a framed record is correct.
bool sum_is_right(const Chunk& chunk, int64_t record) {
  const std::byte* payload =
      chunk.buffer.data() + chunk.begins[static_cast<size_t>(record)] + formats::kFrameLengthBytes;
  const std::byte* end = chunk.buffer.data() + chunk.begins[static_cast<size_t>(record) + 1] - formats::kFrameSumBytes;
  return byte_sum(payload, static_cast<size_t>(end - payload)) == static_cast<uint8_t>(*end);
}

/// Tests for each record of a chunk, in order, whether a selection contains it.
class SelectedRecords {
 public:
  SelectedRecords(const RowSelection& rows, const ParseScratch& scratch)
      : rows_(rows), failed_(scratch.failed_records) {}

  /// Whether to parse the record. Call once for each record in order.
  bool operator()(int64_t record) {
    if (!rows_.some()) return true;
    if (failed_at_ < failed_.size() && failed_[failed_at_] == record) return ++failed_at_, false;
    const int64_t row = row_++;
    while (span_ < rows_.spans().size() && rows_.spans()[span_].end <= row) ++span_;
    return span_ < rows_.spans().size() && rows_.spans()[span_].begin <= row;
  }

 private:
  const RowSelection& rows_;
  const std::vector<int64_t>& failed_;
  size_t failed_at_ = 0, span_ = 0;
  int64_t row_ = 0;
};

template <class Key>
BadRecords parse(const NormInfo& info, const Chunk& chunk, const RowSelection& selection,
                 std::optional<BadRecordPolicy> policy, ParseScratch& scratch, SampleBlock& block) {
  const NormSizes& sizes = info.sizes;
  const int64_t most = selection.count(chunk.records), label = info.shape.label_dim, dense = info.shape.dense_dim;
  const bool sum = info.check == Check::sum, summed = selection.some() && !policy;
  grow(block.label, most * label);
  grow(block.dense, most * dense);
  grow(block.offsets, most * sizes.slots + 1);
  grow(block.keys, most * sizes.slots);
  scratch.slots.clear();

  int64_t rows = 0;
  bool one_hot = true;
  BadRecords bad = summed ? scratch.failed : BadRecords{};
  SelectedRecords selected(selection, scratch);
  for (int64_t i = 0; most > 0 && i < chunk.records; ++i) {
    if (!selected(i)) continue;
    const std::byte* payload = chunk.buffer.data() + chunk.begins[static_cast<size_t>(i)];
    const std::byte* end = chunk.buffer.data() + chunk.begins[static_cast<size_t>(i) + 1];
    if (sum) {
      payload += formats::kFrameLengthBytes;
      end -= formats::kFrameSumBytes;
      if (!summed && !sum_is_right(chunk, i)) {
        leave_out(info, chunk, i, rows, kFailed, block.names_bad, bad);
        if (policy == BadRecordPolicy::error) throw Error(Kind::data, bad.first);
        continue;
      }
    }
    const std::byte* slots = payload + sizes.numbers;
    if (const int64_t at = find_not_finite(payload, label + dense); at >= 0) {
      const std::string problem = cat(at < label ? "label " : "dense value ", at < label ? at : at - label, " is ",
                                      load<float>(payload + at * 4));
      leave_out(info, chunk, i, rows, problem, block.names_bad, bad);
      if (policy != BadRecordPolicy::skip) throw Error(Kind::data, describe(info, chunk, i, problem));
      continue;
    }
    const bool ones = sizes.one_hot_fits && end - payload == static_cast<ptrdiff_t>(sizes.one_hot) &&
                      all_one(slots, sizes.slots, sizes.slot_stride);
    if (!ones || !one_hot) {
      const size_t inputs = info.shape.inputs.size();
      if (one_hot) {  // at the first record that is not one-hot: sets counts and inputs of the records before it
        grow(scratch.nnz, most * sizes.slots);
        std::fill_n(scratch.nnz.begin(), rows * sizes.slots, 1);
        grow(scratch.inputs, most * static_cast<int64_t>(inputs));
        for (size_t r = 0; r < scratch.slots.size(); ++r)
          place_inputs(scratch.slots[r], info, scratch.inputs.data() + r * inputs);
        scratch.one_hot.assign(inputs, 1);
        one_hot = false;
      }
      int32_t* nnz = scratch.nnz.data() + rows * sizes.slots;
      const std::byte** begins = scratch.inputs.data() + static_cast<size_t>(rows) * inputs;
      if (ones) {
        std::fill_n(nnz, sizes.slots, 1);
        place_inputs(slots, info, begins);
      } else {
        const SlotWalk walk = walk_slots(slots, end, info.shape, info.key_bytes, {nnz, begins, scratch.one_hot.data()});
        std::string problem = walk.problem;
        if (walk.end == SlotWalk::End::short_of_bytes)
          problem = cat("its slots are longer than its ", end - payload, " bytes");
        else if (walk.end == SlotWalk::End::whole && walk.at != end)
          problem = cat("its slots end after ", walk.at - payload, " of its ", end - payload, " bytes");
        if (!problem.empty()) {
          leave_out(info, chunk, i, rows, problem, block.names_bad, bad);
          if (policy != BadRecordPolicy::skip) throw Error(Kind::data, describe(info, chunk, i, problem));
          continue;
        }
      }
    }
    load_floats(payload, label, block.label.data() + rows * label);
    load_floats(payload + static_cast<size_t>(label) * sizeof(float), dense, block.dense.data() + rows * dense);
    scratch.slots.push_back(slots);
    ++rows;
  }
  block.rows = rows;
  if (one_hot) {
    for (const std::byte*& at : scratch.slots) at += sizeof(int32_t);  // skips the count of the first slot
    place_one_hot<Key>(scratch.slots, sizes.slots, sizes.slot_stride, nullptr, block);
  } else
    place_bags<Key>(scratch, info, block);
  return bad;
}

}  // namespace

int64_t count_norm_rows(const NormInfo& info, const Chunk& chunk, std::optional<BadRecordPolicy> policy,
                        ParseScratch& scratch) {
  scratch.failed = {};
  scratch.failed_records.clear();
  if (info.check == Check::sum && !policy)
    for (int64_t i = 0; i < chunk.records; ++i)
      if (!sum_is_right(chunk, i)) {
        scratch.failed.add(i - scratch.failed.count, [&] { return describe(info, chunk, i, kFailed); });
        scratch.failed_records.push_back(i);
      }
  return chunk.records - scratch.failed.count;
}

BadRecords parse_norm_chunk(const NormInfo& info, const Chunk& chunk, const RowSelection& rows,
                            std::optional<BadRecordPolicy> policy, ParseScratch& scratch, SampleBlock& block) {
  // count_norm_rows() has verified the checksums, and no selected record has a wrong one
  const bool summed = rows.some() && !policy;
  if (block.may_pack && (!summed || scratch.failed.count == 0) &&
      parse_norm_pattern(info, chunk, rows, !summed, scratch.pattern, block))
    return {};
  block.one_hot = block.narrow = block.fits_32 = false;
  block.ones.clear();
  return info.key_bytes == 4 ? parse<uint32_t>(info, chunk, rows, policy, scratch, block)
                             : parse<int64_t>(info, chunk, rows, policy, scratch, block);
}

}  // namespace hctr
