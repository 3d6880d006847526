// The status of a response, and the exception for refused requests.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "core/base/expect.h"

namespace hctr::serve {

enum class Code { ok, invalid, not_found, too_large, cancelled, unavailable, late, internal };

struct Status {
  Code code = Code::ok;
  std::string message{};
  bool ok() const { return code == Code::ok; }
};

/// The value of the label "reason" in metrics: REJECTED, CANCELED, BACKEND or OTHER.
std::string_view reason_word(Code);
int http_status(Code);
/// The corresponding gRPC status code.
int grpc_status(Code);

/// The exception for a request that is refused because of something that its sender can change.
class Refusal : public std::exception {
 public:
  Refusal(Code code, std::string message) : status_{code, std::move(message)} {}
  template <class... Parts>
  static Refusal invalid(const Parts&... parts) {
    return {Code::invalid, cat(parts...)};
  }
  const Status& status() const { return status_; }
  const char* what() const noexcept override { return status_.message.c_str(); }

 private:
  Status status_;
};

/// The status for the exception being handled. An Error of kind usage, data or config is the sender's fault.
Status status_of_current_exception();

}  // namespace hctr::serve
