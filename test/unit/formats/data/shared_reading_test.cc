// Several ranks read one set. Together they deliver the rows of a single reader, and each rank parses only its own
// rows.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/base/platform.h"
#include "formats/features/feature_section.h"
#include "formats/features/feature_set.h"
#include "formats/features/feature_spec.h"
#include "formats/parquet/parquet_set.h"
#include "formats/raw/raw_set.h"
#include "formats/text/csv_set.h"
#include "unit/formats/data/csv_section.h"
#include "unit/formats/data/packed_files.h"
#include "unit/formats/data/parquet_test_files.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

ParquetOptions& parquet_of(DataSection& section) { return section.options.edit<ParquetOptions>(); }

constexpr int64_t kRows = 20000;  // enough rows for several chunks in every format

/// A row of a batch: labels, dense values, and for each bag the key count and the keys.
std::vector<double> row_of(const ReadBatch& seen, const BatchShape& shape, int64_t b) {
  std::vector<double> row(seen.label.begin() + b * shape.label_dim, seen.label.begin() + (b + 1) * shape.label_dim);
  row.insert(row.end(), seen.dense.begin() + b * shape.dense_dim, seen.dense.begin() + (b + 1) * shape.dense_dim);
  for (size_t t = 0; t < shape.tables.size(); ++t)
    for (int64_t s = 0; s < shape.tables[t].slots; ++s) {
      const int32_t* bag = seen.offsets[t].data() + s * shape.samples + b;
      row.push_back(bag[1] - bag[0]);
      for (int32_t k = bag[0]; k < bag[1]; ++k)
        row.push_back(static_cast<double>(seen.keys[t][static_cast<size_t>(k)]));
    }
  return row;
}

/// The batches of a reader, and the reader position after each batch.
struct Delivered {
  std::vector<std::vector<std::vector<double>>> rows;
  std::vector<int64_t> first, global, skipped;
  std::vector<ReaderPosition> behind;
  int64_t parsed = 0, count = 0;
};

Delivered deliver(const DataSection& section, const fs::path& source, const ReaderOptions& options, int most = 100000) {
  Rig rig(section, source, options);
  Delivered found;
  found.behind.push_back(rig.reader->position());
  for (int i = 0; i < most; ++i) {
    const auto seen = rig.next();
    if (!seen) break;
    auto& rows = found.rows.emplace_back();
    for (int32_t b = 0; b < seen->state.valid_samples; ++b) rows.push_back(row_of(*seen, rig.layout.shape, b));
    found.count += seen->state.valid_samples;
    found.first.push_back(seen->state.first_sample);
    found.global.push_back(seen->state.global_samples);
    found.skipped.push_back(rig.reader->skipped_records());
    found.behind.push_back(rig.reader->position());
  }
  found.parsed = rig.reader->parsed_rows();
  return found;
}

/// Compares the readers of several ranks with `whole`, starting at batch `at` of `whole`.
void expect_shares(const DataSection& section, const fs::path& source, ReaderOptions options, const Delivered& whole,
                   size_t at, int ranks, bool shared) {
  const int64_t batch = options.batch;
  options.ranks = ranks;
  options.from = whole.behind[at];
  for (int rank = 0; rank < ranks; ++rank) {
    SCOPED_TRACE(cat("rank ", rank, " of ", ranks, ", batches of ", batch, " from batch ", at));
    options.rank = rank;
    options.workers = 1 + rank;
    const auto left = static_cast<int>(whole.rows.size() - at);
    const Delivered found = deliver(section, source, options, options.repeat ? left : 100000);
    ASSERT_EQ(found.rows.size(), whole.rows.size() - at);
    const int64_t begin = batch * rank / ranks, end = batch * (rank + 1) / ranks;
    for (size_t i = 0; i < found.rows.size(); ++i) {
      const auto& all = whole.rows[at + i];
      const auto size = static_cast<int64_t>(all.size());
      const std::vector<std::vector<double>> expected(all.begin() + std::min(begin, size),
                                                      all.begin() + std::min(end, size));
      ASSERT_TRUE(found.rows[i] == expected) << "batch " << i;
      EXPECT_EQ(found.first[i], whole.first[at + i] + begin);
      EXPECT_EQ(found.global[i], size);
      EXPECT_EQ(found.skipped[i], whole.skipped[at + i]);
      EXPECT_EQ(found.behind[i + 1], whole.behind[at + i + 1]);
    }
    if (options.repeat) continue;  // a repeating reader parses rows in advance, so its counts are larger
    if (shared) {
      EXPECT_EQ(found.parsed, found.count) << "a rank parses its own rows, and no other";
    } else if (at == 0) {
      EXPECT_EQ(found.parsed, whole.count) << "here it has to parse all";
    }
  }
}

void expect_shared(const DataSection& section, const fs::path& source, bool shared = true, int64_t shuffle = 0) {
  for (const int64_t batch : {97, 1000, 16000}) {
    if (kSanitized && batch != 1000) continue;  // with sanitizers, one case per code path is enough
    ReaderOptions options{.batch = batch, .workers = 2, .repeat = false, .shuffle = shuffle};
    const Delivered whole = deliver(section, source, options);
    ASSERT_EQ(whole.parsed, whole.count);
    for (const int ranks : {2, 3})
      if (!kSanitized || ranks == 3) expect_shares(section, source, options, whole, 0, ranks, shared);
    expect_shares(section, source, options, whole, whole.rows.size() / 2, 2, shared);
    // the last batch, which is partial
    expect_shares(section, source, options, whole, whole.rows.size() - 1, 3, shared);
  }
  ReaderOptions options{.batch = 7000, .workers = 2, .repeat = true, .shuffle = shuffle};
  // More than three passes (two under sanitizers). Some batches span two passes.
  const Delivered whole = deliver(section, source, options, kSanitized ? 6 : 10);
  expect_shares(section, source, options, whole, 0, 3, shared);
  expect_shares(section, source, options, whole, whole.rows.size() / 2, 2, shared);
}

DataSection two_inputs() { return section_of(2, 3, {input_of("wide", 1, 4, 4), input_of("deep", 4, 2, 6)}); }
DataSection one_hot() { return section_of(2, 3, {input_of("wide", 1, 1, 1), input_of("deep", 4, 1, 4)}); }

struct NormSets {
  explicit NormSets(Check check) {
    for (const int64_t rows : {int64_t{700}, kRows - 701, int64_t{1}, int64_t{0}}) {
      files.push_back(folder / cat("part", files.size()));
      write_rows(files.back(), style_of(section, check, 8),
                 random_rows(section, rows, 5 + files.size(), 1 << 30, true));
    }
    write_file_list(folder / "list", files, true);
  }
  /// Changes a byte of the first record and a byte near the end of a file, so that two checksums fail.
  void damage() {
    auto bytes = bytes_of(files[1]);
    for (const size_t at : {size_t{69 + 4}, bytes.size() - 3}) bytes[at] ^= std::byte{1};
    put_bytes(files[1], bytes);
  }
  Folder folder;
  DataSection section = two_inputs();
  std::vector<fs::path> files;
};

TEST(SharedReading, NormWithoutCheckSums) {
  const NormSets sets(Check::none);
  expect_shared(sets.section, sets.folder / "list");
}

TEST(SharedReading, NormWhoseFailedCheckSumsMoveTheRowsAfterThem) {
  NormSets sets(Check::sum);
  expect_shared(sets.section, sets.folder / "list");
  sets.damage();
  expect_shared(sets.section, sets.folder / "list");
  sets.section.bad_records = BadRecordPolicy::skip;
  expect_shared(sets.section, sets.folder / "list", false);
}

TEST(SharedReading, ABadRecordIsAnErrorOfTheRankThatHasIt) {
  NormSets sets(Check::sum);
  sets.damage();
  sets.section.bad_records = BadRecordPolicy::error;
  const auto problem = [&](int rank) {
    return message_of([&] {
      deliver(sets.section, sets.folder / "list",
              {.batch = 800, .workers = 2, .repeat = false, .rank = rank, .ranks = 2});
    });
  };
  // the bad record is row 700 of the first batch
  EXPECT_SAYS(problem(1), "part1': record 1 of 19299, at byte 69: fails its check sum");
  EXPECT_EQ(problem(0), "");
}

TEST(SharedReading, ShuffledNorm) {
  const NormSets sets(Check::none);
  for (const int64_t window : {1, 3000, 20000, 100000})
    if (!kSanitized || window != 20000) expect_shared(sets.section, sets.folder / "list", true, window);
}

TEST(SharedReading, ShuffledNormWhoseCheckSumsMayFailIsParsedByAllRanksInTheFirstPass) {
  NormSets sets(Check::sum);
  expect_shared(sets.section, sets.folder / "list", false, 3000);
  sets.section.bad_records = BadRecordPolicy::error;
  expect_shared(sets.section, sets.folder / "list", true, 3000);
  sets.section.bad_records = {};
  sets.damage();
  expect_shared(sets.section, sets.folder / "list", false, 3000);
  sets.section.bad_records = BadRecordPolicy::skip;
  expect_shared(sets.section, sets.folder / "list", false, 3000);
}

/// Reads two passes. The second reading starts within the first shuffle window. In the first pass, a rank may have to
/// parse rows of other ranks. In later passes no rank may parse rows of other ranks, because the number of rows per
/// pass is known.
void expect_shared_after_a_pass(const DataSection& section, const fs::path& source, int64_t shuffle) {
  ReaderOptions options{.batch = 900, .workers = 3, .repeat = false, .ranks = 3, .shuffle = shuffle};
  for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
    SCOPED_TRACE(cat("rank ", options.rank, ", windows of ", shuffle));
    Rig rig(section, source, options);
    ReaderPosition second;  // reader position after the first batch
    const auto expect_pass = [&](const ReaderPosition& from, bool shared) {
      rig.reader->reset(from);
      rig.expected_buffer = 0;
      options.from = from;
      Rig fresh(section, source, options);  // a reader that parses all rows
      int64_t all = 0, own = 0;
      while (const auto seen = rig.next()) {
        if (all == 0) second = rig.reader->position();
        const auto expected = fresh.next();
        ASSERT_TRUE(expected);
        expect_equal(*seen, *expected);
        EXPECT_EQ(rig.reader->position(), fresh.reader->position());
        all += seen->state.global_samples;
        own += seen->state.valid_samples;
      }
      EXPECT_FALSE(fresh.next());
      EXPECT_GT(own, 0);
      EXPECT_EQ(rig.reader->parsed_rows(), shared ? own : all);
    };
    expect_pass({}, false);
    expect_pass(rig.reader->next_pass(), true);
    expect_pass(ReaderPosition(second), true);
  }
}

TEST(SharedReading, ShuffledRowsOfARepeatedSetAreParsedByTheirRankAfterTheFirstPass) {
  const NormSets sets(Check::sum);
  constexpr int64_t kPasses = 9;
  Rig rig(sets.section, sets.folder / "list", {.batch = 1000, .workers = 2, .rank = 1, .ranks = 4, .shuffle = 1500});
  for (int64_t i = 0; i < kPasses * kRows / 1000; ++i) ASSERT_TRUE(rig.next());
  EXPECT_GE(rig.reader->parsed_rows(), kRows + (kPasses - 1) * kRows / 4 - 10);
  EXPECT_LT(rig.reader->parsed_rows(), kRows + (kPasses + 1) * kRows / 4) << "and the reader is ahead by a few batches";
}

TEST(SharedReading, Raw) {
  const Folder folder;
  DataSection section = one_hot();
  section.format = kRawFormat;
  section.float_label_dense = true;
  std::string bytes;
  for (const Row& row : random_rows(section, kRows, 3, 1 << 30, false)) {
    for (const auto* numbers : {&row.label, &row.dense})
      bytes.append(reinterpret_cast<const char*>(numbers->data()), 4 * numbers->size());
    for (const auto& slot : row.slots) {
      const auto key = static_cast<int32_t>(slot[0]);
      bytes.append(reinterpret_cast<const char*>(&key), 4);
    }
  }
  const size_t record = bytes.size() / kRows;
  write_text(folder / "a", bytes.substr(0, 9001 * record));
  write_text(folder / "b", bytes.substr(9001 * record));
  write_file_list(folder / "list", {folder / "a", folder / "b"}, true);
  expect_shared(section, folder / "list");
  for (const int64_t window : {13, 3000, 100000})
    if (!kSanitized || window != 13) expect_shared(section, folder / "list", true, window);
  bytes[9000 * record + record - 1] = '\xff';  // the last key of row 9000
  write_text(folder / "a", bytes.substr(0, 9001 * record));
  for (const int rank : {0, 1}) {
    const std::string problem = message_of([&] {
      deliver(section, folder / "list", {.batch = 1000, .workers = 3, .repeat = false, .rank = rank, .ranks = 2});
    });
    EXPECT_SAYS(problem,
                rank == 0 ? cat("a': record 9001 of 9001, at byte ", 9000 * record, ": slot 4 has the key -") : "");
    EXPECT_EQ(problem.empty(), rank == 1);
  }
  section.bad_records = BadRecordPolicy::skip;
  expect_shared(section, folder / "list", false);
}

TEST(SharedReading, TextPlainQuotedAndPacked) {
  const Folder folder;
  DataSection section = two_inputs();
  section.format = kCsvFormat;
  csv_of(section).header = false;
  csv_of(section).labels = {"1", "2"};
  csv_of(section).dense = {{.columns = {"3", "4", "5"}, .transform = DenseTransform::none, .mean = {}, .std = {}}};
  csv_of(section).slots = {{.columns = {"6", "7", "8", "9", "10"}, .vocabulary = "", .separator = "|", .fallback = {}}};
  for (const bool quotes : {false, true}) {
    std::string text;
    int64_t line = 0;
    for (const Row& row : random_rows(section, kRows, 3, 1000, true)) {
      if (++line % 11 == 0) text += line % 2 ? "\n" : "\r\n";  // an empty line, which is not a row
      bool first = true;
      for (const auto* numbers : {&row.label, &row.dense})
        for (const float number : *numbers) text += cat(std::exchange(first, false) ? "" : ",", number);
      for (const auto& slot : row.slots) {
        text += quotes ? ",\"" : ",";
        for (const int64_t key : slot) text += cat(key, quotes ? "\n|" : "|");
        text += quotes ? "\"" : "";
      }
      if (line < kRows) text += line % 3 ? "\n" : "\r\n";
    }
    csv_of(section).quote = quotes ? "\"" : "";
    write_text(folder / "rows.csv", text);
    expect_shared(section, folder / "rows.csv");
    if (kSanitized && quotes) continue;  // with sanitizers, one case per code path is enough
    expect_shared(section, folder / "rows.csv", false, 4000);
    for (const int64_t window : {700, 100000}) expect_shared_after_a_pass(section, folder / "rows.csv", window);
    if (quotes) continue;
    write_gzip(folder / "rows.csv.gz", text);
    expect_shared(section, folder / "rows.csv.gz");
  }
}

/// Writes the specification, and returns the section that reads it. `slots`: number of categorical features.
DataSection section_of_spec(const Folder& folder, const FeatureSpec& spec, int slots) {
  write_text(folder / "spec.yaml", to_yaml(spec));
  DataSection section = section_of(1, 1, {input_of("keys", slots, 1, slots)});
  section.feature_spec = (folder / "spec.yaml").string();
  Problems problems;
  complete_feature_section(section, "", problems);
  problems.throw_if_any("config");
  return section;
}

TEST(SharedReading, FeatureSpecOfABinaryChunkAndATextOne) {
  const Folder folder;
  FeatureSpec spec;
  spec.folder = folder.path();
  spec.features = {{"click", FeatureType::boolean, {}},
                   {"age", FeatureType::f32, {}},
                   {"user", FeatureType::i32, 1000},
                   {"city", FeatureType::i16, 300}};
  spec.channels = {{kLabelChannel, {0}}, {kNumericalChannel, {1}}, {kCategoricalChannel, {2, 3}}};
  spec.sources = {{"train",
                   {{FeatureChunk::Kind::split_binary, {2}, {folder / "user0.bin", folder / "user1.bin"}},
                    {FeatureChunk::Kind::csv, {0, 1, 3}, {folder / "rest.csv"}}}}};
  std::string users, rest;
  for (int64_t i = 0; i < kRows; ++i) {
    const auto user = static_cast<int32_t>(i % 1000);
    users.append(reinterpret_cast<const char*>(&user), 4);
    rest += cat(i % 13 == 5 ? "\n" : "", i % 2, ",", i, ",", i % 300, i % 3 ? "\n" : "\r\n");
  }
  write_text(folder / "user0.bin", users.substr(0, 4 * 7777));
  write_text(folder / "user1.bin", users.substr(4 * 7777));
  write_text(folder / "rest.csv", rest);
  DataSection section = section_of_spec(folder, spec, 2);
  expect_shared(section, "train");
  for (const int64_t window : {3000, 100000}) expect_shared(section, "train", true, window);
  rest.replace(rest.find("15001,"), 6, "15e99,");
  write_text(folder / "rest.csv", rest);
  EXPECT_SAYS(message_of([&] {
                deliver(section, "train", {.batch = 1000, .workers = 3, .repeat = false, .rank = 0, .ranks = 2});
              }),
              "rest.csv' line 16156: ");
  section.bad_records = BadRecordPolicy::skip;
  expect_shared(section, "train", false, 3000);
}

TEST(SharedReading, FeatureSpecOfTextAloneWhoseRowsAreKnownAfterAPass) {
  const Folder folder;
  FeatureSpec spec;
  spec.folder = folder.path();
  spec.features = {{"click", FeatureType::boolean, {}}, {"age", FeatureType::f32, {}}, {"city", FeatureType::i16, 300}};
  spec.channels = {{kLabelChannel, {0}}, {kNumericalChannel, {1}}, {kCategoricalChannel, {2}}};
  spec.sources = {{"train", {{FeatureChunk::Kind::csv, {0, 1, 2}, {folder / "rows.csv"}}}}};
  std::string text;
  for (int64_t i = 0; i < kRows; ++i) text += cat(i % 2, ",", i, ",", i % 300, "\n");
  write_text(folder / "rows.csv", text);
  DataSection section = section_of_spec(folder, spec, 1);
  expect_shared(section, "train", false, 3000);
  expect_shared_after_a_pass(section, "train", 3000);
  const auto exact = [&](int64_t num_samples) {
    return open_feature_set(section, {"train", num_samples}, KeyWidth::detect, Log::silent())->exact_samples();
  };
  EXPECT_EQ(exact(kRows - 5), kRows - 5);
  // A reader that is reset in its first pass does not know the number of rows per pass.
  for (int i = 0; i < 40; ++i) {
    Rig rig(section, "train",
            {.batch = 2 * kRows, .workers = 2, .repeat = false, .rank = 1, .ranks = 2, .shuffle = 3000});
    std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
    rig.reader->reset();
    const auto seen = rig.next();
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->state.global_samples, kRows);
  }
  EXPECT_EQ(exact(0), std::nullopt);
}

TEST(SharedReading, ParquetOfNumbersTextAndLists) {
  HCTR_SKIP_WITHOUT_PARQUET();
  const Folder folder;
  DataSection section = section_of(1, 1, {input_of("s", 3, 2, 5)});
  section.format = kParquetFormat;
  parquet_of(section).labels = {"y"};
  parquet_of(section).dense.emplace_back();
  parquet_of(section).dense[0].columns = {"d"};
  parquet_of(section).dense[0].fallback = 7;
  parquet_of(section).slots.emplace_back();
  parquet_of(section).slots[0].columns = {"a", "b", "c"};
  std::vector<float> y, d;
  std::vector<int64_t> a, nulls;
  std::vector<std::optional<std::string>> b;
  std::vector<std::vector<int64_t>> c;
  for (int64_t i = 0; i < kRows; ++i) {
    y.push_back(static_cast<float>(i));
    d.push_back(static_cast<float>(i % 77));
    if (i % 9 == 4) nulls.push_back(i);
    a.push_back(i * 3);
    b.push_back(cat("text ", i % 500));
    c.push_back(std::vector<int64_t>(static_cast<size_t>(i % 3), i));
  }
  const std::vector<Column> columns = {numbers("y", ParquetType::f32, y), numbers("d", ParquetType::f32, d, nulls),
                                       numbers("a", ParquetType::i64, a), texts("b", b),
                                       lists("c", ParquetType::i64, c)};
  for (const int64_t group : {int64_t{3000}, int64_t{17000}}) {
    if (kSanitized && group == 17000) continue;  // with sanitizers, one case per code path is enough
    write_parquet(folder / "rows.parquet", columns, group);
    expect_shared(section, folder / "rows.parquet");
    for (const int64_t window : {3000, 100000}) expect_shared(section, folder / "rows.parquet", true, window);
  }
  section.bad_records = BadRecordPolicy::skip;
  expect_shared(section, folder / "rows.parquet", false, 3000);
}

}  // namespace
}  // namespace hctr::data_test
