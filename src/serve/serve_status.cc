#include "serve/serve_status.h"

#include <new>

namespace hctr::serve {

std::string_view reason_word(Code code) {
  switch (code) {
    case Code::unavailable:
      return "REJECTED";
    case Code::cancelled:
    case Code::late:
      return "CANCELED";
    case Code::internal:
      return "BACKEND";
    default:
      return "OTHER";
  }
}

int http_status(Code code) {
  switch (code) {
    case Code::ok:
      return 200;
    case Code::invalid:
      return 400;
    case Code::not_found:
      return 404;
    case Code::too_large:
      return 413;
    case Code::cancelled:
      return 499;
    case Code::unavailable:
      return 503;
    case Code::late:
      return 504;
    case Code::internal:
      return 500;
  }
  return 500;
}

int grpc_status(Code code) {
  switch (code) {
    case Code::ok:
      return 0;
    case Code::cancelled:
      return 1;
    case Code::invalid:
      return 3;
    case Code::late:
      return 4;
    case Code::not_found:
      return 5;
    case Code::too_large:
      return 8;
    case Code::unavailable:
      return 14;
    case Code::internal:
      return 13;
  }
  return 13;
}

Status status_of_current_exception() {
  try {
    throw;
  } catch (const Refusal& refusal) {
    return refusal.status();
  } catch (const Error& error) {
    const bool sender = error.kind() == Kind::usage || error.kind() == Kind::data || error.kind() == Kind::config;
    return {sender ? Code::invalid : Code::internal, error.what()};
  } catch (const std::bad_alloc&) {
    return {Code::unavailable, "memory is short"};
  } catch (const std::exception& error) {
    return {Code::internal, error.what()};
  }
}

}  // namespace hctr::serve
