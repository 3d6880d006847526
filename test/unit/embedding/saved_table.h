// Checkpoints of a single table.
#pragma once

#include <optional>

#include "base/files.h"
#include "checkpoint/state_reader.h"
#include "checkpoint/state_writer.h"
#include "table_rig.h"

namespace hctr::test {

/// Saves the table as the checkpoint of an iteration, with what has changed since `base`.
inline void save_table(TableRig& rig, const fs::path& folder, int64_t iteration, std::optional<int64_t> base) {
  const auto name = [](int64_t of) { return cat("iteration_00000", of); };
  fs::create_directories(folder / name(iteration));
  StateIndex index;
  index.file = "rank_0.state";
  StateFileWriter file(folder / name(iteration) / index.file);
  const StateWriter::Sink sink = [&](const HostBytes& piece) { file.write(piece.span()); };
  rig.table->save_state(StateWriter(0, rig.runtime.compute_stream(), index, sink, {iteration, base}));
  file.commit(index);
  std::optional<Manifest::Base> of;
  if (base) of = {.name = name(*base), .crc = read_manifest(folder / name(*base)).files_crc()};
  write_manifest(folder / name(iteration), {Json(Json::Object{}), Json(Json::Object{}), {index}, of});
}

}  // namespace hctr::test
