// Runs the tests of one program. The last line counts the tests, and gives reasons for skipped tests.
#include <gtest/gtest.h>

#include <cstdio>

#include "ops/gemm/blas.h"
#include "program/process_end.h"
#include "program/program_surroundings.h"
#include "support/devices.h"
#include "support/op_test.h"

namespace {

class Summary : public ::testing::EmptyTestEventListener {
 public:
  void OnTestProgramEnd(const ::testing::UnitTest& all) override {
    std::printf("%d passed, %d failed, %d skipped", all.successful_test_count(), all.failed_test_count(),
                all.skipped_test_count());
    if (const std::string why = hctr::test::why_no_gpu(); !why.empty())
      std::printf(": no CUDA device (%s)", why.c_str());
    std::printf("\n");
  }
};

}  // namespace

int main(int count, char** arguments) {
  ::testing::InitGoogleTest(&count, arguments);
  hctr::test::register_op_tests();
  hctr::ops::load_blas(hctr::program_surroundings());                   // loads the BLAS library, as the programs do
  ::testing::UnitTest::GetInstance()->listeners().Append(new Summary);  // gtest takes ownership
  hctr::end_process(RUN_ALL_TESTS());
}
