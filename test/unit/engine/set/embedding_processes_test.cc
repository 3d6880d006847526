// Embedding sets in separate processes, joined over TCP or by MPI, give the results of a single rank.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <fstream>

#include "program/program_surroundings.h"
#include "support/joined.h"
#include "support/temporary_folder.h"
#include "unit/engine/set/rank_runs.h"

namespace hctr::test {
namespace {

constexpr int64_t kProcessSteps = 6;
constexpr uint64_t kProcessSeed = 23;

std::filesystem::path numbers_of(const std::filesystem::path& folder, int rank) {
  return folder / ("numbers_" + std::to_string(rank));
}

/// Writes lists as length and elements, and floats as their bits.
void write_numbers(std::ostream& to, float value) { to << std::bit_cast<uint32_t>(value) << ' '; }
template <class T>
void write_numbers(std::ostream& to, const std::vector<T>& list) {
  to << list.size() << ' ';
  for (const T& element : list) write_numbers(to, element);
}

void read_numbers(std::istream& from, float& value) {
  uint32_t bits = 0;
  from >> bits;
  value = std::bit_cast<float>(bits);
}
template <class T>
void read_numbers(std::istream& from, std::vector<T>& list) {
  size_t count = 0;
  from >> count;
  list.resize(from ? count : 0);
  for (T& element : list) read_numbers(from, element);
}

/// One of kSetRanks processes. Writes its results and the saved set to its working folder.
TEST(AsEmbeddingProcess, RunsItsStepsAndSaves) {
  if (!std::getenv("WORLD_SIZE") && !std::getenv("OMPI_COMM_WORLD_SIZE"))
    GTEST_SKIP() << "runs as one of several processes, which EmbeddingProcesses does";
  EmbeddingOptions options = set_of_ranks();
  const auto steps = uneven_steps(options, kProcessSteps, kProcessSeed);
  auto ranks = EmbeddingRank::of_processes({.secret = "a secret that all processes know",
                                            .waits = {.join_seconds = 120},
                                            .surroundings = program_surroundings()});
  ASSERT_EQ(ranks.size(), 1u);
  ASSERT_EQ(ranks[0].size(), kSetRanks);
  const int rank = ranks[0].rank();
  options.rank = std::move(ranks[0]);
  EmbeddingSet set(options);
  RankNumbers numbers;
  for (size_t i = 0; i < steps.size(); ++i) run_step(set, steps[i][static_cast<size_t>(rank)], step_number(i), numbers);
  set.save("saved");
  std::ofstream file(numbers_of(".", rank));
  write_numbers(file, numbers);
}

/// Expects that the results of the processes equal those of a single rank.
void expect_numbers_of_one_rank(const std::filesystem::path& folder) {
  const EmbeddingOptions options = set_of_ranks();
  const RanksResult one = run_on_one(options, uneven_steps(options, kProcessSteps, kProcessSeed));
  std::vector<RankNumbers> numbers(kSetRanks);
  for (int rank = 0; rank < kSetRanks; ++rank) {
    std::ifstream file(numbers_of(folder, rank));
    read_numbers(file, numbers[static_cast<size_t>(rank)]);
    ASSERT_TRUE(file) << "rank " << rank;
  }
  EXPECT_EQ(joined(numbers), one.numbers);
  EmbeddingSet set(options);
  set.load(folder / "saved");
  EXPECT_EQ(all_rows(set), one.rows);
  EXPECT_EQ(set.updates(), one.updates);
}

void run_all_tests_of_a_process() {
  for (const char* share : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) ::unsetenv(share);
}

TEST(EmbeddingProcesses, JoinedOverTcpGiveTheNumbersOfOneRank) {
  run_all_tests_of_a_process();
  const TemporaryFolder folder;
  for (const Outcome& outcome :
       run_joined(kSetRanks, "unit_tests", {"--gtest_filter=AsEmbeddingProcess.*"}, folder.path()))
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  expect_numbers_of_one_rank(folder.path());
}

TEST(EmbeddingProcesses, JoinedByMpiGiveTheNumbersOfOneRank) {
  HCTR_SKIP_WITHOUT_MPI();
  run_all_tests_of_a_process();
  const TemporaryFolder folder;
  const Outcome outcome =
      run_under_mpi(kSetRanks, "unit_tests", {"--gtest_filter=AsEmbeddingProcess.*"}, folder.path());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  expect_numbers_of_one_rank(folder.path());
}

}  // namespace
}  // namespace hctr::test
