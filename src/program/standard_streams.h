// Ensures that the standard streams are open, and that their write errors are reported.
#pragma once

namespace hctr {

/// Opens /dev/null as each closed descriptor among 0, 1 and 2. Otherwise the next opened file would get this
/// descriptor, and messages would be written into that file.
void open_closed_streams();

/// Flushes the standard output. Errors: Error(io) if any output so far was lost.
void flush_standard_output();

}  // namespace hctr
