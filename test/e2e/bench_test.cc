#include <gtest/gtest.h>

#include "support/devices.h"
#include "support/program.h"

namespace hctr::test {
namespace {

TEST(Bench, EveryPartMeasuresAndWritesItsFigures) {
  const TemporaryFolder folder;
  for (const char* part : {"index", "rows", "reader"})
    for (const Device device : devices()) {
      const Outcome outcome = run_program("bench", {part, "--quick", "--device", device.is_cuda() ? "cuda" : "cpu", "--json", "out.json"}, folder.path());
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      const Json figures = Json::read_file(folder / "out.json");
      ASSERT_GT(figures.find("figures")->array()->size(), 10u);
      for (const Json& figure : *figures.find("figures")->array()) EXPECT_GT(figure.find("value")->number(), 0) << figure.text();
    }
}

TEST(Bench, SaysWhatItIsFor) {
  const Outcome none = run_program("bench", {}, std::filesystem::temp_directory_path());
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(run_program("bench", {"--help"}, std::filesystem::temp_directory_path()).exit_code, 0);
}

}  // namespace
}  // namespace hctr::test
