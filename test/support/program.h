// Runs the built programs as a user would, in a folder that goes away with the test.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "config/json.h"
#include "support/temporary_folder.h"

namespace hctr::test {

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

/// Runs build/<preset>/bin/<program> (or a program named by its full path) with `arguments` in `folder` and waits for
/// it. `environment` is added to ours.
Outcome run_program(const std::string& program, const std::vector<std::string>& arguments,
                    const std::filesystem::path& folder, const std::map<std::string, std::string>& environment = {});

/// As run_program, with a terminal as error stream: `err` is what it shows, each drawing of a line behind the other.
Outcome run_on_terminal(const std::string& program, const std::vector<std::string>& arguments,
                        const std::filesystem::path& folder);

struct Measured {
  Outcome outcome;
  int64_t peak_bytes = 0;
};
/// As run_program, and the most memory that the program itself had at once. (What wait4() says of a child begins with
/// the memory of whom it was forked from.)
Measured run_and_measure(const std::string& program, const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder);

/// As run_program, and sends `signal_number` once a line of its error stream contains `after`.
Outcome run_and_signal(const std::string& program, const std::vector<std::string>& arguments,
                       const std::filesystem::path& folder, const std::string& after, int signal_number);

/// What programs that use MPI need: containers forbid what Open MPI would like to do between processes; its libraries
/// keep memory to the end.
extern const std::map<std::string, std::string> kMpiEnvironment;
/// Why programs cannot be started as several processes here; empty when they can.
std::string why_no_mpi();
/// Runs the program as `processes` processes joined by MPI. All write to the same two streams.
Outcome run_under_mpi(int processes, const std::string& program, const std::vector<std::string>& arguments,
                      const std::filesystem::path& folder);
/// The same, and sends `signal_number` to the process of `rank` once a line of the error stream contains `after`.
Outcome run_under_mpi_and_signal(int processes, const std::string& program, const std::vector<std::string>& arguments,
                                 const std::filesystem::path& folder, const std::string& after, int rank,
                                 int signal_number);

std::string read_file(const std::filesystem::path&);
void write_file(const std::filesystem::path&, const std::string&);

/// A small Wide & Deep config whose data lies beside it (train.txt, eval.txt): a wide slot, three deep slots, four
/// dense. A test changes it as text, which keeps in sight what is wrong with it.
std::string small_config();
/// `text` with the one place where `from` stands changed to `to`; fails the test when there is none.
std::string with_change(std::string text, const std::string& from, const std::string& to);

/// Makes data for the config at `config` (relative to `folder`) with data_generator.
void make_data(const std::filesystem::path& folder, const std::string& config, int samples, int eval_samples,
               const std::vector<std::string>& options = {});

}  // namespace hctr::test

/// Ends a test that needs several processes, saying so, where there is no MPI.
#define HCTR_SKIP_WITHOUT_MPI() \
  if (const std::string why_ = ::hctr::test::why_no_mpi(); !why_.empty()) GTEST_SKIP() << why_
