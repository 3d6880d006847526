#include "train/product_file.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <tuple>

#include "core/base/environment.h"
#include "core/base/expect.h"
#include "core/base/file_checksum.h"

namespace hctr {
namespace {

constexpr std::string_view kProductHeader = "huge_ctr algorithms of matrix products 1\n";
constexpr std::string_view kCrcWord = "crc ";

std::string product_crc(std::string_view text) {
  return crc_text(crc32_of(std::as_bytes(std::span(text.data(), text.size()))));
}

std::string hex_of(uint64_t word) {
  std::string digits(16, '0');
  for (size_t i = 0; i < digits.size(); ++i) digits[i] = "0123456789abcdef"[word >> (60 - 4 * i) & 15];
  return digits;
}

/// Parses a number at the start of `text`, and removes the number and the next character.
template <class Number>
Number take_number(std::string_view& text, size_t digits, int base, char behind) {
  Number number{};
  const char* const end = text.data() + std::min(text.size(), digits);
  const auto [stop, status] = std::from_chars(text.data(), end, number, base);
  const auto used = static_cast<size_t>(stop - text.data());
  if (status != std::errc() || (behind && (used >= text.size() || text[used] != behind)))
    throw Error(Kind::data, "a line of the file is not a GEMM");
  text.remove_prefix(used + (behind ? 1 : 0));
  return number;
}

std::pair<ops::ProductKey, ops::ProductAlgorithm> product_of_line(std::string_view line) {
  std::pair<ops::ProductKey, ops::ProductAlgorithm> product;
  for (int64_t& number : product.first) number = take_number<int64_t>(line, line.size(), 10, ' ');
  if (line.size() != 16 * product.second.size()) throw Error(Kind::data, "a line of the file is not a GEMM");
  for (uint64_t& word : product.second) word = take_number<uint64_t>(line, 16, 16, 0);
  return product;
}

}  // namespace

std::string product_text(const std::string& library, const ops::ProductAlgorithms& algorithms) {
  std::string text = cat(kProductHeader, "of ", library, "\n");
  for (const auto& [key, algorithm] : algorithms) {
    for (const int64_t number : key) text += cat(number, " ");
    for (const uint64_t word : algorithm) text += hex_of(word);
    text += "\n";
  }
  return text + cat(kCrcWord, product_crc(text), "\n");
}

ops::ProductAlgorithms products_of_text(std::string_view text, const std::string& library) {
  if (!text.starts_with(kProductHeader)) throw Error(Kind::data, "the file does not contain GEMM algorithms");
  const size_t last = text.rfind(kCrcWord);
  if (last == text.npos || text.substr(last) != cat(kCrcWord, product_crc(text.substr(0, last)), "\n"))
    throw Error(Kind::data, "the checksum of the file does not match its content");
  text = text.substr(0, last);
  text.remove_prefix(kProductHeader.size());
  const std::string of = cat("of ", library, "\n");
  if (!text.starts_with(of))
    throw Error(Kind::data, cat("it is ", text.substr(0, text.find('\n')), ", but this is ", library));
  text.remove_prefix(of.size());
  ops::ProductAlgorithms algorithms;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    algorithms.insert(product_of_line(text.substr(0, end)));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return algorithms;
}

std::filesystem::path product_cache_path(const std::string& library, const Environment& environment) {
  const auto folder = [&](const char* variable) {
    return std::filesystem::path(variable_of(environment, variable).value_or(""));
  };
  std::filesystem::path cache = folder("XDG_CACHE_HOME");
  if (cache.empty() && !folder("HOME").empty()) cache = folder("HOME") / ".cache";
  return cache.empty() ? cache : cache / "huge_ctr" / cat("products_", product_crc(library), ".txt");
}

}  // namespace hctr
