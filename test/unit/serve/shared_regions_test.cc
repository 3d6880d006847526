#include "serve/shared_regions.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "core/base/expect.h"

namespace hctr::serve {
namespace {

/// Shared memory of a client.
class ClientMemory {
 public:
  explicit ClientMemory(const std::string& content)
      : name_(cat("/hctr_regions_test_", ::getpid())),
        file_(::shm_open(name_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) {
    EXPECT_EQ(::pwrite(file_, content.data(), content.size(), 0), std::ssize(content));
  }
  ~ClientMemory() {
    ::close(file_);
    ::shm_unlink(name_.c_str());
  }
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  const std::string& name() const { return name_; }
  void shrink(size_t bytes) { EXPECT_EQ(::ftruncate(file_, static_cast<off_t>(bytes)), 0); }

 private:
  std::string name_;
  int file_;
};

/// The input is so large that several threads copy it.
TEST(SharedRegions, LargeInputsAreCopiedWholeOrRefused) {
  std::string content((size_t{3} << 20) + 5, ' ');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * i >> 7);
  ClientMemory memory(content);
  SharedRegions regions({.system = true});
  regions.add_system("r", memory.name(), 0, std::ssize(content));
  const int64_t first = 7, bytes = std::ssize(content) - first;
  const auto request = [&] {
    InferRequest one;
    one.inputs.push_back({.name = "x",
                          .type = Datatype::u8,
                          .shape = {bytes},
                          .parameters = {{"shared_memory_region", std::string("r")},
                                         {"shared_memory_offset", first},
                                         {"shared_memory_byte_size", bytes}}});
    return one;
  };
  InferRequest whole = request();
  regions.attach(whole);
  EXPECT_TRUE(whole.inputs[0].data == std::string_view(content).substr(first));
  memory.shrink(content.size() - 1);
  InferRequest cut = request();
  try {
    regions.attach(cut);
    ADD_FAILURE() << "the last byte is missing";
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.status().message, "input 'x': the shared memory has become smaller");
  }
}

}  // namespace
}  // namespace hctr::serve
