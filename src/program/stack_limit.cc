#include "program/stack_limit.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr rlim_t kEnough = rlim_t{1} << 20, kUsual = rlim_t{8} << 20;  // bytes

}  // namespace

void raise_stack_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min(kUsual, limit.rlim_max);
  if (limit.rlim_cur < kEnough || ::setrlimit(RLIMIT_STACK, &limit) != 0)
    throw Error(Kind::device, cat("the stack is limited to ", before >> 10, " KiB, but the program needs ",
                                  kEnough >> 10, "; `ulimit -s ", kUsual >> 10, "` sets the usual limit"));
  pthread_attr_t threads;  // also for new threads: glibc has read the old limit when the process started
  if (::pthread_attr_init(&threads) != 0) return;
  if (::pthread_attr_setstacksize(&threads, limit.rlim_cur) == 0) ::pthread_setattr_default_np(&threads);
  ::pthread_attr_destroy(&threads);
}

}  // namespace hctr
