#include "core/comm/job_secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/expect.h"
#include "core/base/sha256.h"

namespace hctr {
namespace {

constexpr const char *kSecretVariable = "HCTR_JOB_SECRET", *kSecretFile = "HCTR_JOB_SECRET_FILE";
constexpr const char* kMakesSecret = "create one with: openssl rand -hex 32";
constexpr size_t kFewestCharacters = 16;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

std::string secret_in(const std::string& path) {
  const auto failed = [&](Kind kind, const std::string& why) {
    return Error(kind, cat(kSecretFile, "=\"", path, "\": ", why));
  };
  // O_NONBLOCK: opening a named pipe does not block, and the S_ISREG check rejects the pipe.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (file.number() < 0 || ::fstat(file.number(), &about) != 0) throw failed(Kind::io, std::strerror(errno));
  if (!S_ISREG(about.st_mode)) throw failed(Kind::usage, "is not a file");
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw failed(Kind::usage, "users other than the owner can read or change the file: use chmod 600");
  std::array<char, 4097> text{};
  const ssize_t size = ::read(file.number(), text.data(), text.size());
  if (size < 0) throw failed(Kind::io, std::strerror(errno));
  if (size == static_cast<ssize_t>(text.size())) throw failed(Kind::usage, "has more than 4096 bytes");
  return {text.data(), static_cast<size_t>(size)};
}

}  // namespace

std::string find_job_secret(const Environment& environment) {
  const auto value = environment(kSecretVariable), file = environment(kSecretFile);
  if (!value && !file) return "";
  if (value && file)
    throw Error(Kind::usage,
                cat("the environment has ", kSecretVariable, " and ", kSecretFile, ": set only one of the two"));
  std::string secret = value ? *value : secret_in(*file);
  secret.erase(secret.find_last_not_of(" \t\r\n") + 1);
  if (secret.size() < kFewestCharacters)
    throw Error(Kind::usage, cat(value ? kSecretVariable : kSecretFile, " has a secret of ", secret.size(),
                                 " characters; at least ", kFewestCharacters, " are needed: ", kMakesSecret));
  return secret;
}

std::string AgreedSecret::text() const { return set_ ? std::string(characters_.data(), characters_.size()) : ""; }

void AgreedSecret::set(std::string_view text) {
  HCTR_EXPECT(text.size() == kCharacters, "a secret of ", text.size(), " characters");
  set_ = false;
  std::copy(text.begin(), text.end(), characters_.begin());
  set_ = true;
}

std::string make_job_secret() { return hex(unpredictable_bytes()); }

}  // namespace hctr
