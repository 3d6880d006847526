// Names of tables in databases that HugeCTR's parameter server shares.
#pragma once

#include <cstdint>
#include <string>

namespace hctr {

/// "hps_et.<model>.<table>" of the namespace "<model>/<table>/<number>". Errors: Error(config) naming what such names
/// cannot have: rows by slot, and other characters than letters, digits, '_' and '-'.
std::string hugectr_table_name(const std::string& space);

/// The partition of a key among `partitions` (rrxmrrxmsx_0, a mixer in the public domain by P. Evensen, 2018).
uint32_t hugectr_partition(int64_t key, uint32_t partitions);

/// Whether a key is one of this many bytes: 8, or 4 without a sign.
inline bool fits_key(int64_t key, int32_t key_bytes) {
  return key_bytes == 8 || (key >= 0 && key <= int64_t{0xFFFFFFFF});
}

}  // namespace hctr
