// SHA-256 and HMAC-SHA-256, with which processes prove that they know a secret. FIPS 180-4; RFC 2104.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace hctr {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);

/// A code of `bytes` that cannot be computed without `key` (HMAC).
Digest hmac_sha256(std::string_view key, std::string_view bytes);

/// Compares in constant time, so that the time of an answer does not reveal how much of a guess is right. Texts of
/// different sizes differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

inline std::string_view view_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// Unpredictable bytes. Errors: Error(device) with the reason of the system.
Digest unpredictable_bytes();

/// Two digits for each byte.
std::string hex(const Digest&);

}  // namespace hctr
