#include "prepare/preprocess/criteo_convert.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "formats/catalog/data_schema.h"
#include "formats/reader/reader.h"
#include "support/paths.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

/// A row of the format with some empty fields. Rows with different `i` differ.
std::string criteo_line(int i) {
  std::string line = i % 4 == 0 ? "1" : "0";
  for (int k = 0; k < 13; ++k) line += (i + k) % 5 == 0 ? "\t" : cat("\t", (i * 7 + k * 13) % 400 - 2);
  for (int k = 0; k < 26; ++k) {
    char hex[16];
    std::snprintf(hex, sizeof hex, "%08x", static_cast<unsigned>(mix64(static_cast<uint64_t>(i % (3 + k) * 100 + k))));
    line += (i + k) % 7 == 0 ? "\t" : cat("\t", hex);
  }
  return line;
}

std::string criteo_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += criteo_line(i) + "\n";
  return text;
}

std::vector<std::string> fields_of(std::string line) {
  std::vector<std::string> fields;
  if (line.ends_with("\n")) line.pop_back();
  std::istringstream in(line + "\t");
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  return fields;
}

SampleBlock read_set(const CriteoOptions& options, const std::string& file) {
  Problems problems;
  const DataSection section = data_schema().parse(criteo_data_section(options), "", problems, {"type"});
  problems.throw_if_any("printed section");
  return read_norm_file(options.folder / file, norm_demands(section, KeyWidth::detect));
}

struct Criteo : ::testing::Test {
  CriteoSummary convert() { return convert_criteo(options, Log::silent()); }
  void input(const std::string& text) {
    write_text(folder / "in.tsv", text);
    options.inputs = {(folder / "in.tsv").string()};
    options.folder = folder / "out";
    options.force = true;
  }
  Folder folder;
  CriteoOptions options;
};

TEST_F(Criteo, RowsBecomeWhatAnIndependentParserExpects) {
  input(criteo_lines(300));
  options.style.integers = Integers::both;
  EXPECT_EQ(convert().train_rows, 300);
  const SampleBlock block = read_set(options, "train.0.data");
  ASSERT_EQ(block.rows, 300);
  // maps each key to its column and the value that has this key
  std::map<int64_t, std::pair<int, std::string>> meaning;
  for (int i = 0; i < 300; ++i) {
    const auto fields = fields_of(criteo_line(i));
    const auto row = static_cast<size_t>(i);
    EXPECT_EQ(block.label[row], fields[0] == "1" ? 1.0f : 0.0f);
    for (size_t k = 0; k < 13; ++k) {
      const double value = fields[1 + k].empty() ? 0 : std::log(1 + std::max(0.0, std::stod(fields[1 + k])));
      EXPECT_NEAR(static_cast<double>(block.dense[row * 13 + k]), value, 1e-6);
    }
    for (size_t s = 0; s < 39; ++s) {
      const size_t bag = s * 300 + row;
      ASSERT_EQ(block.offsets[bag + 1] - block.offsets[bag], 1);
      std::string value = s < 26 ? fields[14 + s] : fields[1 + s - 26];
      if (s >= 26 && !value.empty() && std::stol(value) > 2)
        value = cat("bucket ", static_cast<int>(std::pow(std::log(std::stod(value)), 2)));
      const std::pair<int, std::string> expected{static_cast<int>(s), value};
      const auto [at, fresh] = meaning.emplace(block.keys[static_cast<size_t>(block.offsets[bag])], expected);
      EXPECT_EQ(at->second, expected);
    }
  }
  std::set<std::pair<int, std::string>> values;
  for (const auto& [key, value] : meaning) {
    EXPECT_TRUE(values.insert(value).second) << "two keys for column " << value.first << " value " << value.second;
    EXPECT_GE(key, 0);
  }
}

TEST_F(Criteo, TheWideSlotHoldsTheKeysOfTheDeepOnes) {
  input(criteo_lines(50));
  options.style.wide = Wide::all;
  options.style.integers = Integers::both;
  convert();
  const SampleBlock block = read_set(options, "train.0.data");
  for (size_t row = 0; row < 50; ++row) {
    ASSERT_EQ(block.offsets[row + 1] - block.offsets[row], 39);
    for (size_t s = 0; s < 39; ++s)
      EXPECT_EQ(block.keys[static_cast<size_t>(block.offsets[row]) + s],
                block.keys[static_cast<size_t>(block.offsets[(1 + s) * 50 + row])]);
  }
}

TEST_F(Criteo, CrossesStandForPairsOfValues) {
  input(criteo_lines(300));
  options.style.wide = Wide::cross;
  convert();
  const SampleBlock block = read_set(options, "train.0.data");
  std::map<int64_t, std::string> meaning;
  std::set<std::string> pairs;
  for (size_t row = 0; row < 300; ++row) {
    const auto fields = fields_of(criteo_line(static_cast<int>(row)));
    ASSERT_EQ(block.offsets[row + 1] - block.offsets[row], 2);
    for (size_t k = 0; k < 2; ++k) {
      const std::string pair = cat(k, ":", fields[14 + 2 * k], "x", fields[15 + 2 * k]);
      EXPECT_EQ(meaning.emplace(block.keys[static_cast<size_t>(block.offsets[row]) + k], pair).first->second, pair);
      pairs.insert(pair);
    }
  }
  EXPECT_EQ(meaning.size(), pairs.size());
}

TEST_F(Criteo, BucketsAndNarrowKeysStayInTheRangeOfTheirColumn) {
  input(criteo_lines(300));
  options.style.key_bytes = 4;
  for (const int64_t buckets : {int64_t{0}, int64_t{10}}) {
    options.style.buckets = buckets;
    convert();
    const SampleBlock block = read_set(options, "train.0.data");
    for (size_t s = 0; s < 26; ++s)
      for (size_t row = 0; row < 300; ++row) {
        const int64_t key = block.keys[s * 300 + row];
        const bool missing = fields_of(criteo_line(static_cast<int>(row)))[14 + s].empty();
        const int64_t base = buckets ? static_cast<int64_t>(s) * buckets : static_cast<int64_t>(s + 1) << 26;
        EXPECT_GE(key, base + (missing ? 0 : 2));
        EXPECT_LT(key, base + (missing ? 1 : buckets ? buckets : 1 << 26));
      }
  }
}

TEST_F(Criteo, TheResultDoesNotDependOnThreads) {
  input(criteo_lines(20000));
  options.holdout = 0.2;
  options.min_count = 3;
  options.rows_per_file = 3000;
  std::vector<std::string> results;
  for (const int threads : {1, 2, 5}) {
    options.threads = threads;
    const CriteoSummary summary = convert();
    EXPECT_EQ(summary.train_rows, 16000);
    EXPECT_EQ(summary.val_rows, 4000);
    EXPECT_EQ(summary.train_files, 6);
    EXPECT_EQ(summary.val_files, 2);
    std::string all = read_text(options.folder / "train.txt", "") + read_text(options.folder / "val.txt", "");
    for (int n = 0; n < 6; ++n) all += read_text(options.folder / cat("train.", n, ".data"), "");
    for (int n = 0; n < 2; ++n) all += read_text(options.folder / cat("val.", n, ".data"), "");
    results.push_back(all);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST_F(Criteo, ValuesRareInTheTrainingRowsShareAKeyAlsoInTheEvaluationRows) {
  std::string text;
  const std::string frequent = criteo_line(1), rare = criteo_line(2);
  for (int i = 0; i < 8; ++i) text += frequent + "\n";
  text += rare + "\n" + rare + "\n";  // `holdout` selects the last row for evaluation
  input(text);
  options.holdout = 0.1;
  options.min_count = 2;
  options.style.buckets = 100;
  convert();
  const SampleBlock val = read_set(options, "val.0.data"), train = read_set(options, "train.0.data");
  const auto a = fields_of(frequent), b = fields_of(rare);
  for (size_t s = 0; s < 26; ++s) {
    const int64_t base = static_cast<int64_t>(s) * 100;
    if (!b[14 + s].empty() && a[14 + s] != b[14 + s]) {
      EXPECT_EQ(val.keys[s], base + 1);
      EXPECT_EQ(train.keys[s * 9 + 8], base + 1);
    }
    if (!a[14 + s].empty()) {
      EXPECT_GE(train.keys[s * 9], base + 2);
    }
  }
}

TEST_F(Criteo, GzipSeveralFilesWindowsLineEndsAndAMissingLastNewlineReadTheSame) {
  input(criteo_lines(40));
  convert();
  const std::string expected = read_text(options.folder / "train.0.data", "");
  std::string windows;
  for (int i = 0; i < 20; ++i) windows += criteo_line(i) + "\r\n";
  write_text(folder / "a.tsv", windows + "\r\n");
  const gzFile gz = ::gzopen((folder / "b.tsv.gz").c_str(), "wb");
  for (int i = 20; i < 40; ++i) {
    const std::string line = criteo_line(i) + (i < 39 ? "\n" : "");
    ::gzwrite(gz, line.data(), static_cast<unsigned>(line.size()));
  }
  ::gzclose(gz);
  options.inputs = {(folder / "a.tsv").string(), (folder / "b.tsv.gz").string()};
  convert();
  EXPECT_EQ(read_text(options.folder / "train.0.data", ""), expected);

  cut_bytes(folder / "b.tsv.gz", 20);
  EXPECT_SAYS(message_of([&] { convert(); }), "b.tsv.gz' is damaged or truncated");
  EXPECT_FALSE(fs::exists(options.folder / "train.txt")) << "no list may name a half-made set";
}

TEST_F(Criteo, BadRowsNameFileLineColumnAndValueOrAreCounted) {
  const auto message = [&](const std::string& bad) {
    input(criteo_lines(3) + bad + "\n" + criteo_lines(2));
    return message_of([&] { convert(); });
  };
  std::string line = criteo_line(1);
  EXPECT_SAYS(message("2" + line.substr(1)),
              cat("in.tsv' line 4, at byte ", criteo_lines(3).size(), ": column label: expected 0 or 1, found '2'"));
  EXPECT_SAYS(message("0\tx" + line.substr(line.find('\t', 2))),
              ": column I1: expected an integer or nothing, found 'x'");
  EXPECT_SAYS(message(line.substr(0, line.rfind('\t')) + "\tnothex"),
              "column C26: expected up to 8 hexadecimal digits or nothing, found 'nothex'");
  EXPECT_SAYS(message(line + "\t1"), "expected 40 fields separated by tabs, found 41");
  EXPECT_SAYS(message("0"), "expected 40 fields separated by tabs, found 1");
  options.bad_rows.skip = true;
  options.holdout = 0.5;
  const CriteoSummary summary = convert();
  EXPECT_EQ(summary.bad_rows, 1);
  EXPECT_EQ(summary.train_rows, 3) << "the cut is by lines, the bad one among them";
  EXPECT_EQ(summary.val_rows, 2);
}

TEST_F(Criteo, OptionsThatDoNotFitAreUsageErrors) {
  input(criteo_lines(3));
  options.style.buckets = 2;
  EXPECT_SAYS(message_of([&] { convert(); }), "usage: --buckets 2: each column needs at least 3 keys");
  options.style = {.buckets = 200000000, .key_bytes = 4};
  EXPECT_SAYS(message_of([&] { convert(); }), "keys of 32 bits allow at most");
  options.style = {};
  options.holdout = 0.1;
  options.inputs = {"-"};
  EXPECT_SAYS(message_of([&] { convert(); }), "instead of the standard input");
  options.holdout = 1;
  EXPECT_SAYS(message_of([&] { convert(); }), "--holdout");
  options.holdout = 0;
  input("\n\n");
  EXPECT_SAYS(message_of([&] { convert(); }), "data: the input has no rows");
  input(criteo_lines(3));
  convert();
  options.force = false;
  EXPECT_SAYS(message_of([&] { convert(); }), "train.txt' already exists; --force overwrites the file");
  options.inputs = {"/no/such/file"};
  options.force = true;
  EXPECT_SAYS(message_of([&] { convert(); }), "io: cannot open data file '/no/such/file'");
  EXPECT_TRUE(fs::exists(options.folder / "train.txt")) << "inputs are checked before an older list is removed";
}

fs::path shared_data() {
  if (const char* folder = std::getenv("HCTR_SHARED_DATA")) return folder;
  return test::source_dir() / "../shared/data";
}

TEST(CriteoSample, TheRealSampleConvertsAndReadsBackThroughTheReader) {
  const fs::path sample = shared_data() / "criteo_kaggle_sample.tsv.gz";
  if (!fs::exists(sample))
    GTEST_SKIP() << "no Criteo sample at " << sample << "; set HCTR_SHARED_DATA to the folder that holds it";
  const Folder folder;
  CriteoOptions options;
  options.inputs = {sample.string()};
  options.folder = folder / "out";
  options.holdout = 0.1;
  options.threads = 2;
  const CriteoSummary summary = convert_criteo(options, Log::silent());
  EXPECT_EQ(summary.train_rows + summary.val_rows, 104049);
  EXPECT_EQ(summary.val_rows, 10405);
  EXPECT_NEAR(static_cast<double>(summary.train_positives + summary.val_positives) / 104049, 0.25747, 1e-5);

  Problems problems;
  const DataSection section = data_schema().parse(criteo_data_section(options), "", problems, {"type"});
  const BatchLayout layout(batch_shape(section, 4096));
  std::vector<std::byte> memory(layout.bytes);
  Reader reader(section, training_source(section), layout, {memory.data()},
                {.batch = 4096, .workers = 2, .repeat = false}, Log::silent());
  EXPECT_EQ(reader.samples(), summary.train_rows);
  int64_t rows = 0;
  std::vector<std::set<int64_t>> distinct(26);
  while (const auto slot = reader.next()) {
    const BatchView view(layout, memory.data());
    rows += view.state->valid_samples;
    for (size_t s = 0; s < 26; ++s)
      for (int32_t i = view.tables[0].offset(static_cast<int64_t>(s) * 4096),
                   end = view.tables[0].offset(static_cast<int64_t>(s + 1) * 4096);
           i < end; ++i)
        distinct[s].insert(view.tables[0].key(i));
    reader.release(*slot);
  }
  EXPECT_EQ(rows, summary.train_rows);
  EXPECT_EQ(distinct[5].size(), 12u) << "C6: 11 values and missing";
  EXPECT_EQ(distinct[8].size(), 3u) << "C9: 3 values, never missing";
}

}  // namespace
}  // namespace hctr::data_test
