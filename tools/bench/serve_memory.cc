#include "serve_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/base/expect.h"

namespace hctr::bench {

RequestMemory::RequestMemory(const std::string& address, int64_t bytes)
    : control_(address), name_(cat("hctr_bench_", ::getpid())), bytes_(bytes) {
  const std::string key = "/" + name_;
  file_ = ::shm_open(key.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  // posix_fallocate(): without memory for all pages, a later write would fail.
  const int problem = file_ < 0 ? errno : ::posix_fallocate(file_, 0, bytes);
  const auto fail = [&](Kind kind, const std::string& why) {
    if (file_ >= 0) ::close(file_);
    (void)::shm_unlink(key.c_str());
    throw Error(kind, why);
  };
  if (problem != 0) fail(Kind::io, cat(bytes, " bytes of shared memory: ", std::generic_category().message(problem)));
  try {
    const auto answer = control_.ask("POST", cat("/v2/systemsharedmemory/region/", name_, "/register"),
                                     cat("{\"key\":\"", key, "\",\"offset\":0,\"byte_size\":", bytes, "}"));
    if (answer.status != 200)
      throw Error(Kind::data, cat("the service refuses shared memory: ", answer.body.substr(0, 300)));
  } catch (const Error& error) {
    fail(error.kind(), error.what());
  }
}

RequestMemory::~RequestMemory() {
  try {
    (void)control_.ask("POST", cat("/v2/systemsharedmemory/region/", name_, "/unregister"));
  } catch (const Error&) {
    // If the service has ended, the region is no longer registered.
  }
  ::close(file_);
  (void)::shm_unlink(cat("/", name_).c_str());
}

std::string RequestMemory::add(std::string_view data) {
  for (size_t done = 0; done < data.size();) {
    const ssize_t count =
        ::pwrite(file_, data.data() + done, data.size() - done, static_cast<off_t>(used_) + static_cast<off_t>(done));
    if (count <= 0) throw Error(Kind::io, cat("shared memory '/", name_, "' cannot be written"));
    done += static_cast<size_t>(count);
  }
  return reserve(std::ssize(data));
}

std::string RequestMemory::reserve(int64_t bytes) {
  if (bytes > bytes_ - used_) throw Error(Kind::bug, "the shared memory of the requests is too small");
  const int64_t first = used_;
  used_ += bytes;
  return cat("{\"shared_memory_region\":\"", name_, "\",\"shared_memory_offset\":", first,
             ",\"shared_memory_byte_size\":", bytes, "}");
}

}  // namespace hctr::bench
