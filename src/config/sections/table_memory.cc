#include "config/sections/table_memory.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/base/files.h"
#include "core/base/host_name.h"

namespace hctr {
namespace {

constexpr double kHostShare = 0.8;  // "auto": fraction of the host's free memory that all its ranks use together
constexpr const char* kDeviceWord = "\"gpu\" of \"table_memory\"";
constexpr const char* kHostWord = "\"host\" of \"table_memory\"";

constexpr double kDiskShare = 0.9;  // "auto": fraction of the disk's free space

/// Free bytes on the disk of `folder`. Creates the folder.
int64_t free_on_disk(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  const fs::space_info space = error ? fs::space_info{} : fs::space(folder, error);
  if (error)
    throw Error(Kind::io,
                cat("\"disk\" of \"table_memory\": cannot use the folder '", folder.string(), "': ", error.message()));
  return static_cast<int64_t>(space.available);
}

/// The number of bytes in a text such as "20GB" or "1.5 GiB"; empty if the text has another form.
std::optional<int64_t> bytes_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  std::string unit(end, text.data() + text.size());
  std::erase(unit, ' ');
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::toupper(c); });
  static constexpr const char* kPrefixes = "KMGT";
  double factor = 1;
  if (unit.size() == 2 || (unit.size() == 3 && unit[1] == 'I')) {
    const char* prefix = std::char_traits<char>::find(kPrefixes, 4, unit[0]);
    if (!prefix || unit.back() != 'B') return std::nullopt;
    factor = std::pow(unit.size() == 2 ? 1000.0 : 1024.0, static_cast<double>(prefix - kPrefixes + 1));
  } else if (unit != "B") {
    return std::nullopt;
  }
  if (number * factor > 1e18) return std::nullopt;
  return static_cast<int64_t>(number * factor);
}

}  // namespace

int64_t MemorySize::of(int64_t free, double automatic_share) const {
  if (kind == Kind::bytes) return bytes;
  return static_cast<int64_t>(static_cast<double>(free) * (kind == Kind::share ? share : automatic_share));
}

std::string read_value(const Json& value, const Range&, MemorySize& out) {
  const std::string expected =
      "\"auto\", a number of bytes such as \"20GB\" or \"512MiB\", or a fraction of the free memory, above 0 and at "
      "most 1";
  if (const std::string* text = unwrapped(value).string()) {
    if (*text == "auto") {
      out = {};
      return "";
    }
    const auto bytes = bytes_of(*text);
    if (!bytes) return expected;
    out = {MemorySize::Kind::bytes, *bytes, 0, *text};
    return "";
  }
  double share = 0;
  if (!read_value(value, between(0, 1), share).empty() || !(share > 0 && share <= 1)) return expected;
  out = {MemorySize::Kind::share, 0, share, ""};
  return "";
}

Json to_json(const MemorySize& size) {
  if (size.kind == MemorySize::Kind::share) return size.share;
  return size.kind == MemorySize::Kind::bytes ? size.text : std::string("auto");
}

Schema<TableMemory> table_memory_schema() {
  using T = TableMemory;
  return Schema<T>("table_memory")
      .opt("gpu", &T::gpu,
           "limit for all tables of a rank on its GPU: rows with their optimizer states, keys, index and "
           "statistics; \"auto\": the free GPU memory minus 1/32 of all GPU memory and 512 MiB")
      .opt("host", &T::host,
           "limit for tables in host memory, for all ranks of the host together. Includes page-locked rows that do not "
           "fit on GPUs, and the map of rows on disk; on the CPU without \"gpu\" also keys, index and statistics. "
           "\"auto\": 0.8 of the memory that is free when the run starts")
      .opt("move_every", &T::move_every,
           "interval in steps at which often used rows in host memory are swapped with rarely used rows on the GPU; 0: "
           "never",
           between(0, 1e9))
      .opt("disk", &T::disk,
           "folder on a local disk for rows that do not fit in memory; each rank writes a file, which is deleted "
           "when the run ends; empty: no rows on disk")
      .opt("disk_limit", &T::disk_limit,
           "limit for the files in \"disk\", for all ranks of a host together; \"auto\": 0.9 of the space that is "
           "free when the run starts")
      .closed();
}

TableMemory OwnTableMemory::with(const TableMemory& of_solver) const {
  return {.gpu = gpu.value_or(of_solver.gpu),
          .host = host.value_or(of_solver.host),
          .disk = disk.value_or(of_solver.disk),
          .disk_limit = disk_limit.value_or(of_solver.disk_limit),
          .move_every = of_solver.move_every};
}

Schema<OwnTableMemory> own_table_memory_schema() {
  using T = OwnTableMemory;
  return Schema<T>("table_memory")
      .opt("gpu", &T::gpu, "limit for this table on the GPU of a rank")
      .opt("host", &T::host, "limit for this table in host memory, for all ranks of the host together")
      .opt("disk", &T::disk,
           "folder on a local disk for rows of this table that do not fit in memory; empty: no "
           "rows on disk")
      .opt("disk_limit", &T::disk_limit, "limit for the files in \"disk\", for all ranks of a host together")
      .closed();
}

void check_table_memory(const OwnTableMemory& own, const TableMemory& of_solver, const std::string& pointer,
                        Problems& problems) {
  if (own.disk_limit && own.with(of_solver).disk.empty())
    problems.error(pointer + "/disk_limit",
                   own.disk ? "has no meaning with \"disk\": \"\", which keeps this table's rows in memory"
                            : "needs \"disk\", here or in the \"table_memory\" of the solver");
}

RowMemoryLimits row_memory_limits(const TableMemory& given, Device device, int64_t ranks_of_host) {
  RowMemoryLimits limits;
  constexpr MemorySize::Kind kAuto = MemorySize::Kind::automatic;
  const bool stated = given.gpu.kind != kAuto || given.host.kind != kAuto || !given.disk.empty();
  if (!device.is_cuda() && !stated) return limits;
  limits.host = given.host.of(free_memory(Device{}), kHostShare) / std::max<int64_t>(1, ranks_of_host);
  limits.device_setting = kDeviceWord;
  limits.host_setting = kHostWord;
  limits.move_every = given.move_every;
  if (given.gpu.kind != kAuto)
    limits.device = given.gpu.of(free_memory(device), 1);
  else if (device.is_cuda())
    limits.reserve = (free_memory(device) + used_memory(device)) / 32 + (int64_t{512} << 20);
  else
    limits.device = 0;  // a CPU has no separate device memory
  if (!given.disk.empty()) {
    limits.disk_folder = given.disk;
    limits.disk = given.disk_limit.of(free_on_disk(given.disk), kDiskShare) / std::max<int64_t>(1, ranks_of_host);
  }
  return limits;
}

RowMemoryLimits row_memory_limits(const TableMemory& given, Device device, Communicator& comm) {
  std::string all;
  for (const std::string& host : comm.gather(host_name(), 0)) all += host + "\n";
  all = comm.broadcast(all, 0);
  const std::string mine = host_name() + "\n";
  int64_t ranks = 0;
  for (size_t at = 0; at < all.size(); at = all.find('\n', at) + 1) ranks += all.compare(at, mine.size(), mine) == 0;
  return row_memory_limits(given, device, ranks);
}

std::shared_ptr<RowMemory> own_row_memory(const OwnTableMemory& own, const TableMemory& of_solver,
                                          const std::string& top, RowMemory& of_run, Device device,
                                          Communicator& comm) {
  RowMemoryLimits limits = row_memory_limits(own.with(of_solver), device, comm);
  limits.move_every = of_run.limits().move_every;
  limits.swap_always = of_run.limits().swap_always;
  for (std::string* setting : {&limits.device_setting, &limits.host_setting})
    if (!setting->empty()) *setting += cat(" of '", top, "'");
  const bool run_has_budget = !of_run.limits().host_setting.empty();
  return std::make_shared<RowMemory>(device, limits, of_run, run_has_budget ? own.shared() : RowMemory::Tiers{});
}

}  // namespace hctr
