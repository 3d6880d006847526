// Catches an Error and returns its message.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "hctr/error.h"

namespace hctr::test {

/// Runs `body`, which must throw an Error of kind `kind`, and returns the message.
template <class Body>
std::string message_of(Kind kind, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(kind_name(error.kind()), kind_name(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return "";
}

}  // namespace hctr::test
