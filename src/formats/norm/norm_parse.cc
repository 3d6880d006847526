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

/// The slots of a sparse input, numbered over all inputs.
struct InputSlots {
  size_t input;
  int64_t first, count;
};

/// Transposes the keys of an input with one key per slot, like place_one_hot(), and sets the offsets. `at`: index of
/// the first key. Returns the index after the last key.
template <class Key>
int32_t place_ones(const ParseScratch& scratch, const InputSlots& slots, size_t stride, int32_t at,
                   SampleBlock& block) {
  constexpr int64_t kTile = 64;
  const int64_t n = block.rows;
  const size_t inputs = scratch.one_hot.size();
  int32_t* offsets = block.offsets.data() + slots.first * n;
  for (int64_t i = 0; i < slots.count * n; ++i) offsets[i] = at + static_cast<int32_t>(i);
  grow(block.keys, at + slots.count * n);
  for (int64_t r0 = 0; r0 < n; r0 += kTile)
    for (int64_t s = 0; s < slots.count; ++s) {
      int64_t* to = block.keys.data() + at + s * n;
      for (int64_t r = r0; r < std::min(r0 + kTile, n); ++r)
        to[r] = widened<Key>(scratch.inputs[static_cast<size_t>(r) * inputs + slots.input] +
                             static_cast<size_t>(s) * stride + sizeof(int32_t));
    }
  return at + static_cast<int32_t>(slots.count * n);
}

/// Like place_ones(), for slots with any number of keys.
template <class Key>
int32_t place_input(const ParseScratch& scratch, const InputSlots& slots, int64_t all_slots, int32_t at,
                    SampleBlock& block) {
  const int64_t n = block.rows, first = slots.first, end = first + slots.count;
  const size_t inputs = scratch.one_hot.size();
  for (int64_t s = first; s < end; ++s)
    for (int64_t r = 0; r < n; ++r) {
      block.offsets[static_cast<size_t>(s * n + r)] = at;
      at += scratch.nnz[static_cast<size_t>(r * all_slots + s)];
    }
  grow(block.keys, at);
  for (int64_t r = 0; r < n; ++r) {
    const std::byte* p = scratch.inputs[static_cast<size_t>(r) * inputs + slots.input];
    for (int64_t s = first; s < end; ++s) {
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
    const InputSlots slots{.input = i, .first = first, .count = info.shape.inputs[i].slots};
    at = scratch.one_hot[i] ? place_ones<Key>(scratch, slots, info.sizes.slot_stride, at, block)
                            : place_input<Key>(scratch, slots, info.sizes.slots, at, block);
    first += slots.count;
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

/// Parses the records of a chunk into a block.
template <class Key>
class RecordParser {
 public:
  RecordParser(const NormInfo& info, const Chunk& chunk, std::optional<BadRecordPolicy> policy, ParseScratch& scratch,
               SampleBlock& block)
      : info_(info), sizes_(info.sizes), chunk_(chunk), policy_(policy), scratch_(scratch), block_(block) {}

  BadRecords parse(const RowSelection& selection) {
    most_ = selection.count(chunk_.records);
    grow(block_.label, most_ * info_.shape.label_dim);
    grow(block_.dense, most_ * info_.shape.dense_dim);
    grow(block_.offsets, most_ * sizes_.slots + 1);
    grow(block_.keys, most_ * sizes_.slots);
    scratch_.slots.clear();

    const bool summed = selection.some() && !policy_;
    if (summed) bad_ = scratch_.failed;
    SelectedRecords selected(selection, scratch_);
    for (int64_t i = 0; most_ > 0 && i < chunk_.records; ++i)
      if (selected(i)) parse_record(i, summed);
    block_.rows = rows_;
    if (one_hot_) {
      for (const std::byte*& at : scratch_.slots) at += sizeof(int32_t);  // skips the count of the first slot
      place_one_hot<Key>(scratch_.slots, sizes_.slots, sizes_.slot_stride, nullptr, block_);
    } else {
      place_bags<Key>(scratch_, info_, block_);
    }
    return std::move(bad_);
  }

 private:
  /// `summed`: the checksum is known to be correct.
  void parse_record(int64_t i, bool summed) {
    const int64_t label = info_.shape.label_dim, dense = info_.shape.dense_dim;
    const std::byte* payload = chunk_.buffer.data() + chunk_.begins[static_cast<size_t>(i)];
    const std::byte* end = chunk_.buffer.data() + chunk_.begins[static_cast<size_t>(i) + 1];
    if (info_.check == Check::sum) {
      payload += formats::kFrameLengthBytes;
      end -= formats::kFrameSumBytes;
      if (!summed && !sum_is_right(chunk_, i)) {
        leave_out(i, kFailed);
        if (policy_ == BadRecordPolicy::error) throw Error(Kind::data, bad_.first);
        return;
      }
    }
    if (const int64_t at = find_not_finite(payload, label + dense); at >= 0)
      return refuse(i, cat(at < label ? "label " : "dense value ", at < label ? at : at - label, " is ",
                           load<float>(payload + at * 4)));
    if (const std::string problem = find_slots(payload, end); !problem.empty()) return refuse(i, problem);
    load_floats(payload, label, block_.label.data() + rows_ * label);
    load_floats(payload + static_cast<size_t>(label) * sizeof(float), dense, block_.dense.data() + rows_ * dense);
    scratch_.slots.push_back(payload + sizes_.numbers);
    ++rows_;
  }

  /// If some record so far is not one-hot, stores the number of keys of each slot and the address of each input.
  /// Returns the problem, or an empty text.
  std::string find_slots(const std::byte* payload, const std::byte* end) {
    const std::byte* slots = payload + sizes_.numbers;
    const bool ones = sizes_.one_hot_fits && end - payload == static_cast<ptrdiff_t>(sizes_.one_hot) &&
                      all_one(slots, sizes_.slots, sizes_.slot_stride);
    if (ones && one_hot_) return "";
    const size_t inputs = info_.shape.inputs.size();
    if (one_hot_) store_one_hot_records();
    int32_t* nnz = scratch_.nnz.data() + rows_ * sizes_.slots;
    const std::byte** begins = scratch_.inputs.data() + static_cast<size_t>(rows_) * inputs;
    if (ones) {
      std::fill_n(nnz, sizes_.slots, 1);
      place_inputs(slots, info_, begins);
      return "";
    }
    const SlotWalk walk = walk_slots(slots, end, info_.shape, info_.key_bytes, {nnz, begins, scratch_.one_hot.data()});
    if (walk.end == SlotWalk::End::short_of_bytes)
      return cat("its slots are longer than its ", end - payload, " bytes");
    if (walk.end == SlotWalk::End::whole && walk.at != end)
      return cat("its slots end after ", walk.at - payload, " of its ", end - payload, " bytes");
    return walk.problem;
  }

  /// Called at the first record that is not one-hot. Stores the counts and inputs of all earlier records.
  void store_one_hot_records() {
    const size_t inputs = info_.shape.inputs.size();
    grow(scratch_.nnz, most_ * sizes_.slots);
    std::fill_n(scratch_.nnz.begin(), rows_ * sizes_.slots, 1);
    grow(scratch_.inputs, most_ * static_cast<int64_t>(inputs));
    for (size_t r = 0; r < scratch_.slots.size(); ++r)
      place_inputs(scratch_.slots[r], info_, scratch_.inputs.data() + r * inputs);
    scratch_.one_hot.assign(inputs, 1);
    one_hot_ = false;
  }

  /// Errors: Error(data) unless the policy skips bad records.
  void refuse(int64_t record, const std::string& problem) {
    leave_out(record, problem);
    if (policy_ != BadRecordPolicy::skip) throw Error(Kind::data, describe(info_, chunk_, record, problem));
  }
  /// Adds a skipped record to the bad records.
  void leave_out(int64_t record, const std::string& problem) {
    bad_.add(rows_, [&] { return describe(info_, chunk_, record, problem); });
    if (block_.names_bad)
      bad_.records.push_back(
          {info_.path.string(), chunk_.begin.record + record + 1, offset_of(chunk_, record), problem});
  }

  const NormInfo& info_;
  const NormSizes& sizes_;
  const Chunk& chunk_;
  const std::optional<BadRecordPolicy> policy_;
  ParseScratch& scratch_;
  SampleBlock& block_;
  int64_t most_ = 0;  // number of selected records
  int64_t rows_ = 0;  // number of good records so far
  bool one_hot_ = true;
  BadRecords bad_;
};

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
  // count_norm_rows() has verified the checksums, so every selected record has a correct checksum
  const bool summed = rows.some() && !policy;
  if (block.may_pack && (!summed || scratch.failed.count == 0) &&
      parse_norm_pattern(info, chunk, rows, !summed, scratch.pattern, block))
    return {};
  block.one_hot = block.narrow = block.fits_32 = false;
  block.ones.clear();
  return info.key_bytes == 4 ? RecordParser<uint32_t>(info, chunk, policy, scratch, block).parse(rows)
                             : RecordParser<int64_t>(info, chunk, policy, scratch, block).parse(rows);
}

}  // namespace hctr
