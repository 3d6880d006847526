#include "stream/hps_message.h"

#include <bit>
#include <cstring>
#include <limits>

#include "core/base/expect.h"
#include "core/base/not_finite.h"

namespace hctr {
namespace {

constexpr std::string_view kHpsMagic = "HCTR";
constexpr size_t kHpsHead = 8;

}  // namespace

std::string hps_topic(std::string_view model, std::string_view table) { return cat("hps_et.", model, ".", table); }

uint64_t hps_mixed(uint64_t x) {
  x ^= std::rotr(x, 25) ^ std::rotr(x, 50);
  x *= 0xA24BAED4963EE407ULL;
  x ^= std::rotr(x, 24) ^ std::rotr(x, 49);
  x *= 0x9FB21C651E98DF25ULL;
  return x ^ x >> 28;
}

std::string write_hps_message(std::span<const int64_t> keys, std::span<const float> rows, int64_t dim, int key_bytes) {
  const auto row_bytes = static_cast<uint32_t>(dim) * static_cast<uint32_t>(sizeof(float));
  std::string message(kHpsMagic);
  message.append(reinterpret_cast<const char*>(&row_bytes), sizeof row_bytes);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (key_bytes == 4 && (keys[i] < 0 || keys[i] > std::numeric_limits<uint32_t>::max()))
      throw Error(Kind::data, cat("key ", keys[i], " does not fit in 32 bits"));
    message.append(reinterpret_cast<const char*>(&keys[i]), static_cast<size_t>(key_bytes));
    message.append(reinterpret_cast<const char*>(rows.data() + i * static_cast<size_t>(dim)), row_bytes);
  }
  return message;
}

std::string read_hps_message(std::string_view message, int64_t dim, int key_bytes, std::vector<int64_t>& keys,
                             std::vector<float>& rows) {
  if (message.size() < kHpsHead || !message.starts_with(kHpsMagic)) return "a message does not start with HCTR";
  uint32_t row_bytes = 0;
  std::memcpy(&row_bytes, message.data() + 4, sizeof row_bytes);
  const std::string_view pairs = message.substr(kHpsHead);
  if (pairs.empty()) return "";
  const auto elements = static_cast<size_t>(dim);
  if (row_bytes != elements * sizeof(float))
    return cat("a message has an unexpected row size of ", row_bytes, " bytes");
  const size_t pair_bytes = row_bytes + static_cast<size_t>(key_bytes), count = pairs.size() / pair_bytes;
  if (pairs.size() % pair_bytes != 0)
    return cat("a message with ", pairs.size(), " bytes cannot be divided into pairs of ", pair_bytes, " each");
  const size_t keys_before = keys.size(), rows_before = rows.size();
  keys.resize(keys_before + count);
  rows.resize(rows_before + count * elements);
  for (size_t i = 0; i < count; ++i) {
    const char* const pair = pairs.data() + i * pair_bytes;
    std::memcpy(&keys[keys_before + i], pair, static_cast<size_t>(key_bytes));
    std::memcpy(&rows[rows_before + i * elements], pair + key_bytes, row_bytes);
  }
  if (find_not_finite(std::span<const float>(rows).subspan(rows_before)) < 0) return "";
  keys.resize(keys_before);
  rows.resize(rows_before);
  return "a message has a number that is not finite";
}

}  // namespace hctr
