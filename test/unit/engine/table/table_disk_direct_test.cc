// Tables with direct keys and rows on disk have the same bytes as tables in memory.
#include <gtest/gtest.h>

#include "core/base/files.h"
#include "core/base/platform.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "unit/engine/table/plain_table.h"
#include "unit/formats/model/saved_table.h"

namespace hctr::test {
namespace {

std::string bytes_of(const fs::path& path) { return read_text(path, "a checkpoint"); }

class TableDiskDirectTest : public testing::Test {
 protected:
  /// Memory limits for the 1152 rows of a batch. The table has 4200 rows.
  RowMemoryLimits limits(const TableSpec& spec, int64_t disk = int64_t{1} << 30) const {
    RowMemoryLimits limits{.device = 0,
                           .move_every = 0,
                           .host_setting = "\"host\"",
                           .disk_folder = folder_.path().string(),
                           .disk = int64_t{1} << 30};
    limits.host = least_host(kCpu, spec, limits);
    limits.disk = disk;
    return limits;
  }
  static TableSpec spec(bool by_slot = false) {
    TableSpec spec = small_spec(256, 3, 128, 128 * 3 * 3);
    spec.identity_by_slot = by_slot;
    spec.optimizer.kind = ops::Optimizer::Kind::adagrad;
    spec.optimizer.initial = 0.25f;  // initial states of new rows are not zero
    if (by_slot) spec.slot_bounds = {0.1f, 0.2f, 0.3f};
    spec.direct = direct_keys({1400, 1400, 1400}, by_slot, {}, 0);
    return spec;
  }
  static Bags bags(const TableSpec& spec, std::mt19937_64& random, int64_t vocabulary = 4200) {
    if (!spec.identity_by_slot) return random_bags(spec, spec.samples, 3, vocabulary, random);
    Bags bags = random_bags(spec, spec.samples, 3, vocabulary / 3, random);
    for (size_t s = 0; s < bags.size(); ++s)
      for (auto& bag : bags[s])
        for (int64_t& key : bag) key += static_cast<int64_t>(s) * 1400;
    return bags;
  }
  static void step(const std::vector<TableRig*>& rigs, std::mt19937_64& random, int64_t vocabulary = 4200) {
    const TableSpec& spec = rigs[0]->spec();
    const Bags keys = bags(spec, random, vocabulary), others = bags(spec, random, vocabulary);
    const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
    const std::vector<float> expected = rigs[0]->step(keys, dy), looked_up = rigs[0]->lookup(others);
    for (size_t i = 1; i < rigs.size(); ++i) {
      ASSERT_TRUE(rigs[i]->step(keys, dy) == expected);
      ASSERT_TRUE(rigs[i]->lookup(others) == looked_up) << "rows of keys that were not trained are seen too";
    }
  }
  static void load(TableRig& rig, const fs::path& path) {
    rig.table->load_state(StateReader(path, read_manifest(path), true, 0, rig.runtime.compute_stream()));
  }
  TemporaryFolder folder_;
};

TEST_F(TableDiskDirectTest, EveryTableGivesTheSameBytes) {
  for (const int which : {0, 1, 2, 3, 4}) {
    if (kSanitized && which < 2) continue;  // with sanitizers, one case per code path is enough
    SCOPED_TRACE(which);
    TableSpec spec = this->spec(which % 2 == 1);
    // stochastic rounding depends on the key of the row
    if (which == 2) spec.storage = spec.state_storage = DType::bf16;
    if (which == 3) spec.optimizer.row_wise = true;
    if (which == 4) {
      spec.optimizer.kind = ops::Optimizer::Kind::adam;
      spec.update = UpdateType::lazy_global;
    }
    TableRig plain(kCpu, spec), split(kCpu, spec, 2, 2, true, DType::f32, limits(spec));
    EXPECT_EQ(split.table->rows(), 4200) << "all rows are there from the start";
    EXPECT_TRUE(split.bytes() == plain.bytes());
    std::mt19937_64 random(5);
    for (int t = 0; t < 30; ++t) step({&plain, &split}, random);
    EXPECT_EQ(split.table->rows(), 4200);
    EXPECT_TRUE(split.bytes() == plain.bytes());
    EXPECT_GT(split.table->disk_use().written, 3 * 4200);
    EXPECT_GT(split.table->disk_use().read, 1000);
    EXPECT_LE(split.runtime.row_memory().host_bytes(), split.runtime.row_memory().limits().host);
    if (HasFailure()) return;
  }
}

TEST_F(TableDiskDirectTest, RowsThatFitHaveNoIndex) {
  const TableSpec spec = this->spec();
  RowMemoryLimits roomy = limits(spec);
  roomy.host *= 8;
  TableRig rig(kCpu, spec, 1, 2, true, DType::f32, roomy);
  EXPECT_EQ(rig.table->index_places(), 0);
  EXPECT_EQ(rig.table->disk_use().written, 0);
}

/// Saves full checkpoints and increments of a table in memory and of a table with a disk. Loads each into a table in
/// memory and into a table with a disk.
TEST_F(TableDiskDirectTest, CheckpointsAreThoseOfATableInMemory) {
  for (const bool by_slot : {false, true}) {
    if (kSanitized && !by_slot) continue;  // with sanitizers, one case per code path is enough
    const TemporaryFolder of_plain, of_split;
    TableSpec spec = this->spec(by_slot);
    spec.marks_changes = true;
    TableRig plain(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
    std::mt19937_64 random(5);
    for (int t = 0; t < 8; ++t) step({&plain, &split}, random);
    const auto save = [&](int64_t iteration, std::optional<int64_t> base) {
      save_table(plain, of_plain.path(), iteration, base);
      save_table(split, of_split.path(), iteration, base);
      const std::string name = cat("iteration_00000", iteration);
      EXPECT_TRUE(bytes_of(of_plain / name / "rank_0.state") == bytes_of(of_split / name / "rank_0.state"))
          << "checkpoint " << iteration;
    };
    save(1, {});
    step({&plain, &split}, random, 1500);
    save(2, 1);
    for (int t = 0; t < 3; ++t) step({&plain, &split}, random, 2000);
    save(3, 1);
    TableRig in_memory(kCpu, spec), on_disk(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
    load(in_memory, of_split / "iteration_000003");
    load(on_disk, of_plain / "iteration_000003");
    for (TableRig* rig : {&in_memory, &on_disk}) rig->continue_at(plain);
    EXPECT_TRUE(on_disk.bytes() == plain.bytes());
    for (int t = 0; t < 6; ++t) step({&plain, &split, &in_memory, &on_disk}, random, 3000);
    for (TableRig* rig : {&split, &in_memory, &on_disk}) EXPECT_TRUE(rig->bytes() == plain.bytes());
    // Both the saved table and the loaded table continue training and save an increment. The increments must be equal.
    save_table(plain, of_plain.path(), 4, 1);
    save_table(on_disk, of_split.path(), 4, 1);
    EXPECT_TRUE(bytes_of(of_plain / "iteration_000004" / "rank_0.state") ==
                bytes_of(of_split / "iteration_000004" / "rank_0.state"));
  }
}

TEST_F(TableDiskDirectTest, ModelsAndDeltasHoldTheSameRows) {
  TableSpec spec = this->spec();
  spec.marks_changes = true;
  TableRig plain(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
  std::mt19937_64 random(5);
  for (int t = 0; t < 6; ++t) step({&plain, &split}, random);
  const auto changed = [](TableRig& rig) {
    std::vector<float> all;
    rig.table->export_rows({false, true}, [&](const RowBlock& block) {
      for (const int64_t key : block.keys) all.push_back(static_cast<float>(key));
      all.insert(all.end(), block.vectors.begin(), block.vectors.end());
    });
    return all;
  };
  for (TableRig* rig : {&plain, &split}) rig->table->note_model();
  for (int t = 0; t < 3; ++t) step({&plain, &split}, random, 900);
  EXPECT_TRUE(changed(split) == changed(plain));
  EXPECT_LT(changed(split).size(), 950u * 257);
  TableRig again(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
  plain.table->export_rows(true, [&](const RowBlock& block) { again.table->import_rows(block); });
  EXPECT_TRUE(again.bytes() == plain.bytes());
}

TEST_F(TableDiskDirectTest, AKeyOutsideItsRangeIsTheErrorOfATableInMemory) {
  for (const bool by_slot : {false, true}) {
    const TableSpec spec = this->spec(by_slot);
    for (const bool evaluation : {false, true}) {
      std::mt19937_64 random(5);
      TableRig plain(kCpu, spec), split(kCpu, spec, 1, 2, true, DType::f32, limits(spec));
      Bags keys = bags(spec, random);
      keys[1][7] = {by_slot ? 77 : 4200};
      const std::vector<float> dy = random_floats(spec.samples * spec.columns() * spec.dim, random);
      const auto message = [&](TableRig& rig) {
        return message_of(Kind::data, [&] {
          if (evaluation)
            rig.lookup(keys);
          else
            rig.step(keys, dy);
          rig.table->check_keys();
        });
      };
      const std::string expected = message(plain);
      EXPECT_NE(expected.find(by_slot ? "key 77 of slot 1" : "key 4200 of slot 1"), std::string::npos) << expected;
      EXPECT_EQ(message(split), expected);
      EXPECT_EQ(split.table->rows(), 4200);
    }
  }
}

TEST_F(TableDiskDirectTest, ADiskThatIsTooSmallSaysTheLeastAtTheStart) {
  const TableSpec spec = this->spec();
  const std::string message =
      message_of(Kind::io, [&] { TableRig rig(kCpu, spec, 1, 2, true, DType::f32, limits(spec, 4'000'000)); });
  const size_t at = message.find("must be at least ");
  ASSERT_NE(at, std::string::npos) << message;
  TableRig plain(kCpu, spec),
      enough(kCpu, spec, 1, 2, true, DType::f32, limits(spec, std::stoll(message.substr(at + 17))));
  std::mt19937_64 random(5);
  for (int t = 0; t < 5; ++t) step({&plain, &enough}, random);
}

TEST_F(TableDiskDirectTest, UpdatesOfAllRowsNeedThemInMemory) {
  TableSpec spec = this->spec();
  const RowMemoryLimits memory = limits(spec);
  spec.optimizer.kind = ops::Optimizer::Kind::adam;
  spec.update = UpdateType::global;
  EXPECT_NE(message_of(Kind::device, [&] { TableRig rig(kCpu, spec, 1, 2, true, DType::f32, memory); })
                .find("\"host\" must be at least"),
            std::string::npos);
}

}  // namespace
}  // namespace hctr::test
