#include "prepare/generate/sample_encoder.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "core/base/expect.h"

namespace hctr {
namespace {

template <class T>
void put(std::vector<std::byte>& out, T value) {
  const size_t at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

void put_text(std::vector<std::byte>& out, std::string_view text) {
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), from, from + text.size());
}

/// Converts a dense value in [0, 1] to the integer n with ln(1 + n) nearest to 8 * value, for Raw files with integers.
int32_t count_of(float value) { return static_cast<int32_t>(std::lround(std::expm1(8 * static_cast<double>(value)))); }

std::string header_of(const DataSection& section, char separator) {
  std::string header;
  for (int64_t i = 0; i < section.label.label_dim; ++i)
    header +=
        cat(header.empty() ? "" : std::string(1, separator), section.label.label_dim == 1 ? "label" : cat("label", i));
  for (int64_t i = 0; i < section.dense.dense_dim; ++i) header += cat(separator, "I", i + 1);
  for (int64_t i = 0; i < section.slots(); ++i) header += cat(separator, "C", i + 1);
  return header + "\n";
}

}  // namespace

SampleEncoder::SampleEncoder(const DataSection& section, WrittenAs as, const NormStyle& style)
    : as_(as), style_(style), floats_(section.float_label_dense), added_(static_cast<size_t>(section.slots())) {
  if (as == WrittenAs::csv || as == WrittenAs::tsv) header_ = header_of(section, as == WrittenAs::csv ? ',' : '\t');
  if (as == WrittenAs::parquet) style_.check = Check::none;
  if ((as == WrittenAs::raw || as == WrittenAs::parquet) &&
      static_cast<int64_t>(section.slot_size_array.size()) == section.slots())
    std::exclusive_scan(section.slot_size_array.begin(), section.slot_size_array.end(), added_.begin(), int64_t{0});
}

void SampleEncoder::append(const GeneratedSample& made, std::vector<std::byte>& out) const {
  if (as_ == WrittenAs::norm || as_ == WrittenAs::parquet)
    append_norm(made, out);
  else if (as_ == WrittenAs::raw)
    append_raw(made, out);
  else
    append_line(made, out);
}

void SampleEncoder::append_norm(const GeneratedSample& made, std::vector<std::byte>& out) const {
  if (as_ == WrittenAs::norm)
    return append_norm_record(style_, made.label, made.sample.dense, made.sample.nnz, made.keys, out);
  std::vector<int64_t> keys = made.keys;
  int64_t* key = keys.data();
  for (size_t slot = 0; slot < added_.size(); ++slot)
    for (int32_t k = 0; k < made.sample.nnz[slot]; ++k) *key++ -= added_[slot];
  append_norm_record(style_, made.label, made.sample.dense, made.sample.nnz, keys, out);
}

void SampleEncoder::append_raw(const GeneratedSample& made, std::vector<std::byte>& out) const {
  for (const float label : made.label) floats_ ? put(out, label) : put(out, static_cast<int32_t>(label));
  for (const float value : made.sample.dense) floats_ ? put(out, value) : put(out, count_of(value));
  for (size_t slot = 0; slot < made.keys.size(); ++slot) {
    const int64_t key = made.keys[slot] - added_[slot];
    HCTR_EXPECT(made.sample.nnz[slot] == 1 && key >= 0, "slot ", slot, " of a Raw record has ", made.sample.nnz[slot],
                " keys, the first ", key);
    put(out, static_cast<int32_t>(key));
  }
}

void SampleEncoder::append_line(const GeneratedSample& made, std::vector<std::byte>& out) const {
  const char separator = as_ == WrittenAs::csv ? ',' : '\t';
  std::string line;
  char number[32];
  for (const float label : made.label)
    line += cat(line.empty() ? "" : std::string(1, separator), static_cast<int>(label));
  for (const float value : made.sample.dense) {
    std::snprintf(number, sizeof number, "%c%.9g", separator, static_cast<double>(value));
    line += number;
  }
  const int64_t* key = made.keys.data();
  for (const int32_t nnz : made.sample.nnz) {
    line += separator;
    for (int32_t k = 0; k < nnz; ++k) {
      if (k > 0) line += '|';
      line += std::to_string(*key++);
    }
  }
  put_text(out, line + "\n");
}

std::vector<std::byte> SampleEncoder::start(int64_t samples) const {
  std::vector<std::byte> bytes;
  if (as_ == WrittenAs::norm)
    bytes = norm_header_block(style_, samples);
  else
    put_text(bytes, header_);
  return bytes;
}

std::string SampleEncoder::ending() const {
  switch (as_) {
    case WrittenAs::norm:
      return ".data";
    case WrittenAs::csv:
      return ".csv";
    case WrittenAs::tsv:
      return ".tsv";
    case WrittenAs::parquet:
      return ".parquet";
    case WrittenAs::raw:
      break;
  }
  return "";
}

}  // namespace hctr
