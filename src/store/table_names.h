// Names of tables in databases that are shared with HugeCTR's parameter server.
#pragma once

#include <cstdint>
#include <string>

namespace hctr {

/// Converts the namespace "<model>/<table>/<number>" to "hps_et.<model>.<table>". Errors: Error(config) if such a name
/// is impossible: rows by slot, or characters other than letters, digits, '_' and '-'.
std::string hugectr_table_name(const std::string& space);

/// The partition of a key among `partitions` (rrxmrrxmsx_0, a public-domain mixer by P. Evensen, 2018).
uint32_t hugectr_partition(int64_t key, uint32_t partitions);

/// Whether the key fits `key_bytes`: 8, or 4 for unsigned 32-bit keys.
inline bool fits_key(int64_t key, int32_t key_bytes) {
  return key_bytes == 8 || (key >= 0 && key <= int64_t{0xFFFFFFFF});
}

}  // namespace hctr
