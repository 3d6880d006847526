// checksum_by_instruction() for processors other than x86 returns null.
#include "engine/disk/record_checksum.h"

namespace hctr {

RecordChecksum checksum_by_instruction() { return nullptr; }

}  // namespace hctr
