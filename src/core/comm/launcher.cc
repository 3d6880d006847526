#include "core/comm/launcher.h"

#include <algorithm>
#include <charconv>

#include "core/base/expect.h"
#include "core/comm/job_secret.h"
#include "core/comm/join_text.h"

namespace hctr {
namespace {

template <class Integer = int>
std::optional<Integer> number(const Environment& environment, const char* name) {
  const std::optional<std::string> text = environment(name);
  if (!text) return std::nullopt;
  Integer value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0)
    throw Error(Kind::usage, cat("the environment has ", name, "=\"", *text, "\"; expected a number from 0"));
  return value;
}

/// The first environment variable of `names` that is set, and the number that it contains. `name` is null if none is
/// set.
struct Found {
  const char* name = nullptr;
  int value = 0;
};
Found first_number(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto value = number(environment, name)) return {name, *value};
  return {};
}

/// Like first_number(), but returns only the number.
std::optional<int> any_number(const Environment& environment, std::initializer_list<const char*> names) {
  const Found found = first_number(environment, names);
  return found.name ? std::optional(found.value) : std::nullopt;
}

int needed(const Environment& environment, const char* name, const char* set) {
  const auto value = number(environment, name);
  if (!value) throw Error(Kind::usage, cat("the environment has ", set, " but not ", name, ", which must be set too"));
  return *value;
}

void expect_number_on_host(const Launch& launch, const char* process, const char* processes) {
  if (launch.local_process && launch.local_processes && *launch.local_process >= *launch.local_processes)
    throw Error(Kind::usage, cat("the environment has ", process, "=", *launch.local_process, " and ", processes, "=",
                                 *launch.local_processes, "; processes of a host are numbered from 0"));
}

void expect_place(const Launch& launch, const char* process, const char* processes) {
  if (launch.processes < 1 || launch.process >= launch.processes)
    throw Error(Kind::usage, cat("the environment has ", process, "=", launch.process, " and ", processes, "=",
                                 launch.processes, "; processes are numbered from 0"));
  if (launch.processes > kMostProcesses)
    throw Error(Kind::usage, cat("the environment has ", processes, "=", launch.processes, "; at most ", kMostProcesses,
                                 " processes can join"));
}

void set_meeting_point(const Environment& environment, Launch& launch) {
  if (const auto address = environment("MASTER_ADDR")) launch.address = *address;
  const auto port = number(environment, "MASTER_PORT");
  if (port) launch.port = *port;
  if (launch.address.empty())
    throw Error(Kind::usage, cat("the environment has ", launch.launcher,
                                 " but not MASTER_ADDR, the host of process 0, to which all processes connect"));
  if (launch.port < 1 || launch.port > 65535)
    throw Error(Kind::usage, cat("MASTER_PORT ", port ? cat("is ", *port) : "is not set",
                                 ": expected a free TCP port of ", launch.address, ", from 1 to 65535"));
}

std::optional<Launch> by_mpirun(const Environment& environment, bool over_tcp) {
  Found size = first_number(environment, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  // to join over TCP, the variables that srun sets are sufficient
  if (over_tcp && environment("SLURM_STEP_ID")) return std::nullopt;
  if (!size.name && environment("PMIX_RANK")) {
    size = first_number(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
    if (!size.name && !environment("WORLD_SIZE"))
      throw Error(Kind::usage,
                  "the environment has PMIX_RANK, but neither SLURM_STEP_NUM_TASKS nor OMPI_COMM_WORLD_SIZE, the "
                  "number of processes");
  }
  if (!size.name || size.value == 0) return std::nullopt;
  const Found rank = first_number(environment, {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"});
  if (!rank.name)
    throw Error(Kind::usage,
                cat("the environment has ", size.name, " but not OMPI_COMM_WORLD_RANK, PMI_RANK or PMIX_RANK"));
  Launch launch{.launcher = "mpirun",
                .process = rank.value,
                .processes = size.value,
                .local_process = any_number(environment, {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"}),
                .local_processes = any_number(environment, {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}),
                .by_mpi = !over_tcp};
  expect_place(launch, rank.name, size.name);
  if (over_tcp && launch.processes > 1) set_meeting_point(environment, launch);
  return launch;
}

std::optional<Launch> by_variables(const Environment& environment) {
  if (!environment("WORLD_SIZE")) {
    // RANK without MASTER_ADDR may have another meaning.
    if (environment("RANK") && environment("MASTER_ADDR")) needed(environment, "WORLD_SIZE", "RANK and MASTER_ADDR");
    return std::nullopt;
  }
  Launch launch{.launcher = "RANK and WORLD_SIZE",
                .process = needed(environment, "RANK", "WORLD_SIZE"),
                .processes = needed(environment, "WORLD_SIZE", "RANK"),
                .local_process = number(environment, "LOCAL_RANK"),
                .local_processes = number(environment, "LOCAL_WORLD_SIZE"),
                .job = environment("TORCHELASTIC_RUN_ID").value_or("")};
  expect_place(launch, "RANK", "WORLD_SIZE");
  expect_number_on_host(launch, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  if (launch.processes > 1) set_meeting_point(environment, launch);
  return launch;
}

std::optional<Launch> by_srun(const Environment& environment) {
  // Without SLURM_STEP_ID this process is not in a step, because sbatch and salloc also set SLURM_PROCID and
  // SLURM_NTASKS.
  const auto step = environment("SLURM_STEP_ID");
  const auto size = number(environment, "SLURM_STEP_NUM_TASKS");
  if (!step) return std::nullopt;
  if (!size) {
    // The step of an sbatch script itself has a number above 4'000'000'000.
    const bool of_srun = number<int64_t>(environment, "SLURM_STEP_ID").value_or(0) < int64_t{4'000'000'000};
    if (of_srun && number(environment, "SLURM_NTASKS").value_or(1) > 1)
      needed(environment, "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID");
    return std::nullopt;
  }
  Launch launch{.launcher = "srun",
                .process = needed(environment, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
                .processes = *size,
                .local_process = number(environment, "SLURM_LOCALID"),
                .job = cat(environment("SLURM_JOB_ID").value_or(""), ".", *step)};
  expect_place(launch, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  if (launch.processes == 1) return launch;
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})
    if (const auto nodes = environment(name); nodes && launch.address.empty()) launch.address = first_host(*nodes);
  // Derive the port from the job and step numbers, so that jobs on one host get different ports, and all processes of a
  // job get the same port.
  const int64_t job = number<int64_t>(environment, "SLURM_JOB_ID").value_or(0);
  const int64_t step_number = number<int64_t>(environment, "SLURM_STEP_ID").value_or(0);
  launch.port = 20000 + static_cast<int>((job % 10000 * 7 + step_number % 10000) % 10000);
  set_meeting_point(environment, launch);
  return launch;
}

}  // namespace

std::optional<Launch> find_launch(const Environment& environment, bool over_tcp) {
  if (!environment) return std::nullopt;
  auto launch = by_mpirun(environment, over_tcp);
  if (!launch) launch = by_variables(environment);
  if (!launch) launch = by_srun(environment);
  if (launch && launch->processes == 1) return std::nullopt;
  if (launch && !launch->by_mpi) launch->secret = find_job_secret(environment);
  return launch;
}

std::string first_host(const std::string& node_list) {
  const size_t open = node_list.find_first_of("[,");
  if (open == node_list.npos || node_list[open] == ',') return node_list.substr(0, open);
  const size_t end = node_list.find_first_of(",-]", open + 1), close = node_list.find(']', open);
  if (end == node_list.npos || close == node_list.npos) return node_list;
  const size_t comma = std::min(node_list.find(',', close), node_list.size());
  return cat(node_list.substr(0, open), node_list.substr(open + 1, end - open - 1),
             node_list.substr(close + 1, comma - close - 1));
}

}  // namespace hctr
