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

TEST(Bench, MeasuresTheStepOfAModel) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", small_config());
  make_data(folder.path(), "config.json", 3000, 100, {"--vocabulary", "30"});
  for (const Device device : devices()) {
    const Outcome outcome = run_program("bench", {"step", "config.json", "--batch", "500", "--quick", "--device", device.is_cuda() ? "cuda" : "cpu", "--json", "out.json"},
                                        folder.path());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json figures = Json::read_file(folder / "out.json");
    const Json* whole = figures.find("figures")->array()->data();
    EXPECT_GT(whole->find("value")->number(), 0) << whole->text();
    ASSERT_TRUE(whole->find("case"));
  EXPECT_EQ(*whole->find("case")->string(), "batch 500, f32");
  }
}

TEST(Bench, SaysWhatItIsFor) {
  const Outcome none = run_program("bench", {}, std::filesystem::temp_directory_path());
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(run_program("bench", {"--help"}, std::filesystem::temp_directory_path()).exit_code, 0);
}

}  // namespace
}  // namespace hctr::test
