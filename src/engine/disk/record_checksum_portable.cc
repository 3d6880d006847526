// Processors for which no checksum by instructions is written.
#include "engine/disk/record_checksum.h"

namespace hctr {

RecordChecksum checksum_by_instruction() { return nullptr; }

}  // namespace hctr
