#include "launch/choose_device.h"

#include <set>

#include "core/base/host_name.h"

namespace hctr {
namespace {

bool has_gpu(DeviceChoice choice, const Log& log) {
  if (choice == DeviceChoice::cpu) return false;
  const GpuSearch search = find_gpus();
  if (search.count > 0) return true;
  if (choice == DeviceChoice::cuda)
    throw Error(Kind::device,
                cat("--device cuda: no usable GPU: ", search.why_none, "; --device cpu trains without a GPU"));
  log.info("No usable GPU (", search.why_none, "): using the CPU.");
  return false;
}

/// The GPUs that "all" selects for this process. If several processes run on the host: one GPU, chosen by the process's
/// index on the host. Otherwise all GPUs.
std::vector<int64_t> all_of(ProcessPlace place, bool on_gpus) {
  const bool several = place.on_host ? place.on_host->count > 1 : place.processes > 1;
  if (!on_gpus) return {0};
  const int count = find_gpus().count;
  if (several && !place.on_host)
    throw Error(Kind::config,
                "/solver/gpu: \"all\" needs a launcher that numbers the processes of a host (LOCAL_RANK); otherwise "
                "name the GPUs of each process, as in [[0],[1]]");
  if (several && place.on_host->process >= count)
    throw Error(Kind::device,
                cat("/solver/gpu: \"all\" assigns a GPU to each of ", place.on_host->count, " processes on ",
                    host_name(), ", but the number of GPUs is ", count, ": process ", place.process, ", number ",
                    place.on_host->process, " of that host (LOCAL_RANK), has no GPU"));
  if (several) return {place.on_host->process};
  std::vector<int64_t> numbers;
  for (int gpu = 0; gpu < count; ++gpu) numbers.push_back(gpu);
  return numbers;
}

/// The indices of this process's GPUs.
std::vector<int64_t> list_of(const GpuLists& gpus, ProcessPlace place, bool on_gpus, const Log& log) {
  const auto& lists = gpus.per_process;
  if (gpus.all) return all_of(place, on_gpus);
  if (lists.size() == static_cast<size_t>(place.processes)) return lists[static_cast<size_t>(place.process)];
  const std::string named =
      cat("/solver/gpu: names the GPUs of ", lists.size(), lists.size() == 1 ? " process" : " processes");
  if (place.processes > 1 && lists.size() == 1 && place.on_host)
    if (const auto here = static_cast<size_t>(place.on_host->count); lists[0].size() % here == 0) {
      // Divides the GPUs of each host equally among its processes.
      const auto each = static_cast<int64_t>(lists[0].size() / here), first = each * place.on_host->process;
      return {lists[0].begin() + first, lists[0].begin() + first + each};
    }
  if (place.processes > 1)
    throw Error(Kind::config,
                cat(named, " but ", place.processes,
                    " were started: expected one list for each process, as in [[0],[0]] for two processes with one "
                    "GPU each"));
  if (on_gpus)
    throw Error(Kind::config, cat(named, " but one process was started: mpirun -np ", lists.size(),
                                  " starts all processes; a flat list names the GPUs of one process"));
  log.info("note: ", named, "; on the CPU all ranks are threads of this process.");
  std::vector<int64_t> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace

std::vector<Device> choose_devices(DeviceChoice choice, const GpuLists& gpus, ProcessPlace place, const Log& log) {
  const bool on_gpus = has_gpu(choice, log);
  std::vector<Device> devices;
  std::set<int64_t> seen;
  for (const int64_t number : list_of(gpus, place, on_gpus, log)) {
    devices.push_back(on_gpus ? Device{DeviceKind::cuda, static_cast<int>(number)} : Device{});
    if (on_gpus && !seen.insert(number).second)
      throw Error(Kind::config, cat("/solver/gpu: names GPU ", number, " twice for one process"));
    if (on_gpus || devices.size() == 1)
      log.info("Device: ", on_gpus ? to_string(devices.back()) + ", " : "", describe(devices.back()));
  }
  if (devices.empty()) throw Error(Kind::config, cat("/solver/gpu: names no GPU for process ", place.process));
  if (!on_gpus && devices.size() > 1)
    log.info("The config names ", devices.size(),
             " GPUs: the CPU runs as many ranks, with at least one thread per "
             "rank.");
  return devices;
}

}  // namespace hctr
