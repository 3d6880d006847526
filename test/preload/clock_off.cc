// LD_PRELOAD library that sets the clock of the process HCTR_TEST_CLOCK_OFF seconds ahead.
#include <dlfcn.h>
#include <time.h>

#include <cstdlib>

extern "C" int clock_gettime(clockid_t clock, timespec* now) {
  static auto* const real = reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int status = real(clock, now);
  const char* const seconds = std::getenv("HCTR_TEST_CLOCK_OFF");
  if (status == 0 && clock == CLOCK_REALTIME && seconds) now->tv_sec += std::atol(seconds);
  return status;
}
