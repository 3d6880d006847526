// Rank and job of this process, from the environment variables of launchers.
#include "core/comm/launcher.h"

#include <gtest/gtest.h>

#include <map>

#include "core/base/files.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Launch> launch_of(const Variables& variables, bool over_tcp = false) {
  return find_launch(
      [&](const char* name) -> std::optional<std::string> {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional(found->second);
      },
      over_tcp);
}

std::string why_not(const Variables& variables) {
  return message_of(Kind::usage, [&] { launch_of(variables); });
}

TEST(Launcher, AloneIsAlone) {
  EXPECT_FALSE(launch_of({}));
  EXPECT_FALSE(launch_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(launch_of({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  // These variables are also set in an sbatch script and in the shell of salloc, which srun has not launched.
  EXPECT_FALSE(launch_of({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}));
}

TEST(Launcher, RankAndWorldSize) {
  const Variables torchrun = {{"RANK", "3"},
                              {"WORLD_SIZE", "8"},
                              {"LOCAL_RANK", "1"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"MASTER_ADDR", "node0"},
                              {"MASTER_PORT", "29500"},
                              {"TORCHELASTIC_RUN_ID", "x7"}};
  const auto launch = launch_of(torchrun);
  ASSERT_TRUE(launch);
  EXPECT_FALSE(launch->by_mpi);
  EXPECT_EQ(launch->process, 3);
  EXPECT_EQ(launch->processes, 8);
  EXPECT_EQ(launch->local_process, 1);
  EXPECT_EQ(launch->local_processes, 2);
  EXPECT_EQ(launch->address, "node0");
  EXPECT_EQ(launch->port, 29500);
  EXPECT_EQ(launch->job, "x7");
  const auto without = [&](const char* name) {
    Variables rest = torchrun;
    rest.erase(name);
    return why_not(rest);
  };
  EXPECT_NE(without("RANK").find("has WORLD_SIZE but not RANK"), std::string::npos);
  EXPECT_NE(without("MASTER_ADDR").find("not MASTER_ADDR"), std::string::npos);
  EXPECT_NE(without("MASTER_PORT").find("MASTER_PORT is not set"), std::string::npos);
  const auto with = [&](const char* name, const char* value) {
    Variables other = torchrun;
    other[name] = value;
    return why_not(other);
  };
  EXPECT_NE(with("RANK", "eight").find("RANK=\"eight\"; expected a number"), std::string::npos);
  EXPECT_NE(with("RANK", "8").find("RANK=8 and WORLD_SIZE=8; processes are numbered from 0"), std::string::npos);
  EXPECT_NE(with("MASTER_PORT", "70000").find("MASTER_PORT is 70000"), std::string::npos);
}

TEST(Launcher, Srun) {
  const Variables srun = {
      {"SLURM_JOB_ID", "4711"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"},        {"SLURM_PROCID", "2"},
      {"SLURM_LOCALID", "0"},   {"SLURM_NTASKS", "4"},  {"SLURM_STEP_NODELIST", "gpu[07-08]"}};
  const auto launch = launch_of(srun);
  ASSERT_TRUE(launch);
  EXPECT_FALSE(launch->by_mpi);
  EXPECT_EQ(launch->process, 2);
  EXPECT_EQ(launch->processes, 4);
  EXPECT_EQ(launch->address, "gpu07");
  EXPECT_EQ(launch->job, "4711.0");
  // All processes of a job derive the same port. Another job derives another port.
  Variables other = srun;
  other["SLURM_PROCID"] = "3";
  EXPECT_EQ(launch_of(other)->port, launch->port);
  other["SLURM_JOB_ID"] = "4712";
  EXPECT_NE(launch_of(other)->port, launch->port);
  // Every Slurm job id gives a valid port. Ids of job arrays and federations are large.
  for (const char* job : {"306783379", "2147483648", "4294967294", "9223372036854775807"}) {
    other["SLURM_JOB_ID"] = job;
    const auto large = launch_of(other);
    ASSERT_TRUE(large);
    EXPECT_GE(large->port, 20000) << job;
    EXPECT_LT(large->port, 30000) << job;
  }
  other["MASTER_ADDR"] = "10.0.0.7";
  other["MASTER_PORT"] = "1234";
  EXPECT_EQ(launch_of(other)->address, "10.0.0.7");
  EXPECT_EQ(launch_of(other)->port, 1234);
}

TEST(Launcher, MpirunOnlyStartsProcessesThatJoinOverTcp) {
  Variables mpirun = {
      {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "5"}};
  const auto launch = launch_of(mpirun, true);
  ASSERT_TRUE(launch);
  EXPECT_FALSE(launch->by_mpi);
  EXPECT_EQ(launch->process, 1);
  EXPECT_EQ(launch->port, 5);
  mpirun.erase("MASTER_ADDR");
  EXPECT_NE(message_of(Kind::usage, [&] { launch_of(mpirun, true); }).find("has mpirun but not MASTER_ADDR"),
            std::string::npos);
}

TEST(Launcher, MpirunCountsFirst) {
  Variables both = {{"OMPI_COMM_WORLD_SIZE", "4"},
                    {"OMPI_COMM_WORLD_RANK", "1"},
                    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                    {"RANK", "0"},
                    {"WORLD_SIZE", "9"},
                    {"MASTER_ADDR", "a"},
                    {"MASTER_PORT", "5"}};
  const auto launch = launch_of(both);
  EXPECT_TRUE(launch->by_mpi);
  EXPECT_EQ(launch->processes, 4);
  EXPECT_EQ(launch->local_process, 1);
  EXPECT_EQ(launch->local_processes, 2);
  // If MPI cannot be loaded, mpirun still starts the processes and assigns their numbers.
  EXPECT_FALSE(launch_of(both, true)->by_mpi);
  EXPECT_EQ(launch_of(both, true)->process, 1);
  EXPECT_EQ(launch_of(both, true)->port, 5);
}

TEST(Launcher, VariablesThatDoNotFitAreNamed) {
  const std::pair<Variables, const char*> cases[] = {
      {{{"RANK", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "5"}}, "has RANK and MASTER_ADDR but not WORLD_SIZE"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "5"}, {"LOCAL_WORLD_SIZE", "2"}},
       "LOCAL_RANK=5 and LOCAL_WORLD_SIZE=2; processes of a host are numbered from 0"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "0"}}, "MASTER_PORT is 0"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "http"}}, "MASTER_PORT=\"http\""},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "4"}},
       "OMPI_COMM_WORLD_RANK=4 and OMPI_COMM_WORLD_SIZE=2"},
      {{{"PMI_SIZE", "2"}}, "has PMI_SIZE but not OMPI_COMM_WORLD_RANK, PMI_RANK or PMIX_RANK"},
      {{{"PMIX_RANK", "1"}}, "has PMIX_RANK, but neither SLURM_STEP_NUM_TASKS nor OMPI_COMM_WORLD_SIZE"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}},
       "has SLURM_STEP_ID but not SLURM_STEP_NUM_TASKS"},
      {{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}}, "has SLURM_STEP_NUM_TASKS but not SLURM_PROCID"},
  };
  for (const auto& [variables, says] : cases)
    EXPECT_NE(why_not(variables).find(says), std::string::npos) << why_not(variables) << " lacks: " << says;
  EXPECT_FALSE(launch_of({{"RANK", "7"}}));  // RANK alone may come from another program
}

TEST(Launcher, MoreProcessesThanAJobCanHaveAreNamedByTheirVariable) {
  const auto of = [](const char* size) {
    return why_not({{"RANK", "0"}, {"WORLD_SIZE", size}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "5"}});
  };
  EXPECT_EQ(of("2000000000"), "the environment has WORLD_SIZE=2000000000; at most 65536 processes can join");
  EXPECT_EQ(of("10000000"), "the environment has WORLD_SIZE=10000000; at most 65536 processes can join");
  EXPECT_NE(of("20000000000").find("has WORLD_SIZE=\"20000000000\"; expected a number"), std::string::npos);
}

TEST(Launcher, FindsTheSecretOfProcessesThatJoinOverTcp) {
  Variables variables = {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "5"}};
  EXPECT_EQ(launch_of(variables)->secret, "");
  variables["HCTR_JOB_SECRET"] = "0123456789abcdef\n";
  EXPECT_EQ(launch_of(variables)->secret, "0123456789abcdef");
  variables["HCTR_JOB_SECRET"] = "";
  EXPECT_NE(why_not(variables).find("HCTR_JOB_SECRET has a secret of 0 characters; at least 16"), std::string::npos);
  variables["HCTR_JOB_SECRET_FILE"] = "file";
  EXPECT_NE(why_not(variables).find("HCTR_JOB_SECRET and HCTR_JOB_SECRET_FILE: set only one of the two"),
            std::string::npos);
}

TEST(Launcher, ASecretInAFileIsRefusedWhereOthersMayReadIt) {
  const TemporaryFolder folder;
  const std::string file = (folder / "secret").string();
  Variables variables = {
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "5"}, {"HCTR_JOB_SECRET_FILE", file}};
  EXPECT_NE(message_of(Kind::io, [&] { launch_of(variables); }).find(file + "\": No such file"), std::string::npos);
  write_text(file, "a secret of some length \n");
  using fs::perms;
  for (const perms open : {perms::group_read, perms::others_read, perms::others_write}) {
    fs::permissions(file, perms::owner_read | open);
    EXPECT_NE(why_not(variables).find("users other than the owner can read or change the file: use chmod 600"),
              std::string::npos);
  }
  fs::permissions(file, perms::owner_read | perms::owner_write);
  EXPECT_EQ(launch_of(variables)->secret, "a secret of some length");
  write_text(file, "short\n");
  fs::permissions(file, perms::owner_read);
  EXPECT_NE(why_not(variables).find("HCTR_JOB_SECRET_FILE has a secret of 5 characters"), std::string::npos);
  variables["HCTR_JOB_SECRET_FILE"] = folder.path().string();
  EXPECT_NE(why_not(variables).find("is not a file"), std::string::npos);
}

TEST(Launcher, NodeLists) {
  EXPECT_EQ(first_host("gpu7"), "gpu7");
  EXPECT_EQ(first_host("gpu7,gpu9"), "gpu7");
  EXPECT_EQ(first_host("gpu[07-09,12],login"), "gpu07");
  EXPECT_EQ(first_host("gpu[3,5]"), "gpu3");
  EXPECT_EQ(first_host("rack1-[08-09]-ib,x"), "rack1-08-ib");
  EXPECT_EQ(first_host("login,gpu[1-2]"), "login");
}

}  // namespace
}  // namespace hctr::test
