#include "ops/gemm/blas.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/base/processor.h"
#include "core/base/thread_pool.h"

namespace hctr::test {
namespace {

std::string better(std::string_view chosen, const std::set<std::string, std::less<>>& instructions) {
  return std::string(
      ops::better_blas_kernels(chosen, [&](std::string_view name) { return instructions.contains(name); }));
}

/// On processors from 2023 on, OpenBLAS 0.3.21 silently selects kernels with 128-bit vectors.
TEST(BlasKernels, AreTheWidestOfAProcessorThatTheLibraryDoesNotKnow) {
  const std::set<std::string, std::less<>> of128 = {"sse4_2", "avx"}, of256 = {"avx", "avx2", "fma"},
                                           of512 = {"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"};
  EXPECT_EQ(better("Prescott", of512), "SkylakeX");
  EXPECT_EQ(better("Prescott", of256), "Haswell");
  EXPECT_EQ(better("Sandybridge", of256), "Haswell");
  EXPECT_EQ(better("Prescott", of128), "");
  EXPECT_EQ(better("Prescott", {"avx2", "avx512f"}), "");
  for (const char* known : {"Haswell", "Zen", "SkylakeX", "Cooperlake", "SapphireRapids"})
    EXPECT_EQ(better(known, of512), "");
  EXPECT_EQ(better("", of512), "") << "not OpenBLAS";
}

/// The number of threads of this process.
int threads_now() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

TEST(BlasLibrary, IsLoadedWithoutThreadsOfItsOwnOrAChangeOfWhatTheCallerHas) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the test runs in a new process, which has only loaded the library
  EXPECT_EXIT(std::_Exit((ops::load_blas(), threads_now())), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(std::_Exit((ops::load_blas(), usable_cores())), testing::ExitedWithCode(usable_cores()), "");
}

TEST(BlasKernels, OfThisProcessorAreNotNarrow) {
  if (std::getenv("OPENBLAS_CORETYPE")) GTEST_SKIP() << "OPENBLAS_CORETYPE is set";
  EXPECT_EQ(ops::better_blas_kernels(ops::blas_kernels(), processor_has), "") << ops::blas_kernels();
}

/// Exits with code 0 if all GEMMs are correct.
[[noreturn]] void multiply_in_threads_without_more_memory() {
  constexpr int64_t kSize = 256;
  constexpr size_t kThreads = 4;
  using Values = std::vector<float>;
  const Values a(kSize * kSize, 2), b(kSize * kSize, 3);
  std::vector<Values> c(kThreads, Values(kSize * kSize));
  std::atomic<int> failed = 0;
  const auto multiply = [&](Values& to) {
    ops::gemm(kSize, kSize, kSize, {a.data(), kSize}, {b.data(), kSize}, 0, {to.data(), kSize});
    failed += to != Values(kSize * kSize, 6 * kSize);
  };
  std::latch all_are_there(kThreads), limited(1);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const std::unique_ptr<void, decltype(&std::free)> own_heap(std::malloc(1 << 20), &std::free);
      all_are_there.count_down();
      limited.wait();
      for (int times = 0; times < 50; ++times) multiply(c[t]);
    });
  multiply(c[0]);
  all_are_there.wait();
  std::ifstream pages("/proc/self/statm");
  rlim_t used = 0;
  pages >> used;
  used = used * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (32 << 20);
  const rlimit limit{used, RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &limit);
  limited.count_down();
  for (std::thread& thread : threads) thread.join();
  std::_Exit(failed > 0);
}

/// OpenBLAS allocates 129 MiB for each concurrent GEMM.
TEST(BlasLibrary, ComputesOneProductAfterAnotherWhereMemoryForMoreIsRefused) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need addresses";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(multiply_in_threads_without_more_memory(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace hctr::test
