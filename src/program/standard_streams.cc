#include "program/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/expect.h"
#include "program/terminal.h"

namespace hctr {

void open_closed_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor)
    // open() returns the lowest free descriptor, which is this one
    if (::fcntl(descriptor, F_GETFD) < 0) (void)!::open("/dev/null", O_RDWR);
}

void flush_standard_output() {
  errno = 0;
  if (!flush_output())
    throw Error(Kind::io,
                cat("cannot write the standard output: ", errno != 0 ? std::strerror(errno) : "output was lost"));
}

}  // namespace hctr
