#include "plugins/redis/tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <stdexcept>

namespace hctr {
namespace {

[[noreturn]] void tls_failed(const std::string& what) {
  char text[256] = "no reason given";
  if (const unsigned long code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  throw std::runtime_error("TLS: " + what + ": " + text);
}

int bounded_size(size_t count) { return static_cast<int>(std::min(count, static_cast<size_t>(INT_MAX))); }

}  // namespace

std::unique_ptr<SSL_CTX, FreeSsl> tls_context(const RedisSettings& settings) {
  std::unique_ptr<SSL_CTX, FreeSsl> context(SSL_CTX_new(TLS_client_method()));
  if (!context) tls_failed("no context");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const std::string ca = settings.ca;
  std::error_code none;
  const bool folder = std::filesystem::is_directory(ca, none);
  if (ca.empty()
          ? !SSL_CTX_set_default_verify_paths(context.get())
          : !SSL_CTX_load_verify_locations(context.get(), folder ? nullptr : ca.c_str(), folder ? ca.c_str() : nullptr))
    tls_failed("loading the trusted certificates '" + ca + "'");
  const std::string certificate = settings.certificate, key = settings.key;
  if (!certificate.empty() && SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1)
    tls_failed("the certificate '" + certificate + "'");
  if (!key.empty() && SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1)
    tls_failed("the key '" + key + "'");
  return context;
}

TlsStream::TlsStream(SSL_CTX* context, const std::string& server_name)
    : ssl_(SSL_new(context)), in_(BIO_new(BIO_s_mem())), out_(BIO_new(BIO_s_mem())) {
  if (!ssl_ || !in_ || !out_) tls_failed("no memory");
  SSL_set_bio(ssl_.get(), in_, out_);  // `ssl_` owns the BIOs now
  X509_VERIFY_PARAM* const verified = SSL_get0_param(ssl_.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(verified, server_name.c_str()) != 1) {
    SSL_set_tlsext_host_name(ssl_.get(), server_name.c_str());
    if (SSL_set1_host(ssl_.get(), server_name.c_str()) != 1) tls_failed("the server name '" + server_name + "'");
  }
  ERR_clear_error();  // set1_ip_asc() leaves an error for names that are not IP addresses
  SSL_set_connect_state(ssl_.get());
}

bool TlsStream::shake() {
  const int done = SSL_do_handshake(ssl_.get());
  if (done == 1) return true;
  if (SSL_get_error(ssl_.get(), done) == SSL_ERROR_WANT_READ) return false;
  const long verified = SSL_get_verify_result(ssl_.get());
  if (verified != X509_V_OK)
    throw RedisRefused(std::string("TLS: checking the server's certificate: ") +
                       X509_verify_cert_error_string(verified));
  tls_failed("the handshake");
}

void TlsStream::arrived(const char* bytes, size_t count) {
  if (BIO_write(in_, bytes, bounded_size(count)) != static_cast<int>(count)) tls_failed("no memory");
}

void TlsStream::read(std::string& plain) {
  char buffer[16384];
  while (true) {
    const int count = SSL_read(ssl_.get(), buffer, sizeof buffer);
    if (count > 0) {
      plain.append(buffer, static_cast<size_t>(count));
      continue;
    }
    const int why = SSL_get_error(ssl_.get(), count);
    if (why == SSL_ERROR_WANT_READ) return;
    if (why == SSL_ERROR_ZERO_RETURN) throw std::runtime_error("TLS: the server has closed the connection");
    tls_failed("reading");
  }
}

void TlsStream::write(const char* bytes, size_t count) {
  for (size_t at = 0; at < count;) {
    const int size = bounded_size(std::min(count - at, size_t{1} << 20));
    const int written = SSL_write(ssl_.get(), bytes + at, size);
    if (written <= 0) tls_failed("writing");
    at += static_cast<size_t>(written);
  }
}

void TlsStream::take_out(std::string& out) {
  char buffer[16384];
  for (int count = 0; (count = BIO_read(out_, buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<size_t>(count));
}

}  // namespace hctr
