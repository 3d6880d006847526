// Writes rows to their file in a writer thread while training continues.
#include <algorithm>

#include "core/base/expect.h"
#include "engine/disk/disk_rows.h"
#include "engine/disk/stopwatch.h"

namespace hctr {

void DiskRows::add_behind(std::span<Row> rows, const std::byte* records) {
  const Stopwatch stopwatch(traffic_.seconds);
  settle();
  prepare_to_add(rows, records);
  const std::vector<uint32_t> places = take_places(static_cast<int64_t>(rows.size()), adds_in_order());
  for (size_t i = 0; i < rows.size(); ++i) rows[i].place = places[i];
  std::erase_if(behind_, [&](const auto& each) { return each.first == records; });
  behind_.emplace_back(records, rows);
  writes_.start(places, records);
  enter(rows);
}

void DiskRows::wait_written(const std::byte* records) {
  const Stopwatch stopwatch(traffic_.seconds);
  writes_.wait(records);
  settle();
}

void DiskRows::wait_written() {
  const Stopwatch stopwatch(traffic_.seconds);
  settle_all();
}

void DiskRows::settle_all() {
  writes_.wait_for_all();
  settle();
}

void DiskRows::settle() {
  if (!writes_.failed().empty()) write_elsewhere();
  if (!writes_.any_left()) behind_.clear();
}

void DiskRows::write_elsewhere() {
  // Several blocks may write to the same place, so wait for all blocks. Handle all failed blocks together, because the
  // places of one failed block must not be given to another.
  writes_.wait_for_all();
  const std::vector<DiskWrites::Failed> failed = writes_.failed();
  std::vector<Row> rows;  // rows that are still on disk according to the map
  std::vector<std::byte> records;
  const auto bytes = static_cast<size_t>(record_bytes_);
  for (const DiskWrites::Failed& each : failed) {
    const auto block =
        std::find_if(behind_.rbegin(), behind_.rend(), [&](const auto& one) { return one.first == each.records; });
    for (size_t i = 0; i < each.count; ++i) {
      const Row& row = block->second[i];
      const Row* const there = find(row.key, row.slot);
      const std::byte* const record = each.records + i * bytes;
      if (!there || there->place != row.place || writes_.find(row.place) != record) continue;
      rows.push_back(*there);
      records.insert(records.end(), record, record + bytes);
    }
  }
  in_context([&] { return cat("moving ", rows.size(), " rows of ", label_, " to the disk"); },
             [&] {
               const auto count = static_cast<int64_t>(rows.size());
               if (places_.free() < count) end_snapshot(true);
               if (places_.free() < count) std::rethrow_exception(failed.front().error);
               std::vector<uint32_t> before;
               for (const Row& row : rows) before.push_back(row.place);
               // the disk is full, so reuse free places instead of extending the file
               const std::vector<uint32_t> places = take_places(count, false);
               try {
                 for (size_t i = 0; i < rows.size(); ++i) rows[i].place = places[i];
                 write(rows, records.data());
               } catch (const Error&) {
                 give_back(places);
                 throw;
               }
               const std::lock_guard lock(changes_);
               for (const Row& row : rows) map_.at(row.key, row.slot).place = row.place;
               for (const uint32_t place : before) fetched_.drop(place);
               undo(before);
             });
  for (const DiskWrites::Failed& each : failed) writes_.forget(each.records);
}

}  // namespace hctr
