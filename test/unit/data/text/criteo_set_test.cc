// Criteo's lines read directly are, number for number, what criteo2hugectr writes.
#include "data/text/criteo_set.h"

#include <gtest/gtest.h>

#include "data/formats/data_schema.h"
#include "prepare/preprocess/criteo_convert.h"
#include "unit/data/packed_files.h"
#include "unit/data/reader_rig.h"

namespace hctr::data_test {
namespace {

/// A line with fields of every kind: empty, negative, huge, short and upper-case digits.
std::string line_of(uint64_t i) {
  uint64_t draw = mix64(i);
  std::string line = i % 4 == 0 ? "1" : "0";
  for (int k = 0; k < 13; ++k) {
    draw = mix64(draw);
    line += "\t";
    if (draw % 5 != 0)
      line += std::to_string(static_cast<int64_t>(draw >> 8) % (draw % 3 == 0 ? 1000000000000 : 100) - 3);
  }
  for (int k = 0; k < 26; ++k) {
    draw = mix64(draw);
    char hex[16] = "";
    if (draw % 7 != 0)
      std::snprintf(hex, sizeof hex, draw % 5 == 0 ? "%X" : "%08x", static_cast<unsigned>(draw >> 20) % 100000);
    line += cat("\t", hex);
  }
  return line + (i % 3 == 0 ? "\r\n" : "\n");
}

std::string lines_of(uint64_t count) {
  std::string text;
  for (uint64_t i = 0; i < count; ++i) text += line_of(i);
  return text;
}

DataSection section_from(const Json& json) {
  Problems problems;
  DataSection section = data_schema().parse(json, "", problems, {"type"});
  problems.throw_if_any("section");
  return section;
}

TEST(CriteoSet, DeliversTheBatchesOfTheConvertedSet) {
  const Folder folder;
  const std::string text = lines_of(5000);
  write_text(folder / "in.tsv", text);
  write_gzip(folder / "in.tsv.gz", text);
  write_zstd(folder / "in.tsv.zst", text);
  for (const Wide wide : {Wide::none, Wide::all, Wide::cross})
    for (const Integers integers : {Integers::dense, Integers::buckets, Integers::both})
      for (const int64_t buckets : {0, 1000})
        for (const int key_bytes : {4, 8}) {
          CriteoOptions options;
          options.inputs = {(folder / "in.tsv").string()};
          options.folder = folder / "out";
          options.force = true;
          options.style = {.wide = wide, .integers = integers, .buckets = buckets, .key_bytes = key_bytes};
          convert_criteo(options, Log::silent());
          const DataSection norm = section_from(criteo_data_section(options));
          DataSection direct = norm;
          direct.format = kCriteoFormat;
          direct.options.edit<CriteoTextOptions>() = {
              .wide = wide, .integers = integers, .buckets = buckets, .key_bits = 8 * key_bytes};
          Rig want(norm, norm.source, {.batch = 900, .workers = 1, .repeat = false});
          const auto batches = want.all();
          ASSERT_EQ(batches.size(), 6u);
          for (const char* file : {"in.tsv", "in.tsv.gz", "in.tsv.zst"}) {
            Rig rig(direct, folder / file, {.batch = 900, .workers = 3, .repeat = false});
            for (const ReadBatch& batch : batches) expect_equal(*rig.next(), batch);
            EXPECT_FALSE(rig.next());
          }
        }
}

TEST(CriteoSet, RulesOfTheSectionAndMessages) {
  const Folder folder;
  const auto section = [&](const std::string& criteo, int dense, int slots, int nnz = 1) {
    return section_from(Json::parse(
        cat(R"({"format": "Criteo", "source": ")", (folder / "a").string(), R"(", "label": {"top": "l", "label_dim": 1},
      "dense": {"top": "d", "dense_dim": )",
            dense, R"(}, "sparse": [{"top": "x", "slot_num": )", slots, R"(, "nnz_per_slot": )", nnz, "}]", criteo,
            "}"),
        "x"));
  };
  EXPECT_SAYS(message_of([&] { section("", 0, 26); }), "Criteo data with these options has 13 dense values, not 0");
  EXPECT_SAYS(message_of([&] { section("", 13, 27); }),
              "/sparse: has 27 slots in all; Criteo data with these options has 26");
  EXPECT_SAYS(message_of([&] { section(R"(, "criteo": {"wide": "all"})", 13, 27); }),
              "its first slot is the wide one, with 39 keys; the limits allow fewer");
  EXPECT_SAYS(message_of([&] { section(R"(, "criteo": {"buckets": 2})", 13, 26); }), "needs at least 3 keys");
  EXPECT_SAYS(message_of([&] { section(R"(, "criteo": {"key_bits": 40})", 13, 26); }),
              "/criteo/key_bits: expected 32 or 64, found 40");
  const std::string good = lines_of(3);
  write_text(folder / "a", good + "1\t2\n");
  EXPECT_SAYS(message_of([&] { expect_reads(section("", 13, 26), folder / "a", {}); }),
              cat("a' line 4, at byte ", good.size(), ": expected 40 values, found 2"));
  write_text(folder / "a", good + "1" + std::string(38, '\t') + "\txyz\n");
  EXPECT_SAYS(message_of([&] { expect_reads(section("", 13, 26), folder / "a", {}); }), "line 4");
  EXPECT_SAYS(message_of([&] { expect_reads(section("", 13, 26), folder / "a", {}); }),
              "column C26: expected up to 8 hexadecimal digits or nothing, found 'xyz'");
}

}  // namespace
}  // namespace hctr::data_test
