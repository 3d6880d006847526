// Replicated rows in checkpoints.
#include "engine/exchange/replicated_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/comm/self_comm.h"
#include "engine/spec/derived_specs.h"
#include "formats/checkpoint/state_reader.h"
#include "formats/checkpoint/state_writer.h"
#include "support/devices.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"
#include "unit/engine/table/plain_table.h"

namespace hctr::test {
namespace {

using Keys = ReplicatedRows::Keys;

/// A checkpoint with three rows: keys 3 and 9 of slot 0, and key 3 of slot 1.
class SavedReplicatedRows : public ::testing::Test {
 protected:
  static TableSpec spec() {
    TableSpec spec = small_spec();
    spec.identity_by_slot = true;
    return frequent_rows_spec(spec, 3);
  }
  /// Saves lists of `assigned` keys and `seen` counts, which may be inconsistent, and loads the checkpoint.
  void load(const Keys& assigned, const std::vector<int32_t>& seen, ReplicatedRows& into) {
    ReplicatedRows rows(runtime_, comm_, spec(), 2);
    rows.assign_rows(keys_.keys, keys_.slots, true);
    StateIndex index;
    index.file = "rank_0.state";
    StateFileWriter file(folder_ / index.file);
    const StateWriter::Sink sink = [&](const HostBytes& piece) { file.write(piece.span()); };
    StateWriter to(0, runtime_.compute_stream(), index, sink, {1, {}});
    rows.table().save_state(to);
    to.list("assigned_keys", assigned.keys);
    to.list("assigned_slots", assigned.slots);
    to.list("seen", seen);
    file.commit(index);
    const Manifest manifest{Json(Json::Object{}), Json(Json::Object{}), {index}, {}};
    into.load_state(StateReader(folder_.path(), manifest, true, 0, runtime_.compute_stream()));
  }
  std::string why(const Keys& assigned, const std::vector<int32_t>& seen) {
    ReplicatedRows rows(runtime_, comm_, spec(), 2);
    return message_of(Kind::data, [&] { load(assigned, seen, rows); });
  }
  static void expect_in(const std::string& part, const std::string& text) {
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << text;
  }

  const Keys keys_{{3, 9, 3}, {0, 0, 1}};
  Runtime runtime_{kCpu, {.threads = 1}};
  SelfComm comm_;
  TemporaryFolder folder_;
};

TEST_F(SavedReplicatedRows, AreFoundByTheirKeys) {
  ReplicatedRows rows(runtime_, comm_, spec(), 2);
  load(keys_, {0, 1, 0, 1}, rows);
  EXPECT_TRUE(rows.has(9, 0));
  EXPECT_FALSE(rows.has(9, 1));
  EXPECT_EQ(rows.rows_seen(), 2);
}

TEST_F(SavedReplicatedRows, OfListsThatDoNotFitEachOtherAreRefused) {
  expect_in("3 replicated rows, but slots for only 2 of them", why({{3, 9, 3}, {0, 0}}, {0, 1, 1, 1}));
  expect_in("3 replicated rows, but slots for only 4 of them", why({{3, 9, 3}, {0, 0, 1, 1}}, {0, 1, 1, 1}));
  expect_in("3 replicated rows, but slots for only 0 of them", why({{3, 9, 3}, {}}, {0, 1, 1, 1}));
  expect_in("3 replicated rows, but the field of occurrences has 3 entries", why(keys_, {0, 1, 1}));
  expect_in("3 replicated rows, but the field of occurrences has 0 entries", why(keys_, {}));
  expect_in("4 replicated rows, but this run has memory for only 3",
            why({{3, 9, 3, 4}, {0, 0, 1, 1}}, {0, 1, 1, 1, 1}));
  expect_in("but key 3 at place 1 is out of order", why({{9, 3, 3}, {0, 0, 1}}, {0, 1, 1, 1}));
  expect_in("but key 3 at place 1 is out of order", why({{3, 3, 3}, {0, 0, 1}}, {0, 1, 1, 1}));
}

TEST_F(SavedReplicatedRows, OfOtherKeysThanTheTableHasAreRefused) {
  expect_in("has 3 replicated rows, which differ from the rows of its 3 keys",
            why({{3, 8, 3}, {0, 0, 1}}, {0, 1, 1, 1}));
  expect_in("has 3 replicated rows, which differ from the rows of its 3 keys",
            why({{3, 9, 3}, {0, 1, 2}}, {0, 1, 1, 1}));
  expect_in("has 3 replicated rows, which differ from the rows of its 2 keys", why({{3, 9}, {0, 0}}, {0, 1, 1}));
}

TEST_F(SavedReplicatedRows, OfAnotherFileOfFrequentKeysAreRefused) {
  ReplicatedRows rows(runtime_, comm_, spec(), 2);
  rows.assign_rows({3, 10}, {0, 0}, false);
  expect_in("the file of hot keys has changed", message_of(Kind::data, [&] { load(keys_, {0, 1, 1, 1}, rows); }));
}

}  // namespace
}  // namespace hctr::test
