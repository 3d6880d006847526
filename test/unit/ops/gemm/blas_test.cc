#include "ops/gemm/blas.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>

#include "core/base/processor.h"
#include "core/base/thread_pool.h"

namespace hctr::test {
namespace {

std::string better(std::string_view chosen, const std::set<std::string, std::less<>>& instructions) {
  return std::string(
      ops::better_blas_kernels(chosen, [&](std::string_view name) { return instructions.contains(name); }));
}

/// OpenBLAS 0.3.21 takes kernels of 128-bit vectors on processors of 2023 and later, and says nothing.
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

/// Of this process.
int threads_now() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

TEST(BlasLibrary, IsLoadedWithoutThreadsOfItsOwnOrAChangeOfWhatTheCallerHas) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process that has only loaded it
  EXPECT_EXIT(std::_Exit((ops::load_blas(), threads_now())), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(std::_Exit((ops::load_blas(), usable_cores())), testing::ExitedWithCode(usable_cores()), "");
}

TEST(BlasKernels, OfThisProcessorAreNotNarrow) {
  if (std::getenv("OPENBLAS_CORETYPE")) GTEST_SKIP() << "OPENBLAS_CORETYPE is set";
  EXPECT_EQ(ops::better_blas_kernels(ops::blas_kernels(), processor_has), "") << ops::blas_kernels();
}

}  // namespace
}  // namespace hctr::test
