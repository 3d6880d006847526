#include "core/base/passed_text.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/expect.h"

namespace hctr {

std::string read_text_until(const fs::path& path, std::string_view what, const std::atomic<int>* stop) {
  constexpr int kBetweenLooksMs = 100;
  std::error_code none;
  if (!stop || fs::is_regular_file(path, none)) return read_text(path, what);
  const File file = open_to_read(path, what);
  const std::string name = cat(what, what.empty() ? "" : " ", "'", path.string(), "'");
  std::string text;
  char block[1 << 16];
  for (;;) {
    if (*stop != 0) throw Error(Kind::interrupted, cat("stopped while ", name, " was being read"));
    pollfd ready{.fd = ::fileno(file.get()), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kBetweenLooksMs) <= 0) continue;  // poll() has timed out, or a signal has interrupted it
    const ssize_t got = ::read(ready.fd, block, sizeof block);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) throw Error(Kind::io, cat("cannot read ", name, ": ", std::strerror(errno)));
    if (got == 0) return text;
    text.append(block, static_cast<size_t>(got));
    if (static_cast<int64_t>(text.size()) > kMostTextBytes)
      throw Error(Kind::io,
                  cat("cannot read ", name, ": the text is longer than the ", kMostTextBytes, " bytes allowed"));
  }
}

}  // namespace hctr
