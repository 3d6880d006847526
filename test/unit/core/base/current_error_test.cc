// Exceptions of libraries become Errors with a kind and a message.
#include "core/base/current_error.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "support/message_of.h"

namespace hctr::test {
namespace {

template <class Exception>
std::string sentence(Kind kind, const Exception& exception) {
  return message_of(kind, [&] {
    try {
      throw exception;
    } catch (...) {
      throw current_error();
    }
  });
}

TEST(CurrentError, NamesMemoryThreadsFilesAndTheRest) {
  EXPECT_EQ(sentence(Kind::data, Error(Kind::data, "no label")), "no label");
  EXPECT_TRUE(sentence(Kind::device, std::bad_alloc()).starts_with("out of memory on the CPU; "));
  EXPECT_TRUE(sentence(Kind::device, std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)))
                  .starts_with("the system could not create a thread or a lock: Resource temporarily unavailable; "
                               "`ulimit -u`"));
  EXPECT_EQ(sentence(Kind::io,
                     std::filesystem::filesystem_error("x", "a/b", std::make_error_code(std::errc::permission_denied))),
            "cannot use 'a/b': Permission denied");
  EXPECT_EQ(sentence(Kind::bug, std::runtime_error("surprise")), "surprise");
  EXPECT_EQ(sentence(Kind::bug, 7), "an exception of unknown type");
}

}  // namespace
}  // namespace hctr::test
