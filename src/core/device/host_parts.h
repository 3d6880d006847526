// The host parts of all ReservedBuffers. This list is process-wide, because copy_bytes() gets plain addresses, and an
// address identifies the same memory everywhere in a process.
#pragma once

#include <cstddef>

namespace hctr {

/// Records that a host part starts at `begin` and has `bytes` bytes. 0 bytes removes the record. Thread-safe. A buffer
/// changes only the record of its own part.
void set_host_part(const std::byte* begin, size_t bytes);

/// Whether any of these bytes are in the host part of a ReservedBuffer. Thread-safe.
bool in_host_part(const void* first, size_t bytes);

}  // namespace hctr
