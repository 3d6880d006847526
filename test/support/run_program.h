// Runs the built programs as a user would, in a folder that the test removes.
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

/// Runs build/<preset>/bin/<program>, or a program with a full path, in `folder` and waits. `environment` is added to
/// the environment of the test.
Outcome run_program(const std::string& program, const std::vector<std::string>& arguments,
                    const std::filesystem::path& folder, const std::map<std::string, std::string>& environment = {});

/// A program in the background, with files for its output.
struct Started {
  int process = 0;
  std::filesystem::path out, err;
};
/// Starts a program in the background. `name`: suffix of its output files.
Started start_program(const std::string& program, const std::vector<std::string>& arguments,
                      const std::filesystem::path& folder, const std::map<std::string, std::string>& environment,
                      const std::string& name);
Outcome finish_program(const Started&);
/// Waits until the file contains this text, for at most a minute.
void wait_for_text(const std::filesystem::path& file, const std::string& text);

/// Like run_program, with a terminal as stderr. `err` contains everything that the program wrote to the terminal.
Outcome run_on_terminal(const std::string& program, const std::vector<std::string>& arguments,
                        const std::filesystem::path& folder);

struct Measured {
  Outcome outcome;
  int64_t peak_bytes = 0;
};
/// Like run_program, and measures the peak memory of the program. wait4() would include the memory of the forking
/// process.
Measured run_and_measure(const std::string& program, const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder);

/// Like run_program, and sends `signal_number` when a line of stderr contains `after`.
Outcome run_and_signal(const std::string& program, const std::vector<std::string>& arguments,
                       const std::filesystem::path& folder, const std::string& after, int signal_number);

/// Like run_program, and kills the program with SIGKILL after the time `after` if it still runs.
Outcome run_and_kill(const std::string& program, const std::vector<std::string>& arguments,
                     const std::filesystem::path& folder, std::chrono::milliseconds after);

/// Environment for programs with MPI. It disables Open MPI's single-copy mechanism, which containers forbid, and
/// suppresses leak reports about MPI libraries.
extern const std::map<std::string, std::string> kMpiEnvironment;
/// The reason why MPI processes cannot be started; empty if they can.
std::string why_no_mpi();
/// Runs `processes` processes of the program, joined by MPI. All write to the same stdout and stderr.
Outcome run_under_mpi(int processes, const std::string& program, const std::vector<std::string>& arguments,
                      const std::filesystem::path& folder);
/// Like run_under_mpi without waiting. finish_program() waits.
Started start_under_mpi(int processes, const std::string& program, const std::vector<std::string>& arguments,
                        const std::filesystem::path& folder);
/// Like run_under_mpi, and sends `signal_number` to the process of `rank` when a line of stderr contains `after`.
Outcome run_under_mpi_and_signal(int processes, const std::string& program, const std::vector<std::string>& arguments,
                                 const std::filesystem::path& folder, const std::string& after, int rank,
                                 int signal_number);

std::string read_file(const std::filesystem::path&);
void write_file(const std::filesystem::path&, const std::string&);

/// A small Wide & Deep config with its data lists in the same folder (train.txt, eval.txt): one wide slot, three deep
/// slots, four dense features. Tests change its text by with_change(), so that each test shows what it changes.
std::string small_config();
/// Returns `text` with the first `from` replaced by `to`. Fails the test if `text` does not contain `from`.
std::string with_change(std::string text, const std::string& from, const std::string& to);

/// Generates data with data_generator for a config. `config`: path relative to `folder`.
void make_data(const std::filesystem::path& folder, const std::string& config, int samples, int eval_samples,
               const std::vector<std::string>& options = {});

}  // namespace hctr::test

/// Skips the test with a message if there is no MPI.
#define HCTR_SKIP_WITHOUT_MPI() \
  if (const std::string why_ = ::hctr::test::why_no_mpi(); !why_.empty()) GTEST_SKIP() << why_
