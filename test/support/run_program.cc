#include "support/run_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/base/platform.h"
#include "support/paths.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

pid_t start(const std::string& program, const std::vector<std::string>& arguments, const fs::path& folder,
            const std::map<std::string, std::string>& environment, const fs::path& out, const fs::path& err) {
  std::vector<std::string> words = {(hctr::test::bin_dir() / program).string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (::chdir(folder.c_str()) != 0) ::_exit(127);
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::dup2(::open("/dev/null", O_RDONLY), 0);
  ::dup2(::open(out.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644), 1);
  ::dup2(::open(err.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644), 2);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

/// Exceeds the run time of any test program on a slow machine. A program that hangs fails only its own test.
constexpr std::chrono::minutes kLongest{10};

/// Waits until the child has ended, without reaping it. Returns false if the child still runs at `end`.
bool ended_by(pid_t child, std::chrono::steady_clock::time_point end) {
  if (const int ending = static_cast<int>(::syscall(SYS_pidfd_open, child, 0)); ending >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd one{.fd = ending, .events = POLLIN, .revents = 0};
    ::poll(&one, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    ::close(ending);
  }  // old systems lack pidfd_open, and a signal may interrupt poll(), so the code below checks again
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// Kills processes whose working directory is `folder`, because a test's program may have started some.
void kill_all_in(const fs::path& folder) {
  std::error_code error;
  const fs::path whole = fs::canonical(folder, error);
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos || std::stoi(name) == ::getpid()) continue;
    if (fs::read_symlink(entry.path() / "cwd", error) == whole && !error) ::kill(std::stoi(name), SIGKILL);
  }
}

Outcome finish(pid_t child, const fs::path& out, const fs::path& err) {
  if (!ended_by(child, std::chrono::steady_clock::now() + kLongest)) {
    ADD_FAILURE() << "a program of this test has not ended in " << kLongest.count() << " min, and is killed";
    kill_all_in(out.parent_path());
    ::kill(child, SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_file(out), read_file(err)};
}

const char* const kMpirun = "/usr/bin/mpirun";

std::vector<std::string> mpi_words(int processes, const std::string& program,
                                   const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"--allow-run-as-root", "--oversubscribe", "-np", std::to_string(processes),
                                    (hctr::test::bin_dir() / program).string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// Finds the process by its environment variable OMPI_COMM_WORLD_RANK; 0 if the process has ended.
pid_t process_of_rank(int rank, const fs::path& folder) {
  const std::string variable = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::error_code error;
    if (fs::read_symlink(entry.path() / "cwd", error) != fs::canonical(folder)) continue;
    if (read_file(entry.path() / "environ").find(variable + '\0') != std::string::npos)
      return std::stoi(entry.path().filename().string());
  }
  return 0;
}

}  // namespace

const std::map<std::string, std::string> kMpiEnvironment = {{"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
                                                            {"ASAN_OPTIONS", "detect_leaks=0"}};

Outcome run_program(const std::string& program, const std::vector<std::string>& arguments, const fs::path& folder,
                    const std::map<std::string, std::string>& environment) {
  const std::string name = fs::path(program).filename().string();
  const fs::path out = folder / (".stdout-" + name), err = folder / (".stderr-" + name);
  return finish(start(program, arguments, folder, environment, out, err), out, err);
}

Started start_program(const std::string& program, const std::vector<std::string>& arguments, const fs::path& folder,
                      const std::map<std::string, std::string>& environment, const std::string& name) {
  Started started{.out = folder / (".stdout-" + name), .err = folder / (".stderr-" + name)};
  fs::remove(started.err);  // may exist from an earlier run
  started.process = start(program, arguments, folder, environment, started.out, started.err);
  return started;
}

Outcome finish_program(const Started& started) { return finish(started.process, started.out, started.err); }

void wait_for_text(const fs::path& file, const std::string& text) {
  for (int tries = 0; tries < 6000; ++tries) {  // after a minute without the text, a later check fails
    if (fs::exists(file) && read_file(file).find(text) != std::string::npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Outcome run_on_terminal(const std::string& program, const std::vector<std::string>& arguments, const fs::path& folder) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  EXPECT_TRUE(terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0) << "no pseudo-terminal";
  const fs::path out = folder / ".stdout-terminal";
  const pid_t child = start(program, arguments, folder, {}, out, ::ptsname(terminal));
  std::string shown;
  char piece[4096];
  for (ssize_t got; (got = ::read(terminal, piece, sizeof piece)) > 0;)
    shown.append(piece, static_cast<size_t>(got));  // read() fails when the child has closed the terminal
  ::close(terminal);
  Outcome outcome = finish(child, out, "/dev/null");
  outcome.err = shown;
  return outcome;
}

Measured run_and_measure(const std::string& program, const std::vector<std::string>& arguments,
                         const fs::path& folder) {
  const fs::path out = folder / ".stdout-measured", err = folder / ".stderr-measured";
  const pid_t child = start(program, arguments, folder, {}, out, err);
  const fs::path executable = fs::canonical(hctr::test::bin_dir() / program),
                 process = fs::path("/proc") / std::to_string(child);
  Measured measured;
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0) {
    std::error_code error;
    const std::string status =
        fs::read_symlink(process / "exe", error) == executable ? read_file(process / "status") : "";
    if (const size_t at = status.find("VmHWM:"); at != std::string::npos)
      measured.peak_bytes = 1024 * std::stoll(status.substr(at + 6));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  measured.outcome = finish(child, out, err);
  return measured;
}

Outcome run_and_signal(const std::string& program, const std::vector<std::string>& arguments, const fs::path& folder,
                       const std::string& after, int signal_number) {
  const fs::path out = folder / ".stdout-signal", err = folder / ".stderr-signal";
  fs::remove(err);  // may exist from an earlier run
  const pid_t child = start(program, arguments, folder, {}, out, err);
  wait_for_text(err, after);
  ::kill(child, signal_number);
  return finish(child, out, err);
}

Outcome run_and_kill(const std::string& program, const std::vector<std::string>& arguments, const fs::path& folder,
                     std::chrono::milliseconds after) {
  const fs::path out = folder / ".stdout-kill", err = folder / ".stderr-kill";
  const pid_t child = start(program, arguments, folder, {}, out, err);
  if (!ended_by(child, std::chrono::steady_clock::now() + after)) ::kill(child, SIGKILL);
  return finish(child, out, err);
}

std::string why_no_mpi() {
  if (!kMpiBuild) return "this build contains no MPI";
  return fs::exists(kMpirun) ? "" : std::string("there is no ") + kMpirun;
}

Outcome run_under_mpi(int processes, const std::string& program, const std::vector<std::string>& arguments,
                      const fs::path& folder) {
  return run_program(kMpirun, mpi_words(processes, program, arguments), folder, kMpiEnvironment);
}

Started start_under_mpi(int processes, const std::string& program, const std::vector<std::string>& arguments,
                        const fs::path& folder) {
  return start_program(kMpirun, mpi_words(processes, program, arguments), folder, kMpiEnvironment, "mpi");
}

Outcome run_under_mpi_and_signal(int processes, const std::string& program, const std::vector<std::string>& arguments,
                                 const fs::path& folder, const std::string& after, int rank, int signal_number) {
  const Started mpi = start_under_mpi(processes, program, arguments, folder);
  wait_for_text(mpi.err, after);
  const pid_t of_rank = process_of_rank(rank, folder);
  EXPECT_GT(of_rank, 0) << "no process of rank " << rank << " runs in " << folder;
  ::kill(of_rank > 0 ? of_rank : mpi.process, of_rank > 0 ? signal_number : SIGTERM);
  const Outcome outcome = finish_program(mpi);
  if (signal_number == SIGSTOP) ::kill(of_rank, SIGKILL);  // mpirun may not have ended the stopped process
  return outcome;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string small_config() {
  return R"({
  "solver": {"lr_policy": "fixed", "display": 20, "max_iter": 60, "gpu": [0], "batchsize": 128, "snapshot": 1000000,
             "snapshot_prefix": "out/", "replace_models": true,
             "eval_interval": 30, "eval_metrics": ["AUC", "AverageLoss"], "seed": 7},
  "optimizer": {"type": "Adam", "update_type": "Global",
                "adam_hparam": {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}},
  "layers": [
    {"name": "data", "type": "Data", "source": "train.txt", "eval_source": "eval.txt", "check": "Sum",
     "label": {"top": "label", "label_dim": 1}, "dense": {"top": "dense", "dense_dim": 4},
     "sparse": [
       {"top": "wide_data", "type": "DistributedSlot", "max_feature_num_per_sample": 2, "slot_num": 1},
       {"top": "deep_data", "type": "LocalizedSlot", "max_feature_num_per_sample": 6, "max_nnz": 2, "slot_num": 3}]},
    {"name": "wide_emb", "type": "DistributedSlotSparseEmbeddingHash", "bottom": "wide_data", "top": "wide_emb",
     "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 1, "combiner": 0}},
    {"name": "deep_emb", "type": "LocalizedSlotSparseEmbeddingHash", "bottom": "deep_data", "top": "deep_emb",
     "sparse_embedding_hparam": {"max_vocabulary_size_per_gpu": 1000, "embedding_vec_size": 5, "combiner": 1}},
    {"name": "wide", "type": "Reshape", "bottom": "wide_emb", "top": "wide", "leading_dim": 1},
    {"name": "deep", "type": "Reshape", "bottom": "deep_emb", "top": "deep", "leading_dim": 15},
    {"name": "concat1", "type": "Concat", "bottom": ["deep", "dense"], "top": "concat1"},
    {"name": "fc1", "type": "InnerProduct", "bottom": "concat1", "top": "fc1", "fc_param": {"num_output": 16}},
    {"name": "relu1", "type": "ReLU", "bottom": "fc1", "top": "relu1"},
    {"name": "dropout1", "type": "Dropout", "rate": 0.1, "bottom": "relu1", "top": "dropout1"},
    {"name": "fc2", "type": "InnerProduct", "bottom": "dropout1", "top": "fc2", "fc_param": {"num_output": 1}},
    {"name": "add1", "type": "Add", "bottom": ["fc2", "wide"], "top": "add1"},
    {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["add1", "label"], "regularizer": "L2", "lambda": 0.001, "top": "loss"}
  ]
}
)";
}

std::string with_change(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "the config has no: " << from;
  if (at == std::string::npos) return text;
  return text.replace(at, from.size(), to);
}

void make_data(const fs::path& folder, const std::string& config, int samples, int eval_samples,
               const std::vector<std::string>& options) {
  std::vector<std::string> arguments = {
      "--config", config, "--samples", std::to_string(samples), "--eval-samples", std::to_string(eval_samples)};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Outcome made = run_program("data_generator", arguments, folder);
  ASSERT_EQ(made.exit_code, 0) << made.out << made.err;
}

}  // namespace hctr::test
