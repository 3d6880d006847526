// SHA-256 and HMAC-SHA-256 (FIPS 180-4; RFC 2104). Processes use HMAC to prove that they know a secret.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace hctr {

using Digest = std::array<uint8_t, 32>;

Digest sha256(std::string_view bytes);

/// The HMAC of `bytes`: a code that cannot be computed without `key`.
Digest hmac_sha256(std::string_view key, std::string_view bytes);

/// Compares in constant time, so that the response time does not reveal how many bytes of a guess are correct. Texts of
/// different sizes are unequal.
bool equal_in_constant_time(std::string_view a, std::string_view b);

inline std::string_view view_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// Cryptographically random bytes. Errors: Error(device) with the system's reason.
Digest unpredictable_bytes();

/// Two hexadecimal digits per byte.
std::string hex(const Digest&);

}  // namespace hctr
