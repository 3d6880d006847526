#include "prepare/write/norm_writer.h"

#include <limits>

#include "core/base/expect.h"
#include "formats/data/norm_record.h"

namespace hctr {
namespace {

constexpr size_t kFrame = formats::kFrameLengthBytes + formats::kFrameSumBytes;

/// Writes the length before the payload and the checksum after it.
void close_frame(std::byte* begin, std::byte* end) {
  const auto length = static_cast<int32_t>(end - begin);
  std::memcpy(begin - formats::kFrameLengthBytes, &length, sizeof length);
  *end = static_cast<std::byte>(byte_sum(begin, static_cast<size_t>(length)));
}

}  // namespace

size_t norm_record_bytes(const NormStyle& style, size_t keys) {
  const size_t frame = style.check == Check::sum ? kFrame : 0;
  return frame + static_cast<size_t>(style.label_dim + style.dense_dim) * sizeof(float) +
         static_cast<size_t>(style.slots) * sizeof(int32_t) + keys * static_cast<size_t>(style.key_bytes);
}

NormRecordEncoder::NormRecordEncoder(const NormStyle& style, size_t keys, std::vector<std::byte>& out)
    : key_bytes_(style.key_bytes), framed_(style.check == Check::sum) {
  const size_t before = out.size();
  out.resize(before + norm_record_bytes(style, keys));
  begin_ = at_ = out.data() + before + (framed_ ? formats::kFrameLengthBytes : 0);
  end_ = out.data() + out.size() - (framed_ ? formats::kFrameSumBytes : 0);
}

void NormRecordEncoder::finish() {
  HCTR_EXPECT(at_ == end_, "a record of ", end_ - begin_, " bytes was filled with ", at_ - begin_);
  if (framed_) close_frame(begin_, end_);
}

void append_norm_record(const NormStyle& style, std::span<const float> label, std::span<const float> dense,
                        std::span<const int32_t> nnz, std::span<const int64_t> keys, std::vector<std::byte>& out) {
  HCTR_EXPECT(static_cast<int64_t>(label.size()) == style.label_dim &&
                  static_cast<int64_t>(dense.size()) == style.dense_dim &&
                  static_cast<int64_t>(nnz.size()) == style.slots,
              "a record of ", label.size(), " labels, ", dense.size(), " dense values, ", nnz.size(), " slots");
  NormRecordEncoder record(style, keys.size(), out);
  for (const float value : label) record.number(value);
  for (const float value : dense) record.number(value);
  size_t at = 0;
  for (const int32_t count : nnz) {
    HCTR_EXPECT(count >= 0 && at + static_cast<size_t>(count) <= keys.size(),
                "a record has fewer keys than its nnz state");
    record.slot(count);
    for (const size_t stop = at + static_cast<size_t>(count); at < stop; ++at) {
      HCTR_EXPECT(style.key_bytes == 8 || (keys[at] >= 0 && keys[at] <= std::numeric_limits<uint32_t>::max()), "key ",
                  keys[at], " in a 32-bit file");
      record.key(static_cast<uint64_t>(keys[at]));
    }
  }
  HCTR_EXPECT(at == keys.size(), "a record has more keys than its nnz state");
  record.finish();
}

std::vector<std::byte> norm_header_block(const NormStyle& style, int64_t records) {
  const formats::NormHeader header = {.error_check = style.check == Check::sum ? 1 : 0,
                                      .number_of_records = records,
                                      .label_dim = style.label_dim,
                                      .dense_dim = style.dense_dim,
                                      .slot_num = style.slots};
  const bool framed = style.check == Check::sum;
  std::vector<std::byte> block(sizeof header + (framed ? kFrame : 0));
  std::byte* const payload = block.data() + (framed ? formats::kFrameLengthBytes : 0);
  std::memcpy(payload, &header, sizeof header);
  if (framed) close_frame(payload, payload + sizeof header);
  return block;
}

NormWriter::NormWriter(fs::path path, const NormStyle& style) : style_(style), file_(std::move(path)) {
  const std::vector<std::byte> block = norm_header_block(style_, 0);
  file_.write(block.data(), block.size());
}

void NormWriter::append(std::span<const std::byte> bytes, int64_t records) {
  file_.write(bytes.data(), bytes.size());
  records_ += records;
}

void NormWriter::commit() {
  const std::vector<std::byte> block = norm_header_block(style_, records_);
  file_.write_at(0, block.data(), block.size());
  file_.commit();
}

}  // namespace hctr
