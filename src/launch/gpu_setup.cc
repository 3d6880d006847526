#include "launch/gpu_setup.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "config/json.h"
#include "core/base/environment.h"
#include "core/base/expect.h"
#include "core/base/progress.h"
#include "core/device/gpu_links.h"

namespace hctr {
namespace {

using Severity = SetupProblem::Severity;

constexpr int64_t kSharedMemory = 32 << 20;  // shared memory that NCCL may need per rank, in bytes

/// Formats a list of ranks: "ranks 0, 1 and 5".
std::string ranks_text(const std::vector<size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += cat(i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
  return text;
}

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += cat(text.empty() ? "" : ", ", name);
  return text.empty() ? "none" : text;
}

template <class Of>
std::map<std::string, std::vector<size_t>> grouped(const std::vector<RankSetup>& ranks, const Of& of) {
  std::map<std::string, std::vector<size_t>> groups;
  for (size_t r = 0; r < ranks.size(); ++r) groups[of(ranks[r])].push_back(r);
  return groups;
}

void find_problems_of_host(const std::vector<RankSetup>& ranks, const std::vector<size_t>& here,
                           std::vector<SetupProblem>& problems) {
  const RankSetup& first = ranks[here[0]];
  std::set<size_t> apart;
  for (const size_t a : here)
    for (const size_t b : here)
      if (const auto& unreachable = ranks[a].unreachable;
          std::find(unreachable.begin(), unreachable.end(), ranks[b].gpu_id) != unreachable.end())
        apart.insert({a, b});
  if (!apart.empty())
    problems.push_back(
        {Severity::warning, cat("the GPUs of ", ranks_text({apart.begin(), apart.end()}), " on host ", first.host,
                                " cannot all read each other's memory, so exchanges go through host memory and are "
                                "several times slower: nvidia-smi topo -m shows how the GPUs are connected; if "
                                "there are links, IOMMU or ACS (in virtual machines: the host's settings) prevents "
                                "direct access")});
  int64_t free = first.shared_memory;
  for (const size_t r : here) free = std::min(free, ranks[r].shared_memory);
  if (here.size() > 1 && free < kSharedMemory * static_cast<int64_t>(here.size()))
    problems.push_back(
        {Severity::warning,
         cat("host ", first.host, " has ", with_unit_prefix(static_cast<double>(free)),
             " bytes of shared memory free in /dev/shm for ", here.size(), " ranks, but NCCL may need ",
             kSharedMemory >> 20, " MiB for each; in a container use docker run --shm-size=1g, or --ipc=host")});
  for (const size_t r : here) {
    const std::string& wanted = ranks[r].wanted;
    const auto& interfaces = ranks[r].interfaces;
    const auto allowed = [&](const std::string& each) { return allows_interface(wanted, each); };
    if (wanted.empty() || std::any_of(interfaces.begin(), interfaces.end(), allowed)) continue;
    problems.push_back({Severity::error, cat("NCCL_SOCKET_IFNAME=", wanted,
                                             " allows none of the network interfaces that are up on host ", first.host,
                                             ", where rank ", r, " runs (", names_text(interfaces),
                                             "): name one of these interfaces, or unset the "
                                             "variable")});
    break;
  }
}

Json to_json(const std::vector<std::string>& names) {
  Json array(Json::Array{});
  for (const std::string& name : names) array.add(name);
  return array;
}
std::vector<std::string> strings_of(const Json& json) {
  std::vector<std::string> names;
  for (const Json& name : *json.array()) names.push_back(*name.string());
  return names;
}

std::string to_text(const RankSetup& s) {
  return Json(Json::Object{{"host", s.host},
                           {"gpu", s.gpu},
                           {"gpu_id", s.gpu_id},
                           {"unreachable", to_json(s.unreachable)},
                           {"shared_memory", s.shared_memory},
                           {"interfaces", to_json(s.interfaces)},
                           {"wanted", s.wanted}})
      .text();
}
RankSetup from_text(const std::string& text) {
  const Json json = Json::parse(text, "the set-up of a rank");
  const auto word = [&](const char* name) { return *json.find(name)->string(); };
  return {word("host"),
          word("gpu"),
          word("gpu_id"),
          strings_of(*json.find("unreachable")),
          *json.find("shared_memory")->integer(),
          strings_of(*json.find("interfaces")),
          word("wanted")};
}

}  // namespace

bool allows_interface(const std::string& wanted, const std::string& interface) {
  const bool none_of = wanted.starts_with("^");
  std::string names = wanted.substr(none_of);
  const bool exactly = names.starts_with("=");
  names = names.substr(exactly) + ",";
  for (size_t begin = 0, end; (end = names.find(',', begin)) != std::string::npos; begin = end + 1) {
    const std::string name = names.substr(begin, end - begin);
    if (!name.empty() && (exactly ? interface == name : interface.starts_with(name))) return !none_of;
  }
  return none_of;
}

RankSetup setup_of(Device device, const Environment& environment) {
  RankSetup setup;
  char name[256] = "";
  if (gethostname(name, sizeof name - 1) == 0) setup.host = name;
  setup.gpu = describe(device);
  if (device.is_cuda()) {
    GpuLinks links = gpu_links(device);
    setup.gpu_id = std::move(links.id);
    setup.unreachable = std::move(links.unreachable);
  }
  struct statvfs shared {};
  if (statvfs("/dev/shm", &shared) == 0) setup.shared_memory = static_cast<int64_t>(shared.f_bavail * shared.f_frsize);
  std::set<std::string> interfaces;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) == 0) {
    for (const ifaddrs* each = all; each; each = each->ifa_next)
      if (each->ifa_flags & IFF_UP) interfaces.insert(each->ifa_name);
    freeifaddrs(all);
  }
  setup.interfaces.assign(interfaces.begin(), interfaces.end());
  setup.wanted = variable_of(environment, "NCCL_SOCKET_IFNAME").value_or("");
  return setup;
}

std::vector<SetupProblem> find_setup_problems(const std::vector<RankSetup>& ranks) {
  std::vector<SetupProblem> problems;
  const auto kinds = grouped(ranks, [](const RankSetup& s) { return s.gpu; });
  if (kinds.size() > 1) {
    std::string text;
    for (const auto& [gpu, of] : kinds) text += cat(text.empty() ? "" : "; ", gpu, " (", ranks_text(of), ")");
    problems.push_back(
        {Severity::warning, cat("the ranks' GPUs differ: ", text,
                                ". Each step waits for the slowest GPU, and the smallest memory limits the plan: "
                                "name GPUs of one kind in \"gpu\", or hide other GPUs with CUDA_VISIBLE_DEVICES")});
  }
  for (const auto& [gpu, of] : grouped(ranks, [](const RankSetup& s) { return s.host + " " + s.gpu_id; }))
    if (of.size() > 1)
      problems.push_back({Severity::error, cat(ranks_text(of), " share one GPU of host ", ranks[of[0]].host,
                                               ", but each rank needs its own GPU: the lists in \"gpu\" name GPUs "
                                               "by their index on the host, one list for each process")});
  const auto hosts = grouped(ranks, [](const RankSetup& s) { return s.host; });
  for (const auto& [host, here] : hosts) find_problems_of_host(ranks, here, problems);
  if (hosts.size() > 1 && std::all_of(ranks.begin(), ranks.end(), [](const RankSetup& s) { return s.wanted.empty(); }))
    problems.push_back(
        {Severity::hint, cat("NCCL chooses the network between the hosts, among ", names_text(ranks[0].interfaces),
                             " on host ", ranks[0].host, ": set NCCL_SOCKET_IFNAME to select another network")});
  return problems;
}

std::string check_gpu_setup(Communicator& comm, Device device, const Environment& environment, const Log& log) {
  const std::vector<std::string> texts = comm.gather(to_text(setup_of(device, environment)), 0);
  std::string found, errors;
  if (comm.rank() == 0) {
    std::vector<RankSetup> ranks;
    for (const std::string& text : texts) ranks.push_back(from_text(text));
    for (const SetupProblem& problem : find_setup_problems(ranks)) {
      if (problem.severity == Severity::warning) log.warning(problem.text);
      std::string& to = problem.severity == Severity::error ? errors : found;
      to += cat(to.empty() ? "" : "\n", problem.text);
    }
  }
  errors = comm.broadcast(errors, 0);
  if (!errors.empty()) throw Error(Kind::comm, errors);
  return comm.broadcast(found, 0);
}

}  // namespace hctr
