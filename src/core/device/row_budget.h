// Memory budget for table rows in three tiers: device memory, then host memory, then disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.h"

namespace hctr {

/// Limits of one rank in bytes. By default rows use all free device memory and no host memory.
struct RowMemoryLimits {
  std::optional<int64_t> device;  ///< maximum on the device; nullopt: its free memory minus `reserve`
  int64_t reserve = 0;            ///< bytes to leave free on the device if `device` is nullopt
  int64_t host = 0;               ///< maximum in host memory
  int64_t move_every = 128;       ///< number of steps after which rows are swapped by access counts; 0: no swaps
  bool swap_always = false;       ///< for tests: swap rows even if they are not accessed
  std::string device_setting;     ///< name of the setting for `device`, for messages
  std::string host_setting;       ///< name of the setting for `host`; empty: rows stay on the device
  bool of_options = false;        ///< whether messages name options of an embedding set instead of config fields
  std::string disk_folder;        ///< folder for evicted rows; empty: no disk tier
  int64_t disk = 0;               ///< maximum bytes on disk
};

/// A table that can reduce its device memory.
class RowMemoryUser {
 public:
  virtual ~RowMemoryUser() = default;
  /// Moves rows to host memory to free `bytes` bytes of the device, or as many as possible. No work may be queued.
  /// Returns the freed bytes.
  virtual int64_t move_to_host(int64_t bytes) = 0;
  /// The maximum bytes that move_to_host() can free.
  virtual int64_t most_to_host() const = 0;
};

/// A table with rows on disk, whose snapshot uses host memory and disk space.
class RowDiskUser {
 public:
  virtual ~RowDiskUser() = default;
  /// Releases the bytes that a snapshot of the table used or reserved, if the snapshot has ended. `wait`: waits for the
  /// end of the snapshot first. Returns whether a snapshot has ended.
  virtual bool end_snapshot(bool wait) = 0;
  /// Frees `bytes` bytes of disk space, or fewer if the table's rows need the space. Returns the freed bytes, which may
  /// exceed `bytes`.
  virtual int64_t give_disk(int64_t bytes) = 0;
};

/// The budget that the tables of a rank share. The budget grants memory in the order of requests. Training results do
/// not depend on that order. Only the rank's thread uses this object.
class RowMemory {
 public:
  RowMemory(Device device, RowMemoryLimits limits) : device_(device), limits_(std::move(limits)) {}
  /// The tiers that a RowMemory shares with `of_run`.
  struct Tiers {
    bool device = false, host = false, disk = false;
  };
  /// A budget for some tables. A tier in `shared` uses the limit and the byte count of `of_run`; every other tier has
  /// its own. `of_run` must outlive this object.
  RowMemory(Device, RowMemoryLimits, RowMemory& of_run, Tiers shared);
  RowMemory(const RowMemory&) = delete;
  RowMemory& operator=(const RowMemory&) = delete;

  /// Bytes still available to rows on the device. The largest int64_t if only the device itself limits rows. 0 if the
  /// free device memory does not exceed the reserve.
  int64_t device_room() const;
  /// Bytes still available in host memory, without promised bytes.
  int64_t host_room() const { return limits_.host - host_bytes() - of(shared_.host).host_promised_; }
  /// Whether rows may be in host memory.
  bool has_host() const { return limits_.host > 0; }

  /// Whether rows may be on disk, and the bytes still available there, without promised bytes.
  bool has_disk() const { return !limits_.disk_folder.empty(); }
  int64_t disk_room() const { return limits_.disk - disk_bytes() - of(shared_.disk).disk_promised_; }

  /// Bytes used by tables. For a shared tier, the bytes used by all tables that share the tier.
  int64_t device_bytes() const { return of(shared_.device).device_bytes_; }
  int64_t host_bytes() const { return of(shared_.host).host_bytes_; }
  int64_t disk_bytes() const { return of(shared_.disk).disk_bytes_; }
  const RowMemoryLimits& limits() const { return limits_; }

  /// Register and deregister tables that can free device memory. A table must deregister before its destruction.
  void join(RowMemoryUser* user) { of(shared_.device).users_.push_back(user); }
  void leave(RowMemoryUser* user) { std::erase(of(shared_.device).users_, user); }
  /// Makes all tables except `but` move rows to the host to free `bytes` bytes of the device, in the order of
  /// registration. Returns the freed bytes, possibly fewer or more than `bytes`.
  int64_t others_move_to_host(const RowMemoryUser* but, int64_t bytes);
  int64_t others_most_to_host(const RowMemoryUser* but) const;

  /// Register and deregister tables with rows on disk. A table must deregister before its destruction.
  void join(RowDiskUser* user);
  void leave(RowDiskUser* user);
  /// Release the ended snapshots of all tables except `but`. end_snapshots_on_host() releases those that use host
  /// memory, end_snapshots_on_disk() those that use disk space. Both return whether a snapshot has ended.
  bool end_snapshots_on_host(const RowDiskUser* but, bool wait) const;
  bool end_snapshots_on_disk(const RowDiskUser* but, bool wait) const;
  /// Makes all tables except `but` free `bytes` bytes of disk space. Returns the freed bytes, possibly fewer or more
  /// than `bytes`.
  int64_t others_give_disk(const RowDiskUser* but, int64_t bytes);

  // Reserve bytes for one table, so that other tables cannot take these bytes. The table itself counts promised bytes
  // as available. When the table takes promised bytes, it passes a negative number to reduce the promise.
  void promise_host(int64_t bytes) { of(shared_.host).host_promised_ += bytes; }
  void promise_disk(int64_t bytes) { of(shared_.disk).disk_promised_ += bytes; }

  // Count allocated bytes; negative numbers count freed bytes.
  void take_device(int64_t bytes) { of(shared_.device).device_bytes_ += bytes; }
  void take_host(int64_t bytes) { of(shared_.host).host_bytes_ += bytes; }
  void take_disk(int64_t bytes) { of(shared_.disk).disk_bytes_ += bytes; }

 private:
  RowMemory& of(bool shared) { return shared ? *of_run_ : *this; }
  const RowMemory& of(bool shared) const { return shared ? *of_run_ : *this; }

  Device device_;
  RowMemoryLimits limits_;
  RowMemory* of_run_ = nullptr;
  Tiers shared_;
  int64_t device_bytes_ = 0, host_bytes_ = 0, disk_bytes_ = 0;
  int64_t host_promised_ = 0, disk_promised_ = 0;
  std::vector<RowMemoryUser*> users_;
  // Tables with rows on disk. host_users_ use the host budget of this object, disk_users_ use its disk budget.
  std::vector<RowDiskUser*> host_users_, disk_users_;
};

}  // namespace hctr
