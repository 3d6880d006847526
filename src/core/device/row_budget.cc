#include "core/device/row_budget.h"

#include <algorithm>
#include <limits>

namespace hctr {
namespace {

bool end_snapshots(const std::vector<RowDiskUser*>& users, const RowDiskUser* but, bool wait) {
  bool any = false;
  for (RowDiskUser* const user : users) any = (user != but && user->end_snapshot(wait)) || any;
  return any;
}

}  // namespace

RowMemory::RowMemory(Device device, RowMemoryLimits limits, RowMemory& of_run, Tiers shared)
    : device_(device), limits_(std::move(limits)), of_run_(&of_run), shared_(shared) {
  const RowMemoryLimits& run = of_run.limits();
  if (shared.device) {
    limits_.device = run.device;
    limits_.reserve = run.reserve;
    limits_.device_setting = run.device_setting;
  }
  if (shared.host) {
    limits_.host = run.host;
    limits_.host_setting = run.host_setting;
  }
  if (shared.disk) {
    limits_.disk_folder = run.disk_folder;
    limits_.disk = run.disk;
  }
}

int64_t RowMemory::device_room() const {
  if (limits_.device) return std::max<int64_t>(0, *limits_.device - device_bytes());
  // Rows have no limit here if they cannot use host memory: an allocation fails when the device is full.
  if (!has_host()) return std::numeric_limits<int64_t>::max();
  return std::max<int64_t>(0, free_memory(device_) - limits_.reserve);
}

int64_t RowMemory::others_move_to_host(const RowMemoryUser* but, int64_t bytes) {
  int64_t moved = 0;
  for (RowMemoryUser* const user : of(shared_.device).users_)
    if (user != but && moved < bytes) moved += user->move_to_host(bytes - moved);
  return moved;
}

int64_t RowMemory::others_most_to_host(const RowMemoryUser* but) const {
  int64_t most = 0;
  for (const RowMemoryUser* const user : of(shared_.device).users_)
    if (user != but) most += user->most_to_host();
  return most;
}

void RowMemory::join(RowDiskUser* user) {
  of(shared_.host).host_users_.push_back(user);
  of(shared_.disk).disk_users_.push_back(user);
}

void RowMemory::leave(RowDiskUser* user) {
  std::erase(of(shared_.host).host_users_, user);
  std::erase(of(shared_.disk).disk_users_, user);
}

bool RowMemory::end_snapshots_on_host(const RowDiskUser* but, bool wait) const {
  return end_snapshots(of(shared_.host).host_users_, but, wait);
}

bool RowMemory::end_snapshots_on_disk(const RowDiskUser* but, bool wait) const {
  return end_snapshots(of(shared_.disk).disk_users_, but, wait);
}

int64_t RowMemory::others_give_disk(const RowDiskUser* but, int64_t bytes) {
  int64_t given = 0;
  for (RowDiskUser* const user : of(shared_.disk).disk_users_)
    if (user != but && given < bytes) given += user->give_disk(bytes - given);
  return given;
}

}  // namespace hctr
