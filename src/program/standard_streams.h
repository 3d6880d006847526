// The standard streams of a program: never missing, and their errors are told.
#pragma once

namespace hctr {

/// Opens /dev/null as each of the descriptors 0, 1 and 2 that is closed. Else the next file that is opened would get
/// its number, and messages would be written into it.
void open_closed_streams();

/// Writes out what is buffered for the standard output. Errors: Error(io) if any output so far was lost.
void flush_standard_output();

}  // namespace hctr
