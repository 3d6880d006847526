// Checkpoints of a single table.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"
#include "unit/engine/table/table_rig.h"

namespace hctr::test {

inline fs::path saved_path(const fs::path& folder, int64_t iteration) {
  return folder / cat("iteration_00000", iteration);
}

inline void write_saved_manifest(const fs::path& folder, int64_t iteration, std::optional<int64_t> base,
                                 const StateIndex& index) {
  std::optional<Manifest::Base> of;
  if (base) of = {.name = saved_path({}, *base).string(), .crc = read_manifest(saved_path(folder, *base)).files_crc()};
  write_manifest(saved_path(folder, iteration), {Json(Json::Object{}), Json(Json::Object{}), {index}, of});
}

/// Saves the table as the checkpoint of `iteration`. With `base`, saves only the changes since the base.
inline void save_table(TableRig& rig, const fs::path& folder, int64_t iteration, std::optional<int64_t> base) {
  fs::create_directories(saved_path(folder, iteration));
  StateIndex index;
  index.file = "rank_0.state";
  StateFileWriter file(saved_path(folder, iteration) / index.file);
  const StateWriter::Sink sink = [&](const HostBytes& piece) { file.write(piece.span()); };
  rig.table->save_state(StateWriter(0, rig.runtime.compute_stream(), index, sink, {iteration, base}));
  file.commit(index);
  write_saved_manifest(folder, iteration, base, index);
}

/// A checkpoint of a table whose write() reads the rows on disk later, so that the table may train in between.
class TableSavedLater {
 public:
  TableSavedLater(TableRig& rig, fs::path folder, int64_t iteration, std::optional<int64_t> base,
                  int64_t memory = int64_t{1} << 40)
      : folder_(std::move(folder)), iteration_(iteration), base_(base) {
    fs::create_directories(saved_path(folder_, iteration));
    index_.file = "rank_0.state";
    later_.memory = memory;
    const StateWriter::Sink sink = [&](HostBytes piece) { pieces_.push_back(std::move(piece)); };
    rig.table->save_state(
        StateWriter(0, rig.runtime.compute_stream(), index_, sink, {iteration, base}, {nullptr, &later_}));
  }
  const LaterState& later() const { return later_; }
  /// May run on any thread.
  void write() {
    const LaterState later = std::exchange(later_, {});
    StateFileWriter file(saved_path(folder_, iteration_) / index_.file);
    for (const HostBytes& piece : pieces_) file.write_at(piece.offset, piece.span());
    for (const LaterRows& rows : later.rows) file.write(rows);
    file.commit(index_);
    write_saved_manifest(folder_, iteration_, base_, index_);
  }
  /// Runs write() on another thread after `delay`, while this thread runs `steps`. Returns the error message; "" if
  /// there is none.
  std::string write_beside(std::chrono::milliseconds delay, const std::function<void()>& steps) {
    std::string failure;
    std::thread thread([&] {
      std::this_thread::sleep_for(delay);
      try {
        write();
      } catch (const Error& error) {
        failure = error.what();
      }
    });
    steps();
    thread.join();
    return failure;
  }

 private:
  fs::path folder_;
  int64_t iteration_;
  std::optional<int64_t> base_;
  StateIndex index_;
  std::vector<HostBytes> pieces_;
  LaterState later_;
};

}  // namespace hctr::test
