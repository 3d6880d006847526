// TLS on memory buffers; the caller owns the sockets.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "store/redis_plugin.h"

namespace hctr {

struct FreeSsl {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

/// An error that a retry does not fix: a wrong password or certificate.
struct RedisRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The TLS context of all connections. Throws std::runtime_error naming an invalid file.
std::unique_ptr<SSL_CTX, FreeSsl> tls_context(const RedisSettings&);

/// One TLS connection. Members throw std::runtime_error with the reason.
class TlsStream {
 public:
  TlsStream(SSL_CTX*, const std::string& server_name);
  /// Continues the handshake. Returns whether it is complete; if not, call again after arrived().
  bool shake();
  /// Adds encrypted bytes from the socket.
  void arrived(const char* bytes, size_t count);
  /// Appends the plain text that can be decrypted so far.
  void read(std::string& plain);
  void write(const char* bytes, size_t count);
  const SSL* handle() const { return ssl_.get(); }
  /// Appends encrypted bytes to send.
  void take_out(std::string& out);

 private:
  std::unique_ptr<SSL, FreeSsl> ssl_;
  BIO *in_, *out_;  // owned by ssl_
};

}  // namespace hctr
