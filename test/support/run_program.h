// Runs the built programs as a user would, in a folder that is removed with the test.
#pragma once

#include <chrono>
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

/// Runs build/<preset>/bin/<program>, or a program given by its full path, in `folder` and waits for it. `environment`
/// is added to the environment of the test.
Outcome run_program(const std::string& program, const std::vector<std::string>& arguments,
                    const std::filesystem::path& folder, const std::map<std::string, std::string>& environment = {});

/// A program that runs in the background, with files for its output.
struct Started {
  int process = 0;
  std::filesystem::path out, err;
};
/// `name`: the name of those files.
Started start_program(const std::string& program, const std::vector<std::string>& arguments,
                      const std::filesystem::path& folder, const std::map<std::string, std::string>& environment,
                      const std::string& name);
Outcome finish_program(const Started&);
/// Waits until the file holds this text, for at most a minute.
void wait_for_text(const std::filesystem::path& file, const std::string& text);

/// Like run_program, with a terminal as error stream. `err` is everything written to it.
Outcome run_on_terminal(const std::string& program, const std::vector<std::string>& arguments,
                        const std::filesystem::path& folder);

struct Measured {
  Outcome outcome;
  int64_t peak_bytes = 0;
};
/// Like run_program, and measures the peak memory of the program itself. (That of wait4() includes the memory of the
/// process it was forked from.)
Measured run_and_measure(const std::string& program, const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder);

/// Like run_program, and sends `signal_number` once a line of its error stream contains `after`.
Outcome run_and_signal(const std::string& program, const std::vector<std::string>& arguments,
                       const std::filesystem::path& folder, const std::string& after, int signal_number);

/// Like run_program, and kills the program (SIGKILL) after this time, unless it has ended.
Outcome run_and_kill(const std::string& program, const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder, std::chrono::milliseconds after);

/// Settings for programs that use MPI: containers forbid Open MPI's single-copy mechanism, and its libraries leak
/// memory.
extern const std::map<std::string, std::string> kMpiEnvironment;
/// The reason why programs cannot be started as several processes; empty if they can.
std::string why_no_mpi();
/// Runs the program as `processes` processes joined by MPI. All write to the same two streams.
Outcome run_under_mpi(int processes, const std::string& program, const std::vector<std::string>& arguments,
                      const std::filesystem::path& folder);
/// The same, without waiting: finish_program() waits.
Started start_under_mpi(int processes, const std::string& program, const std::vector<std::string>& arguments,
                        const std::filesystem::path& folder);
/// Runs them and sends `signal_number` to the process of `rank` once a line of the error stream contains `after`.
Outcome run_under_mpi_and_signal(int processes, const std::string& program, const std::vector<std::string>& arguments,
                                 const std::filesystem::path& folder, const std::string& after, int rank,
                                 int signal_number);

std::string read_file(const std::filesystem::path&);
void write_file(const std::filesystem::path&, const std::string&);

/// A small Wide & Deep config with its data in the same folder (train.txt, eval.txt): a wide slot, three deep slots,
/// four dense features. Tests change it as text, so that each test shows its fault.
std::string small_config();
/// `text` with the first `from` replaced by `to`. Fails the test if there is none.
std::string with_change(std::string text, const std::string& from, const std::string& to);

/// Generates data for the config at `config` (relative to `folder`) with data_generator.
void make_data(const std::filesystem::path& folder, const std::string& config, int samples, int eval_samples,
               const std::vector<std::string>& options = {});

}  // namespace hctr::test

/// Skips a test that needs several processes if there is no MPI, with the reason.
#define HCTR_SKIP_WITHOUT_MPI() \
  if (const std::string why_ = ::hctr::test::why_no_mpi(); !why_.empty()) GTEST_SKIP() << why_
