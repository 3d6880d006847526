// Sparse model files of every version, and damaged files.
#include "formats/model/sparse_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/base/random.h"
#include "formats/model/sparse_reader.h"
#include "support/message_of.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"
#include "support/test_log.h"
#include "unit/engine/table/table_rig.h"

namespace hctr::test {
namespace {

namespace fs = std::filesystem;

TableSpec spec_of(bool by_slot, int64_t dim = 2) {
  TableSpec spec;
  spec.name = "deep";
  spec.dim = dim;
  spec.slots = 3;
  spec.samples = 4;
  spec.key_capacity = 16;
  spec.identity_by_slot = by_slot;
  spec.optimizer.kind = ops::Optimizer::Kind::sgd;
  return spec;
}

template <class... Values>
std::string packed(const Values&... values) {
  std::string out;
  (out.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return out;
}

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Formats the rows of a table of dim 2 as "key/slot: first, second; ...".
std::string rows_as_text(TableRig& rig) {
  std::string text;
  rig.table->export_rows(false, [&](const RowBlock& block) {
    for (size_t i = 0; i < block.keys.size(); ++i)
      text += cat(block.keys[i], block.slots.empty() ? "" : cat("/", block.slots[i]), ": ", block.vectors[2 * i], ", ",
                  block.vectors[2 * i + 1], "; ");
  });
  return text;
}

std::string loaded(const TableSpec& spec, const fs::path& path, int key_bytes) {
  TableRig rig(kCpu, spec);
  load_sparse(path, *rig.table, key_bytes);
  return rows_as_text(rig);
}

class SparseFileTest : public OnDevice {};
HCTR_ON_EACH_DEVICE(SparseFileTest);

TEST_P(SparseFileTest, SavedAndLoadedAgain) {
  const TemporaryFolder folder;
  for (const bool by_slot : {false, true})
    for (const int key_bytes : {4, 8}) {
      const TableSpec spec = spec_of(by_slot, 5);
      TableRig rig(GetParam(), spec), copy(GetParam(), spec);
      std::mt19937_64 random(1);
      for (int t = 0; t < 20; ++t) rig.step(random_bags(spec, 4, 1, 1000, random), random_floats(4 * 3 * 5, random));
      const fs::path path = folder / "new_folder" / "deep.model";
      save_sparse(path, *rig.table, key_bytes);
      EXPECT_EQ(fs::file_size(path),
                static_cast<size_t>(rig.table->rows()) * static_cast<size_t>(key_bytes + (by_slot ? 8 : 0) + 20));
      load_sparse(path, *copy.table, key_bytes);
      EXPECT_EQ(copy.bytes(), rig.bytes());
      const std::string before = read_file(path);
      save_sparse(path, *copy.table, key_bytes);
      EXPECT_EQ(read_file(path), before) << "equal tables give equal files";
    }
}

TEST(SparseFileLayoutTest, WhatIsWrittenIsKnownByteForByte) {
  const TemporaryFolder folder;
  TableRig rig(kCpu, spec_of(true));
  rig.table->import_rows(
      {std::vector<int64_t>{9, 7}, std::vector<int32_t>{0, 2}, std::vector<float>{1, 2, 3, 4}, {}, {}});
  save_sparse(folder / "a", *rig.table, 4);
  EXPECT_EQ(read_file(folder / "a"),
            packed(uint32_t{9}, uint64_t{0}, 1.0f, 2.0f, uint32_t{7}, uint64_t{2}, 3.0f, 4.0f));
  TableRig shared(kCpu, spec_of(false));
  shared.table->import_rows({std::vector<int64_t>{9, -7}, {}, std::vector<float>{1, 2, 3, 4}, {}, {}});
  save_sparse(folder / "b", *shared.table, 8);
  EXPECT_EQ(read_file(folder / "b"), packed(int64_t{-7}, 3.0f, 4.0f, int64_t{9}, 1.0f, 2.0f));
  EXPECT_EQ(message_of(Kind::data, [&] { save_sparse(folder / "c", *shared.table, 4); }),
            cat("key -7 of table 'deep' does not fit in the 4 bytes of a key in '", (folder / "c").string(),
                "': set \"input_key_type\" to \"I64\""));
  EXPECT_FALSE(fs::exists(folder / "c")) << "half a file";
}

TEST(SparseFileLayoutTest, AFolderOfLaterVersionsIsKnownByteForByte) {
  const TemporaryFolder folder;
  const auto save = [](const fs::path& path, TableRig& rig) {
    FileSet set;
    save_sparse(set, *rig.table, {.path = path, .format = ModelFormat::v3, .key_bytes = 4});
    set.commit();
  };
  TableRig rig(kCpu, spec_of(true)), shared(kCpu, spec_of(false)), none(kCpu, spec_of(true));
  rig.table->import_rows(
      {std::vector<int64_t>{9, 7}, std::vector<int32_t>{0, 2}, std::vector<float>{1, 2, 3, 4}, {}, {}});
  save(folder / "a", rig);
  EXPECT_EQ(read_file(folder / "a" / "key"), packed(int64_t{9}, int64_t{7})) << "8 bytes, whatever the data has";
  EXPECT_EQ(read_file(folder / "a" / "slot_id"), packed(uint64_t{0}, uint64_t{2}));
  EXPECT_EQ(read_file(folder / "a" / "emb_vector"), packed(1.0f, 2.0f, 3.0f, 4.0f));
  EXPECT_EQ(loaded(spec_of(true), folder / "a", 8), rows_as_text(rig));
  shared.table->import_rows({std::vector<int64_t>{9, -7}, {}, std::vector<float>{1, 2, 3, 4}, {}, {}});
  save(folder / "b", shared);
  EXPECT_EQ(read_file(folder / "b" / "key"), packed(int64_t{-7}, int64_t{9}));
  EXPECT_FALSE(fs::exists(folder / "b" / "slot_id"));
  EXPECT_EQ(loaded(spec_of(false), folder / "b", 8), rows_as_text(shared));
  save(folder / "c", none);
  EXPECT_EQ(loaded(spec_of(true), folder / "c", 8), "");
  // There is a file instead of a folder, and a folder instead of a file.
  write_file(folder / "d", "");
  EXPECT_NE(message_of(Kind::io, [&] { save(folder / "d", rig); }).find("is a file, but \"model_format\" \"v3\""),
            std::string::npos);
  EXPECT_NE(message_of(Kind::io, [&] { save_sparse(folder / "a", *rig.table, 8); }).find("is a folder, but"),
            std::string::npos);
}

TEST(SparseFileLayoutTest, ATableWithoutRowsLoadsAgain) {
  const TemporaryFolder folder;
  for (const bool by_slot : {false, true}) {
    TableRig rig(kCpu, spec_of(by_slot)), copy(kCpu, spec_of(by_slot));
    save_sparse(folder / "none", *rig.table, 8);
    EXPECT_EQ(fs::file_size(folder / "none"), 0u);
    load_sparse(folder / "none", *copy.table, 8);
    EXPECT_EQ(copy.table->rows(), 0);
  }
}

TEST(SparseFileLayoutTest, RowsThatAreNotNumbersAreNeitherSavedNorLoaded) {
  const TemporaryFolder folder;
  TableRig rig(kCpu, spec_of(false)), copy(kCpu, spec_of(false));
  rig.table->import_rows(
      {std::vector<int64_t>{9, -7}, {}, std::vector<float>{1, 2, 3, std::numeric_limits<float>::quiet_NaN()}, {}, {}});
  EXPECT_EQ(message_of(Kind::data, [&] { save_sparse(folder / "c", *rig.table, 8); }),
            "the row of key -7 in table 'deep' holds nan: training diverged, and this model is not saved");
  EXPECT_TRUE(fs::is_empty(folder.path()));
  write_file(folder / "d", packed(int64_t{9}, 1.0f, 2.0f, int64_t{-7}, 3.0f, std::numeric_limits<float>::infinity()));
  EXPECT_EQ(message_of(Kind::data, [&] { load_sparse(folder / "d", *copy.table, 8); }),
            cat("sparse model file '", (folder / "d").string(), "': element 1 of row 1, of key -7, is inf"));
}

TEST(SparseFileLayoutTest, FilesOfEveryVersionAreRecognised) {
  const TemporaryFolder folder;
  write(folder / "d64", packed(int64_t{5}, 1.0f, 2.0f));
  write(folder / "d32", packed(uint32_t{4000000000u}, 1.0f, 2.0f));
  EXPECT_EQ(loaded(spec_of(false), folder / "d64", 4), "5: 1, 2; ");
  EXPECT_EQ(loaded(spec_of(false), folder / "d32", 8), "4000000000: 1, 2; ");
  write(folder / "v21", packed(int64_t{5}, int64_t{1}, 1.0f, 2.0f, int64_t{-6}, int64_t{2}, 3.0f, 4.0f));
  write(folder / "v22", packed(uint32_t{5}, uint32_t{1}, 1.0f, 2.0f));
  write(folder / "v221", packed(uint32_t{5}, uint64_t{1}, 1.0f, 2.0f));
  for (const int key_bytes : {4, 8}) {
    EXPECT_EQ(loaded(spec_of(true), folder / "v21", key_bytes), "5/1: 1, 2; -6/2: 3, 4; ");
    EXPECT_EQ(loaded(spec_of(true), folder / "v22", key_bytes), "5/1: 1, 2; ");
    EXPECT_EQ(loaded(spec_of(true), folder / "v221", key_bytes), "5/1: 1, 2; ");
  }
  // 240 bytes could be rows of 20 or 24 bytes. The slot ids decide.
  std::string rows;
  for (uint32_t i = 0; i < 12; ++i) rows += packed(i + 100, uint64_t{i % 3}, 1.0f, 2.0f);
  write(folder / "many", rows);
  EXPECT_EQ(loaded(spec_of(true), folder / "many", 8).substr(0, 13), "100/0: 1, 2; ");
}

TEST(SparseFileLayoutTest, ASizeThatFitsKeysOfBothWidthsIsSaid) {
  const TemporaryFolder folder;
  std::string wide, narrow;  // 48 bytes each: 4 rows of 12 bytes, or 6 rows of 8 bytes
  for (int64_t i = 0; i < 4; ++i) wide += packed(int64_t{100} + i, i % 2 ? 0.5f : -0.5f);
  for (uint32_t i = 0; i < 6; ++i) narrow += packed(100 + i, i % 2 ? 0.5f : -0.5f);
  const auto rows = [&](const std::string& bytes, int key_bytes, const std::string& how) {
    write(folder / "x", bytes);
    TestLog log;
    int64_t keys = 0;
    bool right = true;
    read_sparse(
        folder / "x", {false, 1, 1, key_bytes},
        [&](const SparseRows& some) {
          for (const int64_t key : some.keys) right = right && key == 100 + keys++;
        },
        log.log());
    EXPECT_EQ(log.lines(),
              std::vector<std::string>{cat("note: the 48 bytes of sparse model file '", (folder / "x").string(),
                                           "' fit keys of 4 and of 8 bytes: read as ", how)});
    return right ? keys : -1;
  };
  const std::string judged = ", the more plausible width for these keys; set \"input_key_type\" for the other width",
                    stated = ", as \"input_key_type\" says";
  EXPECT_EQ(rows(wide, 0, "8" + judged), 4);
  EXPECT_EQ(rows(narrow, 0, "4" + judged), 6);
  EXPECT_EQ(rows(wide, 8, "8" + stated), 4);
  EXPECT_EQ(rows(narrow, 4, "4" + stated), 6);
  // Negative keys, whether hashes or small numbers, do not suggest 32-bit keys.
  for (const bool hashes : {true, false}) {
    std::string bytes;
    std::vector<int64_t> keys, found;
    for (int64_t i = 0; i < 33; ++i)  // 528 bytes: 33 rows of 16 bytes, or 44 rows of 12 bytes
      keys.push_back(hashes ? static_cast<int64_t>(mix64(static_cast<uint64_t>(i))) : -1 - i);
    for (const int64_t key : keys) bytes += packed(key, 0.25f, -0.5f);
    write(folder / "x", bytes);
    read_sparse(folder / "x", {false, 2, 1, 0},
                [&](const SparseRows& some) { found.insert(found.end(), some.keys.begin(), some.keys.end()); });
    EXPECT_EQ(found, keys) << hashes;
  }
  // Only one key width fits the size, so no note is logged, whatever the config says.
  for (const int key_bytes : {0, 4, 8}) {
    write(folder / "x", wide + packed(int64_t{104}, 1.0f));
    TestLog log;
    TableRig rig(kCpu, spec_of(false, 1));
    EXPECT_FALSE(load_sparse(*rig.table, {.path = folder / "x", .key_bytes = key_bytes}, log.log()));
    EXPECT_EQ(rig.table->rows(), 5);
    EXPECT_TRUE(log.lines().empty());
  }
  write(folder / "x", packed(int64_t{1} << 32, 1.0f));
  TableRig rig(kCpu, spec_of(false, 1));
  EXPECT_TRUE(load_sparse(*rig.table, {.path = folder / "x", .key_bytes = 0})) << "a key that 4 bytes do not hold";
}

TEST(SparseFileLayoutTest, AFolderOfVersion31) {
  const TemporaryFolder folder;
  write(folder / "m" / "key", packed(int64_t{5}, int64_t{6}));
  write(folder / "m" / "slot_id", packed(uint64_t{2}, uint64_t{0}));
  write(folder / "m" / "emb_vector", packed(1.0f, 2.0f, 3.0f, 4.0f));
  EXPECT_EQ(loaded(spec_of(true), folder / "m", 8), "6/0: 3, 4; 5/2: 1, 2; ");
  write(folder / "m" / "emb_vector", packed(1.0f, 2.0f, 3.0f));
  EXPECT_EQ(message_of(Kind::data, [&] { loaded(spec_of(true), folder / "m", 8); }),
            cat("'", (folder / "m" / "emb_vector").string(), "' has 12 bytes, but the 2 keys need 16"));
}

TEST(SparseFileLayoutTest, AFileOfRowsWithAnotherIdentityIsNamed) {
  const TemporaryFolder folder;
  const auto message = [&](bool by_slot, int64_t dim, const std::string& bytes) {
    write(folder / "x", bytes);
    const std::string text = message_of(Kind::data, [&] { loaded(spec_of(by_slot, dim), folder / "x", 8); });
    const std::string name = (folder / "x").string();
    const size_t at = text.find(name);
    return at == text.npos ? text : cat(text.substr(0, at), "x", text.substr(at + name.size()));
  };
  const std::string of_keys = "its rows seem to be identified by keys alone: \"identity\": \"key\"",
                    of_slots = "its rows seem to be identified by slot and key: \"identity\": \"slot_and_key\"";
  // The file size alone identifies the row layout.
  EXPECT_EQ(
      message(true, 3, packed(uint32_t{5}, 1.0f, 2.0f, 3.0f)),
      "sparse model file 'x' of 16 bytes does not consist of rows with a slot id (28, 24, 20 bytes each); " + of_keys);
  EXPECT_EQ(
      message(false, 3, packed(int64_t{5}, uint64_t{1}, 1.0f, 2.0f, 3.0f)),
      "sparse model file 'x' of 28 bytes does not consist of rows without a slot id (20, 16 bytes each); " + of_slots);
  // The size fits both layouts: 3 rows of 20 bytes are 5 rows of 12 bytes.
  std::string slots, keys;
  for (int64_t i = 0; i < 3; ++i) slots += packed(int64_t{100} + i, i, 1.0f);
  for (int64_t i = 0; i < 5; ++i) keys += packed(int64_t{100} + i, 1.0f);
  EXPECT_EQ(
      message(false, 1, slots),
      "sparse model file 'x' of 60 bytes does not consist of rows without a slot id (12, 8 bytes each); " + of_slots);
  EXPECT_EQ(message(true, 1, keys),
            "sparse model file 'x': with every layout that fits its 60 bytes, some slot ids do not exist in the "
            "config; " +
                of_keys);
  TableRig rig(kCpu, spec_of(false, 1));
  load_sparse(folder / "x", *rig.table, 8);
  EXPECT_EQ(rig.table->rows(), 5);
}

TEST(SparseFileLayoutTest, DamagedFilesAreNamed) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& bytes, bool by_slot) {
    write(folder / "x", bytes);
    std::string text = message_of(Kind::data, [&] { loaded(spec_of(by_slot), folder / "x", 8); });
    const std::string name = (folder / "x").string();
    if (const size_t at = text.find(name); at != text.npos)
      text = cat(text.substr(0, at), "x", text.substr(at + name.size()));
    return text;
  };
  EXPECT_EQ(message(std::string(17, 'a'), false),
            "sparse model file 'x' has 17 bytes, which is not a multiple of a row of 2 elements (16, 12 bytes): the "
            "file is damaged or belongs to a model with another embedding_vec_size");
  EXPECT_EQ(message(packed(int64_t{1}, uint64_t{3}, 1.0f, 1.0f), true),
            "sparse model file 'x': with every layout that fits its 24 bytes, some slot ids do not exist in the "
            "config; its rows seem to be identified by keys alone: \"identity\": \"key\"");
  EXPECT_EQ(message(packed(int64_t{1}, 1.0f, 1.0f, int64_t{1}, 1.0f, 1.0f), false),
            "table 'deep': key 1 occurs twice\n  while loading sparse model file 'x'");
  EXPECT_EQ(message_of(Kind::io, [&] { loaded(spec_of(false), folder / "none", 8); }),
            cat("cannot open sparse model file '", (folder / "none").string(), "': No such file or directory"));
}

}  // namespace
}  // namespace hctr::test
