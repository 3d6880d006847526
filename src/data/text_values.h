// Numbers and hashes of the cells of a text.
#pragma once

#include <cstdint>
#include <string_view>

namespace hctr {

/// The double nearest to the number; false for what is no number, or no finite float. Blanks around it do not matter.
bool read_number(std::string_view text, double& value);
/// The whole of `text` is an integer, decimal, or hexadecimal without a prefix.
bool read_integer(std::string_view text, int64_t& value);
bool read_hex(std::string_view text, uint64_t& value);

/// A hash of bytes: h = mix64(seed + length), then h = mix64(h ^ word) for each eight bytes as a little-endian word, the last one filled up
/// with zeros. mix64 is in base/random.h. A bijection of the word for texts of one length up to eight: those never collide.
uint64_t text_hash(std::string_view text, uint64_t seed);

/// As read_hex() for the common case of exactly eight digits: their value, or -1 when one is no digit.
int64_t eight_hex_digits(const char* text);

}  // namespace hctr
