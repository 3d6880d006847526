// Tables in checkpoints and increments, row by row. test/integration/resume_test.cc tests whole runs.
#include <gtest/gtest.h>

#include "engine/table/saved_rows.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "unit/engine/table/plain_table.h"

namespace hctr::test {
namespace {

class SavedTable : public OnDevice {
 protected:
  static TableSpec spec() {
    TableSpec spec = small_spec(5, 2, 20, 120);
    spec.optimizer.kind = ops::Optimizer::Kind::adagrad;
    spec.marks_changes = true;
    return spec;
  }
  static void train(TableRig& rig, int steps, uint64_t seed, int64_t vocabulary = 60) {
    std::mt19937_64 random(seed);
    for (int t = 0; t < steps; ++t)
      rig.step(random_bags(rig.spec(), rig.spec().samples, 3, vocabulary, random),
               random_floats(rig.spec().samples * rig.spec().slots * rig.spec().dim, random));
  }
  fs::path path(int64_t iteration) const { return folder_ / cat("iteration_00000", iteration); }
  /// Saves a full checkpoint, or an increment on `base`. Returns the number of rows taken from the base.
  int64_t save(TableRig& rig, int64_t iteration, std::optional<int64_t> base = std::nullopt) {
    const fs::path folder = path(iteration);
    fs::create_directories(folder);
    StateIndex index;
    index.file = "rank_0.state";
    StateFileWriter file(folder / index.file);
    const StateWriter::Sink sink = [&](const HostBytes& piece) { file.write(piece.span()); };
    rig.table->save_state(StateWriter(0, rig.runtime.compute_stream(), index, sink, {iteration, base}));
    file.commit(index);
    const StateArray* vectors = index.find("vectors");
    const int64_t rows = vectors->from_base ? vectors->from_base->rows : 0;
    Manifest manifest{Json(Json::Object{}), Json(Json::Object{}), {index}, {}};
    if (rows > 0) manifest.base = {.name = path(*base).filename(), .crc = read_manifest(path(*base)).files_crc()};
    write_manifest(folder, manifest);
    return rows;
  }
  void load(TableRig& rig, int64_t iteration) {
    const Manifest manifest = read_manifest(path(iteration));
    verify_files(path(iteration), manifest);
    rig.table->load_state(StateReader(path(iteration), manifest, true, 0, rig.runtime.compute_stream()));
  }
  /// Loads a checkpoint into an empty table, and returns the rows.
  std::string rows_in(int64_t iteration, const TableSpec& of = spec()) {
    TableRig rig(GetParam(), of);
    load(rig, iteration);
    return rig.bytes();
  }

  TemporaryFolder folder_;
};
HCTR_ON_EACH_DEVICE(SavedTable);

TEST_P(SavedTable, HasInAnIncrementWhatStepsHaveChanged) {
  TableRig rig(GetParam(), spec());
  train(rig, 3, 1);
  EXPECT_EQ(save(rig, 1), 0);
  const int64_t rows = rig.table->rows();
  train(rig, 1, 2, 200);
  EXPECT_EQ(save(rig, 2, 1), rows);
  EXPECT_GT(rig.table->rows(), rows);
  EXPECT_TRUE(rows_in(2) == rig.bytes());
  EXPECT_FALSE(rows_in(1) == rig.bytes());
}

/// Imported rows were not changed by a batch, so they are not marked. The checkpoint must be full.
TEST_P(SavedTable, OfImportedRowsIsWhole) {
  TableRig rig(GetParam(), spec());
  train(rig, 3, 1);
  save(rig, 1);
  std::vector<int64_t> keys;
  std::vector<int32_t> slots;
  std::vector<float> vectors;
  rig.table->export_rows(false, [&](const RowBlock& block) {
    keys.insert(keys.end(), block.keys.begin(), block.keys.end());
    slots.insert(slots.end(), block.slots.begin(), block.slots.end());
    for (const float x : block.vectors) vectors.push_back(x + 1);
  });
  rig.table->import_rows({.keys = keys, .slots = slots, .vectors = vectors, .states = {}, .last_steps = {}});
  EXPECT_EQ(save(rig, 2, 1), 0);
  EXPECT_TRUE(rows_in(2) == rig.bytes());
  EXPECT_FALSE(rows_in(1) == rows_in(2));
}

/// The table is loaded from a full checkpoint, or from an increment on the full checkpoint. In both cases, its next
/// increment must refer to all rows of the full checkpoint.
TEST_P(SavedTable, GoesOnWithTheBaseThatItHad) {
  for (const int64_t from : {1, 2}) {
    TableRig rig(GetParam(), spec());
    train(rig, 3, 1);
    save(rig, 1);
    const int64_t rows = rig.table->rows();
    train(rig, 1, 2, 30);
    save(rig, 2, 1);
    TableRig next(GetParam(), spec());
    load(next, from);
    train(next, 1, 3, 10);
    EXPECT_EQ(save(next, 3, 1), rows);
    EXPECT_TRUE(rows_in(3) == next.bytes());
    // A loaded table cannot refer to a base that it was not loaded from, so all rows are saved.
    save(next, 4);
    TableRig other(GetParam(), spec());
    load(other, from);
    EXPECT_EQ(save(other, 5, 4), 0);
    EXPECT_TRUE(rows_in(5) == other.bytes());
  }
}

/// An increment contains rows that have not changed since the base, but have another row number.
TEST_P(SavedTable, HasInAnIncrementTheRowsThatHaveMoved) {
  TableSpec expiring = spec();
  expiring.policy.expire_after = 2;
  const auto step = [&](TableRig& rig, int64_t first, int64_t keys) {
    Bags bags = empty_bags(expiring, expiring.samples);
    for (int64_t k = 0; k < keys; ++k) bags[0][static_cast<size_t>(k)] = {first + k};
    rig.step(bags, std::vector<float>(static_cast<size_t>(expiring.samples * expiring.slots * expiring.dim), 0.5f));
  };
  TableRig rig(GetParam(), expiring);
  step(rig, 0, 8);
  step(rig, 8, 8);
  save(rig, 1);
  step(rig, 0, 1);
  step(rig, 0, 1);  // keys 1 to 7 have expired before this step
  ASSERT_EQ(rig.table->rows(), 9);
  EXPECT_EQ(save(rig, 2, 1), 9);
  EXPECT_TRUE(rows_in(2, expiring) == rig.bytes());
  TableRig next(GetParam(), expiring);
  load(next, 2);
  EXPECT_EQ(save(next, 3, 1), 9);
  EXPECT_TRUE(rows_in(3, expiring) == rig.bytes()) << "of a table that goes on";
  step(rig, 30, 10);  // keys 8 to 15 expire, and new keys get rows
  EXPECT_EQ(save(rig, 4, 1), 1);
  EXPECT_TRUE(rows_in(4, expiring) == rig.bytes());
}

/// Another writer may sign a manifest with other array widths, or with fewer rows than the table.
TEST_P(SavedTable, OfOtherWidthsThanItsVectorsIsRefused) {
  TableRig rig(GetParam(), spec());
  train(rig, 3, 1);
  save(rig, 1);
  const Manifest good = read_manifest(path(1));
  const int64_t rows = good.files[0].find("vectors")->shape[0];
  const auto why = [&](const char* array, const std::vector<int64_t>& shape, int64_t first, int64_t last) {
    Manifest manifest = good;
    for (StateArray& each : manifest.files[0].arrays)
      if (each.name == array) each.shape = shape;
    Json values(Json::Object{});
    for (const auto& [name, value] : *good.files[0].values.object())
      values.set(name, name == "first_row" ? Json(first) : name == "rows" ? Json(last) : value);
    manifest.files[0].values = values;
    SavedRows saved(rig.table->spec(), [](const RowBlock&) {});
    return message_of(Kind::data,
                      [&] { saved.read(StateReader(path(1), manifest, false, 0, rig.runtime.compute_stream())); });
  };
  const int64_t dim = spec().dim;
  EXPECT_EQ(why("state0", {rows, dim - 1}, 1, rows),
            cat("a checkpoint has rows of ", dim - 1, " elements in 'state0', but this run has ", dim));
  EXPECT_NE(why("vectors", {rows, 1}, 1, rows).find("of 1 elements in 'vectors'"), std::string::npos);
  EXPECT_NE(why("keys", {rows, 0}, 1, rows).find("of 0 elements in 'keys'"), std::string::npos);
  EXPECT_NE(why("state0", {rows - 1, dim}, 1, rows).find(cat(rows - 1, " rows in 'state0'")), std::string::npos);
  for (const auto& [first, last] : {std::pair{int64_t{0}, rows},
                                    {int64_t{-9}, rows},
                                    {int64_t{1}, rows + 1},
                                    {rows + 2, rows},
                                    {int64_t{1}, INT64_MAX},
                                    {int64_t{1}, int64_t{-1}}})
    EXPECT_NE(why("", {}, first, last).find(cat("has rows ", first, " to ", last, " of table")), std::string::npos);
}

/// Rejects key ranges that are truncated, that overlap, or that do not match the number of rows.
TEST_P(SavedTable, OfDirectKeysWhoseRangesAreNotThoseOfItsRowsIsRefused) {
  const auto read = [&](const std::vector<int64_t>& spans) {
    TableRig rig(GetParam(), spec());
    train(rig, 3, 1);
    fs::create_directories(path(1));
    StateIndex index;
    index.file = "rank_0.state";
    StateFileWriter file(path(1) / index.file);
    const StateWriter::Sink sink = [&](const HostBytes& piece) { file.write(piece.span()); };
    StateWriter to(0, rig.runtime.compute_stream(), index, sink, {1, {}});
    rig.table->save_state(to);
    to.list("spans", spans);
    file.commit(index);
    const Manifest manifest{Json(Json::Object{}), Json(Json::Object{}), {index}, {}};
    int64_t rows = 0;
    SavedRows saved(rig.table->spec(), [&](const RowBlock& block) { rows += static_cast<int64_t>(block.keys.size()); });
    saved.read(StateReader(path(1), manifest, false, 0, rig.runtime.compute_stream()));
    return rows;
  };
  TableRig rig(GetParam(), spec());
  train(rig, 3, 1);
  const int64_t rows = rig.table->rows();
  EXPECT_EQ(read({7, 2, 0, 1, 100, 0, 2, 0, 200, rows - 2, 2, 3}), rows);
  for (const std::vector<int64_t>& spans : {std::vector<int64_t>{0, rows, 0},
                                            {0, rows - 1, 0, 1},
                                            {0, rows + 1, 0, 1},
                                            {0, rows, 1, 1},
                                            {0, rows, 0, -1},
                                            {0, rows, 0, INT64_MAX},
                                            {INT64_MAX, rows, 0, 1},
                                            {0, 2, 0, 1, 9, rows - 2, 1, 1},
                                            {0, -1, 0, 1, 9, rows, -1, 1}})
    EXPECT_NE(message_of(Kind::data, [&] { read(spans); }).find("rows of direct keys, but its "), std::string::npos);
}

/// Rejects an increment with row numbers that are outside the arrays of its base.
TEST_P(SavedTable, WithChangesOutsideItsBaseIsRefused) {
  TableRig rig(GetParam(), spec());
  train(rig, 1, 1);
  save(rig, 1);
  for (const int32_t row : {-1, 1000000}) {
    const fs::path folder = path(2);
    fs::create_directories(folder);
    StateIndex index;
    index.file = "rank_0.state";
    StateFileWriter file(folder / index.file);
    const StateWriter::Sink sink = [&](const HostBytes& piece) { file.write(piece.span()); };
    StateWriter to(0, rig.runtime.compute_stream(), index, sink, {2, 1});
    to.list("changed_rows", std::vector<int32_t>{row});
    rig.table->save_state(to);
    file.commit(index);
    Manifest manifest{Json(Json::Object{}), Json(Json::Object{}), {index}, {}};
    manifest.base = {.name = path(1).filename(), .crc = read_manifest(path(1)).files_crc()};
    write_manifest(folder, manifest);
    TableRig next(GetParam(), spec());
    EXPECT_NE(message_of(Kind::data, [&] { load(next, 2); }).find(cat("row ", row, " of a checkpoint")),
              std::string::npos);
  }
}

}  // namespace
}  // namespace hctr::test
