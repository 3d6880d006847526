#include "prepare/write/norm_writer.h"

#include <cstring>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace hctr {
namespace {

void append_bytes(std::vector<std::byte>& out, const void* from, size_t count) {
  if (count == 0) return;
  const size_t at = out.size();
  out.resize(at + count);
  std::memcpy(out.data() + at, from, count);
}

template <class T>
void append_value(std::vector<std::byte>& out, T value) {
  append_bytes(out, &value, sizeof value);
}

/// Frames what was appended since `begin`, where room for the length was left.
void close_frame(std::vector<std::byte>& out, size_t begin) {
  const size_t payload = begin + formats::kFrameLengthBytes;
  const auto length = static_cast<int32_t>(out.size() - payload);
  std::memcpy(out.data() + begin, &length, sizeof length);
  unsigned sum = 0;
  for (size_t i = payload; i < out.size(); ++i) sum += static_cast<unsigned>(out[i]);
  append_value(out, static_cast<uint8_t>(sum));
}

}  // namespace

void append_norm_record(const NormStyle& style, std::span<const float> label, std::span<const float> dense,
                        std::span<const int32_t> nnz, std::span<const int64_t> keys, std::vector<std::byte>& out) {
  HCTR_EXPECT(static_cast<int64_t>(label.size()) == style.label_dim &&
                  static_cast<int64_t>(dense.size()) == style.dense_dim &&
                  static_cast<int64_t>(nnz.size()) == style.slots,
              "a record of ", label.size(), " labels, ", dense.size(), " dense values, ", nnz.size(), " slots");
  const size_t begin = out.size();
  if (style.check == Check::sum) append_value(out, int32_t{0});
  append_bytes(out, label.data(), label.size_bytes());
  append_bytes(out, dense.data(), dense.size_bytes());
  size_t at = 0;
  for (const int32_t count : nnz) {
    append_value(out, count);
    HCTR_EXPECT(count >= 0 && at + static_cast<size_t>(count) <= keys.size(),
                "a record has fewer keys than its nnz say");
    for (const size_t stop = at + static_cast<size_t>(count); at < stop; ++at) {
      if (style.key_bytes == 8) {
        append_value(out, keys[at]);
      } else {
        HCTR_EXPECT(keys[at] >= 0 && keys[at] <= std::numeric_limits<uint32_t>::max(), "key ", keys[at],
                    " in a 32-bit file");
        append_value(out, static_cast<uint32_t>(keys[at]));
      }
    }
  }
  HCTR_EXPECT(at == keys.size(), "a record has more keys than its nnz say");
  if (style.check == Check::sum) close_frame(out, begin);
}

std::vector<std::byte> norm_header_block(const NormStyle& style, int64_t records) {
  const formats::NormHeader header = {.error_check = style.check == Check::sum ? 1 : 0,
                                      .number_of_records = records,
                                      .label_dim = style.label_dim,
                                      .dense_dim = style.dense_dim,
                                      .slot_num = style.slots};
  std::vector<std::byte> block;
  if (style.check == Check::sum) append_value(block, int32_t{0});
  append_bytes(block, &header, sizeof header);
  if (style.check == Check::sum) close_frame(block, 0);
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
