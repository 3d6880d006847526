#include "serve/gzip_body.h"

#include <zlib.h>

#include <array>

#include "serve/serve_status.h"

namespace hctr::serve {

std::string unpacked(std::string_view bytes, int64_t most) {
  z_stream stream{};
  if (::inflateInit2(&stream, 32 + 15) != Z_OK) throw Refusal(Code::unavailable, "memory is short");
  struct End {
    z_stream& stream;
    ~End() { ::inflateEnd(&stream); }
  } const end{stream};
  std::string out;
  std::array<char, 1 << 14> part;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  for (int status = Z_OK; status != Z_STREAM_END;) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = static_cast<uInt>(part.size());
    status = ::inflate(&stream, Z_NO_FLUSH);
    const size_t count = part.size() - stream.avail_out;
    if ((status != Z_OK && status != Z_STREAM_END) || (count == 0 && status == Z_OK))
      throw Refusal::invalid("the body does not have the stated Content-Encoding, or is truncated");
    if (static_cast<int64_t>(out.size() + count) > most)
      throw Refusal(Code::too_large,
                    cat("the body of a request may have at most ", most, " bytes, but is larger after unpacking"));
    out.append(part.data(), count);
  }
  return out;
}

std::string gzip_packed(std::string_view bytes) {
  z_stream stream{};
  if (::deflateInit2(&stream, 1, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Refusal(Code::unavailable, "memory is short");
  std::string out(::deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  (void)::deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  ::deflateEnd(&stream);
  return out;
}

}  // namespace hctr::serve
