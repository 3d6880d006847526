// Converts Arrow's errors to those of the plug-in: an error text, or null for success.
#pragma once

#include <arrow/result.h>

#include <exception>
#include <string>

namespace hctr {

/// Stores an error text for this thread, and returns it.
inline const char* said(std::string text) {
  thread_local std::string last;
  last = std::move(text);
  return last.c_str();
}

/// Runs `body`, which returns an arrow::Status, and converts its error. Catches all exceptions.
template <class Body>
const char* told(const Body& body) {
  try {
    const arrow::Status status = body();
    return status.ok() ? nullptr : said(status.message());
  } catch (const std::exception& error) {
    return said(error.what());
  }
}

}  // namespace hctr
