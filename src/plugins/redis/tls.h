// TLS between memory and memory: sockets are the caller's.
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

/// An answer that waiting does not change: a wrong password or certificate.
struct RedisRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What connections have in common. Throws std::runtime_error naming a file that cannot be used.
std::unique_ptr<SSL_CTX, FreeSsl> tls_context(const RedisSettings&);

/// One connection. Members throw std::runtime_error with the reason.
class TlsStream {
 public:
  TlsStream(SSL_CTX*, const std::string& server_name);
  /// Whether the handshake is done. Call again with what has arrived meanwhile.
  bool shake();
  /// What has arrived from the socket.
  void arrived(const char* bytes, size_t count);
  /// Appends what can be read of it by now.
  void read(std::string& plain);
  void write(const char* bytes, size_t count);
  const SSL* handle() const { return ssl_.get(); }
  /// Appends what is to be sent.
  void take_out(std::string& out);

 private:
  std::unique_ptr<SSL, FreeSsl> ssl_;
  BIO *in_, *out_;  // of ssl_
};

}  // namespace hctr
