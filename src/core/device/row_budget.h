// Capacity for the rows of tables: on a device, once that is full in memory of its host, and then on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device/device.h"

namespace hctr {

/// Bytes of one rank. The default: all that the device has free, and none on the host.
struct RowMemoryLimits {
  std::optional<int64_t> device;  ///< maximum on the device; none: its free memory, except the reserve
  int64_t reserve = 0;            ///< without `device`: stays free on the device
  int64_t host = 0;               ///< maximum in host memory
  int64_t move_every = 128;       ///< steps between swaps of rows by access counts; 0: never
  bool swap_always = false;       ///< for tests: rows are swapped even if they are not used
  std::string device_setting;     ///< names of the settings, for messages
  std::string host_setting;       ///< empty: none, rows stay on the device
  bool of_options = false;        ///< messages name options of a set of embeddings, not fields of a config
  std::string disk_folder;        ///< where rows go that no memory has room for; empty: nowhere
  int64_t disk = 0;               ///< maximum on disk
};

/// A user of a budget that can reduce its device memory.
class RowMemoryUser {
 public:
  virtual ~RowMemoryUser() = default;
  /// Moves rows to host memory to free this many bytes of the device, or as many as possible. Nothing may be queued.
  /// Returns the bytes.
  virtual int64_t move_to_host(int64_t bytes) = 0;
  /// The maximum that this could free.
  virtual int64_t most_to_host() const = 0;
};

/// A user with rows on disk that can reduce its host memory once a snapshot has ended.
class RowDiskUser {
 public:
  virtual ~RowDiskUser() = default;
  /// Returns the bytes that a snapshot of its rows took and was promised, if that has ended; `wait`: waits for its end.
  /// Returns whether there was one that has ended.
  virtual bool end_snapshot(bool wait) = 0;
  /// Frees this many bytes of the disk, or as many as its rows do not need. Returns the bytes, which may be more.
  virtual int64_t give_disk(int64_t bytes) = 0;
};

/// The budget shared by the tables of a rank, first come, first served; results do not depend on it. For the thread of
/// its rank.
class RowMemory {
 public:
  RowMemory(Device device, RowMemoryLimits limits) : device_(device), limits_(std::move(limits)) {}
  /// A budget of some tables alone, except for these tiers: they belong to another budget, limits and bytes taken,
  /// which outlives this one.
  struct Tiers {
    bool device = false, host = false, disk = false;
  };
  RowMemory(Device, RowMemoryLimits, RowMemory& of_run, Tiers shared);
  RowMemory(const RowMemory&) = delete;
  RowMemory& operator=(const RowMemory&) = delete;

  /// Bytes that rows may take on the device beyond their present ones; the largest number if only the device limits
  /// them. 0 if no more than the reserve is free.
  int64_t device_room() const;
  /// The same for the host, without promised bytes.
  int64_t host_room() const { return limits_.host - host_bytes() - of(shared_.host).host_promised_; }
  /// Whether rows may be in host memory at all.
  bool has_host() const { return limits_.host > 0; }

  /// Whether rows may be on disk, and the bytes they may take there beyond their present ones, without promised bytes.
  bool has_disk() const { return !limits_.disk_folder.empty(); }
  int64_t disk_room() const { return limits_.disk - disk_bytes() - of(shared_.disk).disk_promised_; }

  /// Bytes taken by tables; for a shared tier by all tables that share it.
  int64_t device_bytes() const { return of(shared_.device).device_bytes_; }
  int64_t host_bytes() const { return of(shared_.host).host_bytes_; }
  int64_t disk_bytes() const { return of(shared_.disk).disk_bytes_; }
  const RowMemoryLimits& limits() const { return limits_; }

  /// Tables that can free memory. They deregister before they end.
  void join(RowMemoryUser* user) { of(shared_.device).users_.push_back(user); }
  void leave(RowMemoryUser* user) { std::erase(of(shared_.device).users_, user); }
  /// Makes other users move rows to the host, in the order of their registration, to free this many bytes of the
  /// device. Returns the bytes, which may be fewer or more.
  int64_t others_move_to_host(const RowMemoryUser* but, int64_t bytes);
  int64_t others_most_to_host(const RowMemoryUser* but) const;

  /// Tables that have rows on disk. They deregister before they end.
  void join(RowDiskUser* user);
  void leave(RowDiskUser* user);
  /// Ends other users' snapshots that take host memory, or disk space. Returns whether any has ended.
  bool end_snapshots_on_host(const RowDiskUser* but, bool wait) const;
  bool end_snapshots_on_disk(const RowDiskUser* but, bool wait) const;
  /// Makes other users free this many bytes of the disk. Returns the bytes, which may be fewer or more.
  int64_t others_give_disk(const RowDiskUser* but, int64_t bytes);

  // Promised bytes: one user may still need them, others cannot take them. That user counts them as available, and
  // reduces the promise (a negative number) as it takes them.
  void promise_host(int64_t bytes) { of(shared_.host).host_promised_ += bytes; }
  void promise_disk(int64_t bytes) { of(shared_.disk).disk_promised_ += bytes; }

  // Called by users of memory; negative numbers give back.
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
  std::vector<RowDiskUser*> host_users_, disk_users_;  // users by the tier that they share
};

}  // namespace hctr
