// The standard streams of a program: always open, with their errors reported.
#pragma once

namespace hctr {

/// Opens /dev/null as each closed descriptor among 0, 1 and 2. Otherwise the next opened file would get its number, and
/// messages would be written into it.
void open_closed_streams();

/// Flushes the standard output. Errors: Error(io) if any output so far was lost.
void flush_standard_output();

}  // namespace hctr
