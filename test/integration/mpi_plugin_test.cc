// A build with MPI on a machine without the MPI library trains as a single process and over TCP, and reports what
// mpirun would need.
#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "core/comm/mpi_plugin.h"
#include "ranks_fixture.h"
#include "support/joined.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

/// Runs the program in a separate folder, with a plug-in that requires a nonexistent library.
class WithoutLibmpi : public RanksTest {
 protected:
  void SetUp() override {
    RanksTest::SetUp();
    program_ = (folder_ / "huge_ctr").string();
    fs::copy(bin_dir() / "huge_ctr", program_);
    write_file(folder_ / "alone.json", config_);
    write_file(folder_ / "joined.json", with_change(config_, "\"gpu\": [0]", "\"gpu\": \"all\""));
  }
  void spoil_plugin() {
    std::string plugin = read_file(bin_dir() / kMpiPluginFile);
    const size_t at = plugin.find("libmpi");
    ASSERT_NE(at, plugin.npos);
    write_file(folder_ / kMpiPluginFile, plugin.replace(at, 6, "libnpi"));
  }
  static std::vector<std::string> arguments(const std::string& config) {
    return {"--train", config, "--run-dir", "run", "--device", "cpu"};
  }

  std::string program_;
};

TEST_F(WithoutLibmpi, TrainsAloneAndOverTcp) {
  HCTR_SKIP_WITHOUT_MPI();
  spoil_plugin();
  const Outcome alone = run_program(program_, arguments("alone.json"), folder_.path());
  EXPECT_EQ(alone.exit_code, 0) << alone.err;
  for (const Outcome& outcome : run_joined(2, program_, arguments("joined.json"), folder_.path()))
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  // Sets the variables of mpirun, so that the processes join over TCP without initializing MPI.
  std::vector<JoinedProcess> processes;
  for (const char* rank : {"0", "1"})
    processes.push_back(
        {program_, arguments("joined.json"), {{"OMPI_COMM_WORLD_RANK", rank}, {"OMPI_COMM_WORLD_SIZE", "2"}}});
  for (const Outcome& outcome : run_joined(processes, folder_.path())) EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST_F(WithoutLibmpi, SaysWhatMpirunNeeds) {
  HCTR_SKIP_WITHOUT_MPI();
  const auto expect_says = [&](const std::string& why) {
    const Outcome outcome = run_under_mpi(2, program_, arguments("joined.json"), folder_.path());
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find("started by mpirun as 2 processes, but " + why), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("set MASTER_ADDR and MASTER_PORT to join by TCP"), std::string::npos) << outcome.err;
  };
  expect_says(cat(kMpiPluginFile, ", expected next to the program, is missing"));
  spoil_plugin();
  expect_says("libmpi cannot be loaded: libnpi.so");
}

}  // namespace
}  // namespace hctr::test
