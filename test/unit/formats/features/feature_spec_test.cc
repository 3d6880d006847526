#include "formats/features/feature_spec.h"

#include <gtest/gtest.h>

#include "prepare/preprocess/feature_rows.h"
#include "prepare/preprocess/feature_transcode.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

/// A specification with five features. The training rows are in two chunks: the first chunk has two files, the second
/// chunk has another column order.
const char* const kSpec = R"(feature_spec:
  user_gender:
    dtype: torch.int8
    cardinality: 3
  user_age:
    dtype: int8
  user_id:
    dtype: torch.int32
    cardinality: 2655
  item_id:
    dtype: np.int32
    cardinality: 856
  label:
    dtype: torch.float32
source_spec:
  train:
    - type: csv
      features: [user_gender, user_age]
      files: [train_0_0.csv, train_0_1.csv]
    - type: csv
      features: [user_id, item_id, label]
      files: [train_1.csv]
  test:
    - type: csv
      features: [user_id, item_id, label, user_gender, user_age]
      files: [test.csv]
channel_spec:
  numeric_inputs: [user_age]
  categorical_user_inputs: [user_gender, user_id]
  categorical_item_inputs: [item_id]
  label: [label]
metadata:
  made: by hand
)";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kSpec;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(FeatureSpec, ReadsAllSectionsAndWritesWhatReadsTheSame) {
  const FeatureSpec spec = parse_feature_spec(kSpec, "spec.yaml", "data");
  ASSERT_EQ(spec.features.size(), 5u);
  EXPECT_EQ(spec.features[2].type, FeatureType::i32);
  EXPECT_EQ(spec.features[2].cardinality, 2655);
  EXPECT_EQ(spec.source("train").chunks[0].files[1], fs::path("data/train_0_1.csv"));
  EXPECT_EQ(spec.channel("categorical_user_inputs"), (std::vector<size_t>{0, 2}));
  EXPECT_EQ(spec.channel("nothing"), std::vector<size_t>());
  const std::string text = to_yaml(spec);
  EXPECT_EQ(to_yaml(parse_feature_spec(text, "again", "data")), text);
  EXPECT_SAYS(text, "made: by hand");
}

TEST(FeatureSpec, EveryProblemIsNamedWithPlaceAndLine) {
  const auto message = [](const std::string& text) {
    return message_of([&] { parse_feature_spec(text, "spec.yaml", ""); });
  };
  EXPECT_SAYS(message(changed("dtype: int8", "dtype: int9")),
              "config: spec.yaml: 1 problem\n  /feature_spec/user_age/dtype (line 6): unknown type \"int9\"");
  EXPECT_SAYS(message(changed("cardinality: 3", "cardinality: 300")),
              "ids up to 299 do not fit the type int8; int16 would do");
  EXPECT_SAYS(message(changed("numeric_inputs: [user_age]", "numeric_inputs: [user_agee]")),
              "unknown feature \"user_agee\" in feature_spec; did you mean \"user_age\"?");
  EXPECT_SAYS(message(changed("[user_id, item_id, label]", "[user_id, item_id, label, user_age]")),
              "\"user_age\" is in an earlier chunk of this mapping");
  EXPECT_SAYS(message(changed("[user_id, item_id, label]", "[user_id, label]")),
              "no chunk holds \"item_id\", which the channel \"categorical_item_inputs\" needs");
  EXPECT_SAYS(message(changed("type: csv", "type: parquet")),
              "(line 17): expected csv or split_binary, found \"parquet\"");
  EXPECT_SAYS(message(changed("source_spec", "sources")), "/source_spec");
  EXPECT_SAYS(message(changed("source_spec", "source_spek")), "unknown entry; did you mean \"source_spec\"?");
  EXPECT_SAYS(message(changed("files: [train_1.csv]", "file: [train_1.csv]")), "did you mean \"files\"?");
  EXPECT_SAYS(message(changed("test:\n", "train:\n")), "appears twice");
  EXPECT_SAYS(message("a: [b"), "config: 'spec.yaml' line 1");
  EXPECT_SAYS(message("[]"), "expected the sections");
}

struct FeatureData : ::testing::Test {
  void SetUp() override {
    write_text(folder / "spec.yaml", kSpec);
    write_text(folder / "train_0_0.csv", "0,20\r\n1,30\r\n");
    write_text(folder / "train_0_1.csv", "2,40\n1,-5\n");
    write_text(folder / "train_1.csv", "10,20,0.5\n11,21,1\n12,22,0\n2654,855,0.25");
    write_text(folder / "test.csv", "1,2,1,0,100\n");
  }
  FeatureBlock all_rows(const FeatureSpec& spec, const std::string& mapping, const std::vector<size_t>& wanted) {
    FeatureRows source(spec, mapping, wanted);
    FeatureBlock all;
    all.columns.resize(wanted.size());
    for (FeatureBlock block; source.next(block); all.rows += block.rows)
      for (size_t i = 0; i < wanted.size(); ++i) {
        FeatureValues &to = all.columns[i], &from = block.columns[i];
        EXPECT_EQ(static_cast<int64_t>(from.wholes.size() + from.reals.size()), block.rows);
        to.wholes.insert(to.wholes.end(), from.wholes.begin(), from.wholes.end());
        to.reals.insert(to.reals.end(), from.reals.begin(), from.reals.end());
      }
    return all;
  }
  std::string problem() {
    return message_of([&] { all_rows(read_feature_spec(folder / "spec.yaml"), "train", {0, 1, 2, 3, 4}); });
  }
  Folder folder;
};

TEST_F(FeatureData, RowsAreGatheredFromAllChunksAndFiles) {
  const FeatureSpec spec = read_feature_spec(folder / "spec.yaml");
  const FeatureBlock all = all_rows(spec, "train", {4, 3, 1});
  EXPECT_EQ(all.rows, 4);
  EXPECT_EQ(all.columns[0].reals, (std::vector<double>{0.5, 1, 0, 0.25}));
  EXPECT_EQ(all.columns[1].wholes, (std::vector<int64_t>{20, 21, 22, 855}));
  EXPECT_EQ(all.columns[2].wholes, (std::vector<int64_t>{20, 30, 40, -5}));
}

TEST_F(FeatureData, TranscodedToBinaryTheRowsAreTheSame) {
  const FeatureSpec spec = read_feature_spec(folder / "spec.yaml");
  transcode_features(spec, {.folder = folder / "binary"});
  const FeatureSpec binary = read_feature_spec(folder / "binary/feature_spec.yaml");
  EXPECT_EQ(fs::file_size(folder / "binary/train/user_id.bin"), 16u);
  for (const char* mapping : {"train", "test"}) {
    const FeatureBlock a = all_rows(spec, mapping, {0, 1, 2, 3, 4}), b = all_rows(binary, mapping, {0, 1, 2, 3, 4});
    EXPECT_EQ(a.rows, mapping == std::string("train") ? 4 : 1);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(a.columns[i].wholes, b.columns[i].wholes);
      EXPECT_EQ(a.columns[i].reals, b.columns[i].reals);
    }
  }
  EXPECT_SAYS(message_of([&] { transcode_features(spec, {.folder = folder / "binary"}); }), "already exists; --force");
}

TEST_F(FeatureData, NumbersThatTheWrittenTypeDoesNotHoldAreNotTranscoded) {
  std::string text = changed("dtype: int8", "dtype: float32");
  text.replace(text.find("numeric_inputs"), 14, "numerical");
  write_text(folder / "spec.yaml", text);
  write_text(folder / "train_0_1.csv", "2,40\n1,65520\n");
  const FeatureSpec spec = read_feature_spec(folder / "spec.yaml");
  transcode_features(spec, {.folder = folder / "binary"});
  EXPECT_SAYS(message_of([&] { transcode_features(spec, {.folder = folder / "half", .half_numerical = true}); }),
              "row 4: feature user_age: 65520 is not a finite float16; remove --half");
}

TEST_F(FeatureData, ProgressKnowsHowManyBytesThereAreAndEndsThere) {
  transcode_features(read_feature_spec(folder / "spec.yaml"), {.folder = folder / "binary"});
  for (const char* file : {"spec.yaml", "binary/feature_spec.yaml"}) {
    const FeatureSpec spec = read_feature_spec(folder / file);
    int64_t bytes = 0;
    for (const FeatureChunk& chunk : spec.source("train").chunks)
      for (const fs::path& path : chunk.files) bytes += static_cast<int64_t>(fs::file_size(path));
    FeatureRows rows(spec, "train", {0, 1, 2, 3, 4});
    EXPECT_EQ(rows.bytes(), bytes);
    EXPECT_EQ(rows.bytes_done(), 0);
    EXPECT_EQ(rows.for_each_block({}, "reading", [](const FeatureBlock&) {}), 4);
    EXPECT_EQ(rows.bytes_done(), bytes) << file;
  }
}

TEST_F(FeatureData, WhatIsWrongInTheFilesIsNamedWithFileAndLine) {
  write_text(folder / "train_0_1.csv", "2,40\n1,x\n");
  EXPECT_SAYS(problem(), "train_0_1.csv' line 2: feature user_age: expected a whole number (int8), found 'x'");
  write_text(folder / "train_0_1.csv", "2,40\n3,4\n");
  EXPECT_SAYS(problem(), "line 2: feature user_gender: 3 is not an id below its cardinality of 3");
  write_text(folder / "train_0_1.csv", "2,128\n1,4\n");
  EXPECT_SAYS(problem(), "line 1: feature user_age: 128 does not fit its type int8");
  write_text(folder / "train_0_1.csv", "2\n1,4\n");
  EXPECT_SAYS(problem(), "expected 2 values separated by commas, one for each feature of the chunk, found 1");
  write_text(folder / "train_0_1.csv", "2,40\n");
  EXPECT_SAYS(problem(),
              "differ in length: the chunk of '" + (folder / "train_0_0.csv").string() + "' ends after 3 rows");
  fs::remove(folder / "train_1.csv");
  EXPECT_SAYS(problem(), "train_1.csv': No such file");
}

TEST_F(FeatureData, BinaryFilesThatAreCutOffOrHoldIdsTooLargeAreNamed) {
  transcode_features(read_feature_spec(folder / "spec.yaml"), {.folder = folder / "b"});
  const FeatureSpec binary = read_feature_spec(folder / "b/feature_spec.yaml");
  put_bytes(folder / "b/train/user_gender.bin", {std::byte{0}, std::byte{1}, std::byte{7}, std::byte{1}});
  EXPECT_SAYS(message_of([&] { all_rows(binary, "train", {0}); }),
              "user_gender.bin' row 3: feature user_gender: 7 is not an id below");
  cut_bytes(folder / "b/train/user_id.bin", 1);
  EXPECT_SAYS(message_of([&] { all_rows(binary, "train", {2}); }),
              "has 15 bytes, which is not a whole number of rows of 4 bytes");
  cut_bytes(folder / "b/train/user_id.bin", 3);
  EXPECT_SAYS(message_of([&] { all_rows(binary, "train", {2, 3}); }), "differ in length");
}

TEST(FeatureTypes, HalvesAndAllWholeTypesSurviveTheWay) {
  const Folder folder;
  std::string yaml = "feature_spec:\n", names;
  const char* types[] = {"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float16", "float64"};
  for (const char* type : types) {
    yaml += cat("  ", type, "_: {dtype: ", type, "}\n");
    names += cat(names.empty() ? "" : ", ", type, "_");
  }
  yaml += cat("source_spec:\n  train:\n    - {type: csv, features: [", names,
              "], files: [a.csv]}\nchannel_spec:\n  all: [", names, "]\n");
  write_text(folder / "a.csv",
             "True,-128,255,-32768,65535,-2147483648,4294967295,-9007199254740993,-0.333251953125,0.1\n");
  const FeatureSpec spec = parse_feature_spec(yaml, "types", folder.path());
  transcode_features(spec, {.folder = folder / "b"});
  const FeatureSpec binary = read_feature_spec(folder / "b/feature_spec.yaml");
  FeatureBlock block;
  FeatureRows(binary, "train", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).next(block);
  const int64_t expected[] = {1, -128, 255, -32768, 65535, -2147483648LL, 4294967295LL, -9007199254740993LL};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(block.columns[i].wholes, std::vector<int64_t>{expected[i]}) << types[i];
  EXPECT_EQ(block.columns[8].reals, std::vector<double>{-0.333251953125});
  EXPECT_EQ(block.columns[9].reals, std::vector<double>{0.1});
}

}  // namespace
}  // namespace hctr::data_test
