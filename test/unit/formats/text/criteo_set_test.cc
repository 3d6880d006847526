// Criteo lines read directly give the same values as files written by criteo2hugectr.
#include "formats/text/criteo_set.h"

#include <gtest/gtest.h>

#include "core/base/platform.h"
#include "formats/catalog/data_schema.h"
#include "prepare/preprocess/criteo_convert.h"
#include "unit/formats/data/packed_files.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

/// Returns a line with fields of every kind: empty, negative, huge, short, and with upper-case digits.
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
          // Sanitizers skip most variants, because Integers::both covers the code of the other two.
          if (kSanitized && integers != Integers::both && (integers == Integers::buckets || key_bytes == 8)) continue;
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

TEST(CriteoSet, IntegersMayBeWrittenAsNumbersAndFilesBeginWithAMark) {
  const Folder folder;
  const std::string plain = cat("1", "\t17\t-3\t5\t7", std::string(9, '\t'), "\tff", std::string(25, '\t'), "\n");
  const std::string odd =
      cat("\xEF\xBB\xBF", "1.0", "\t17.0\t-3.\t +5\t7e0", std::string(9, '\t'), "\tff", std::string(25, '\t'), "\n");
  std::vector<std::string> sets;
  for (const std::string& text : {plain, odd}) {
    CriteoOptions options;
    write_text(folder / "in.tsv", text);
    options.inputs = {(folder / "in.tsv").string()};
    options.folder = folder / "out";
    options.force = true;
    convert_criteo(options, Log::silent());
    const DataSection norm = section_from(criteo_data_section(options));
    DataSection direct = norm;
    direct.format = kCriteoFormat;
    direct.options.edit<CriteoTextOptions>() = {};
    Rig want(norm, norm.source, {.batch = 1, .workers = 1, .repeat = false});
    Rig rig(direct, folder / "in.tsv", {.batch = 1, .workers = 1, .repeat = false});
    expect_equal(*rig.next(), *want.next());
    sets.push_back(read_text(options.folder / "train.0.data", "set"));
  }
  EXPECT_TRUE(sets[0] == sets[1]);
  CriteoRow row;
  std::string fraction = odd.substr(3, odd.size() - 4);
  fraction.replace(fraction.find("17.0"), 4, "17.5");
  RecordSplitter splitter(kCriteoGrammar);
  splitter.split(fraction.data(), fraction.data() + fraction.size());
  EXPECT_EQ(parse_criteo_cells(splitter.cells(), row), "column I1: expected an integer or nothing, found '17.5'");
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
              "/sparse: has 27 slots in total; Criteo data with these options has 26");
  EXPECT_SAYS(message_of([&] { section(R"(, "criteo": {"wide": "all"})", 13, 27); }),
              "its first slot has 39 keys (\"wide\" of \"criteo\"); the limits allow fewer");
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

TEST(CriteoSet, LogsMayLackTheirLabelsAndPassColumnsOn) {
  const Folder folder;
  std::string without;
  for (uint64_t i = 0; i < 200; ++i) without += line_of(i).substr(2);
  write_text(folder / "with.tsv", lines_of(200));
  write_text(folder / "without.tsv", without);
  const DataSection section = section_from(Json::parse(
      R"({"format": "Criteo", "source": "a", "label": {"top": "l", "label_dim": 1},
          "dense": {"top": "d", "dense_dim": 13},
          "sparse": [{"top": "x", "slot_num": 26, "nnz_per_slot": 1}]})",
      "x"));
  const auto source = [&](const char* file) {
    return Source{.path = (folder / file).string(), .labels_optional = true, .keep = {"C3", "I1"}};
  };
  for (const int ranks : {1, 3})
    for (int rank = 0; rank < ranks; ++rank) {
      const ReaderOptions options{.batch = 30, .workers = 2, .repeat = false, .rank = rank, .ranks = ranks};
      Rig with(section, source("with.tsv"), options), no(section, source("without.tsv"), options);
      EXPECT_TRUE(with.reader->has_labels());
      EXPECT_FALSE(no.reader->has_labels());
      uint64_t row = static_cast<uint64_t>(30 * rank / ranks);
      for (uint64_t first = 0; auto want = with.next(); first += 30) {
        const auto found = no.next();
        ASSERT_TRUE(found);
        EXPECT_EQ(found->dense, want->dense);
        EXPECT_EQ(found->keys, want->keys);
        const auto rows = static_cast<size_t>(found->state.valid_samples);
        const KeptCells kept = no.reader->take_passed_on().kept, same = with.reader->take_passed_on().kept;
        EXPECT_EQ(kept.text, same.text);
        ASSERT_EQ(kept.ends.size(), 2 * rows);
        for (size_t r = 0; r < rows; ++r) {
          EXPECT_EQ(found->label[r], kNoLabel);
          std::vector<std::string> cells = {""};
          for (const char c : line_of(first + row + r)) {
            if (c == '\t')
              cells.emplace_back();
            else
              cells.back() += c;
          }
          EXPECT_EQ(kept.cell(2 * r), cells[16]);
          EXPECT_EQ(kept.cell(2 * r + 1), cells[1]);
        }
      }
      EXPECT_FALSE(no.next());
    }
  // Training requires labels.
  EXPECT_SAYS(message_of([&] { expect_reads(section, folder / "without.tsv", {}); }), "expected 40 values, found 39");
}

}  // namespace
}  // namespace hctr::data_test
