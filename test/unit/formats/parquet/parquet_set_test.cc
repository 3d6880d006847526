// Parquet files as samples: written rows are read back with any row groups, ranks and order; errors are reported.
#include "formats/parquet/parquet_set.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <set>

#include "core/base/half.h"
#include "formats/catalog/bad_records_file.h"
#include "formats/data/column_rules.h"
#include "formats/parquet/parquet_row_group.h"
#include "formats/text/csv_set.h"
#include "prepare/inspect/inspect.h"
#include "prepare/write/parquet_writer.h"
#include "support/paths.h"
#include "unit/formats/data/csv_section.h"
#include "unit/formats/data/hashed_key.h"
#include "unit/formats/data/parquet_rig.h"

namespace hctr::data_test {
namespace {

struct Parquet : ParquetRig {};

const std::vector<int64_t> kThree = {7, 8, 9};

/// Converts rows to the columns of a file.
std::vector<Column> columns_of(const std::vector<Row>& rows, bool lists_of_keys) {
  std::vector<Column> columns;
  const auto column_of = [&](auto get) {
    std::vector<float> values;
    for (const Row& row : rows) values.push_back(get(row));
    return values;
  };
  columns.push_back(numbers("y", ParquetType::f32, column_of([](const Row& row) { return row.label[0]; })));
  for (size_t i = 0; i < rows[0].dense.size(); ++i)
    columns.push_back(numbers(cat("d", i), ParquetType::f32, column_of([i](const Row& row) { return row.dense[i]; })));
  for (size_t s = 0; s < rows[0].slots.size(); ++s) {
    std::vector<int64_t> ones;
    std::vector<std::vector<int64_t>> all;
    for (const Row& row : rows) {
      ones.push_back(row.slots[s].empty() ? 0 : row.slots[s][0]);
      all.push_back(row.slots[s]);
    }
    columns.push_back(lists_of_keys ? lists(cat("s", s), ParquetType::i64, all)
                                    : numbers(cat("s", s), ParquetType::i64, ones));
  }
  return columns;
}

TEST_F(Parquet, RowsComeBackFromPiecesRowGroupsAndFiles) {
  for (const bool bags : {false, true}) {
    const DataSection section = named(2, {input_of("a", 2, 3, 5), input_of("b", 1, 2, 2)});
    const auto rows = random_rows(section, 30000, 5, 1000, bags);
    const std::vector<Row> first(rows.begin(), rows.begin() + 20000), rest(rows.begin() + 20000, rows.end());
    write_parquet(file, columns_of(first, bags), 9000);  // each row group has a whole and a partial piece
    write_parquet(folder / "rest.parquet", columns_of(rest, bags));
    write_file_list(folder / "list.txt", {file, folder / "rest.parquet"}, true);
    expect_reads(section, folder / "list.txt", rows, 777);
    expect_reads(section, file, first);
  }
}

TEST_F(Parquet, OrderDependsOnNeitherWorkersNorRanksAndGoesOnFromAnyPlace) {
  const DataSection section = named(1, {input_of("a", 2, 3, 5)});
  const auto rows = random_rows(section, 20000, 6, 1000, true);
  write_parquet(file, columns_of(rows, true), 9000);
  for (const int64_t shuffle : {0, 3000}) {
    Rig one(section, file, {.batch = 1000, .workers = 1, .shuffle = shuffle, .seed = 3}),
        four(section, file, {.batch = 1000, .workers = 4, .shuffle = shuffle, .seed = 3});
    std::vector<ReadBatch> batches;
    std::vector<ReaderPosition> behind;
    for (int i = 0; i < 45; ++i) {  // more batches than two passes have
      batches.push_back(*one.next());
      behind.push_back(one.reader->position());
      expect_equal(batches.back(), *four.next());
    }
    for (const size_t from : {0u, 8u, 9u, 17u, 30u}) {
      Rig later(section, file, {.batch = 1000, .workers = 3, .shuffle = shuffle, .seed = 3, .from = behind[from]});
      for (size_t i = from + 1; i < from + 4; ++i) expect_equal(*later.next(), batches[i]);
    }
    Rig half(section, file, {.batch = 1000, .workers = 2, .rank = 1, .ranks = 2, .shuffle = shuffle, .seed = 3});
    for (int i = 0; i < 5; ++i) {
      const ReadBatch part = *half.next();
      EXPECT_EQ(part.state.first_sample, i * 1000 + 500);
      EXPECT_TRUE(
          std::equal(part.label.begin(), part.label.end(), batches[static_cast<size_t>(i)].label.begin() + 500));
    }
  }
}

TEST_F(Parquet, ManyWorkersReadSmallRowGroupsInTheirOrder) {
  const DataSection section = named(1, {input_of("a", 2, 3, 5)});
  const auto rows = random_rows(section, 12000, 6, 1000, true);
  write_parquet(file, columns_of(rows, true), 700);
  expect_reads(section, file, rows, 777);
  Rig one(section, file, {.batch = 1000, .workers = 1}), many(section, file, {.batch = 1000, .workers = 16});
  for (int i = 0; i < 40; ++i) expect_equal(*one.next(), *many.next());
}

TEST_F(Parquet, AnyNumberOfThreadsWritesTheSameBytes) {
  const DataSection section = section_of(1, 9, {input_of("a", 20, 3, 60)});
  const auto rows = random_rows(section, 2000, 7, 1000, true);
  ParquetStyle style{style_of(section, Check::none, 4), {"y"}, {}, {}, std::vector<bool>(20, true)};
  for (int i = 0; i < 9; ++i) style.dense.push_back(cat("d", i));
  for (int i = 0; i < 20; ++i) style.slots.push_back(cat("s", i));
  for (const int threads : {1, 2, 7}) {
    style.threads = threads;
    ParquetFileWriter writer(folder / cat(threads), style);
    std::vector<std::byte> bytes;
    for (const Row& row : rows) append_row(style.record, row, bytes);
    writer.append(bytes, static_cast<int64_t>(rows.size()));
    writer.commit();
    EXPECT_TRUE(read_text(folder / cat(threads), "file") == read_text(folder / "1", "file")) << threads << " threads";
  }
}

TEST_F(Parquet, ASetOfTheWriterHasItsMetadataAndComesBack) {
  for (const int key_bytes : {4, 8}) {
    const Folder set;
    DataSection section = section_of(1, 2, {input_of("a", 2, 3, 5), input_of("b", 1, 1, 1)});
    section.format = kParquetFormat;
    auto rows = random_rows(section, 3000, 7, 1000, true);
    for (Row& row : rows) row.slots[2] = {row.label[0] > 100 ? 3 : 4};
    ParquetStyle style{
        style_of(section, Check::none, key_bytes), {"y"}, {"d0", "d1"}, {"s0", "s1", "s2"}, {true, true, false}};
    ParquetSetWriter writer(set.path(), set / "_file_list.txt", style,
                            [](int64_t n) { return cat("part_", n, ".parquet"); });
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i % 1700 == 0) writer.next_file();
      std::vector<std::byte> bytes;
      append_row(style.record, rows[i], bytes);
      writer.append(bytes, 1);
    }
    EXPECT_FALSE(fs::exists(set / "_file_list.txt"));  // an incomplete set has no file list
    EXPECT_FALSE(fs::exists(set / "part_1.parquet"));
    EXPECT_EQ(writer.finish().size(), 2u);
    const auto metadata = read_parquet_metadata(set.path());
    EXPECT_EQ(metadata->rows.at("part_0.parquet"), 1700);
    EXPECT_EQ(metadata->cats[2].name, "s2");
    EXPECT_EQ(metadata->cats[2].index, 5);
    expect_reads(section, set / "_file_list.txt", rows);
    section.slot_size_array = {1000, 50, 10};
    for (Row& row : rows) {
      for (int64_t& key : row.slots[1]) key += 1000;
      row.slots[2][0] += 1050;
    }
    expect_reads(section, set / "part_0.parquet", {rows.begin(), rows.begin() + 1700});
  }
}

TEST_F(Parquet, TypesOfAllWidthsGiveTheSameValues) {
  using Type = ParquetType;
  const auto check = [&](const Column& dense, const Column& slot) {
    SCOPED_TRACE(cat(static_cast<int>(dense.type), " ", static_cast<int>(slot.type)));
    write(slot, dense);
    const ReadBatch seen = read(one_slot(), 3);
    EXPECT_EQ(seen.dense, (std::vector<float>{0, 1, 100}));
    EXPECT_EQ(seen.keys[0], (std::vector<int64_t>{0, 1, 100}));
  };
  const auto slot = numbers<int64_t>("s0", Type::i64, {0, 1, 100});
  const auto typed = [&]<class T>(Type type, T) {
    const std::vector<T> values = {T(0), T(1), T(100)};
    check(numbers("d0", type, values), numbers("s0", type, values));
    check(numbers("d0", type, values), lists<T>("s0", type, {{T(0), T(1)}, {}, {T(100)}}));
  };
  typed(Type::i8, int8_t{});
  typed(Type::i16, int16_t{});
  typed(Type::i32, int32_t{});
  typed(Type::i64, int64_t{});
  typed(Type::u8, uint8_t{});
  typed(Type::u16, uint16_t{});
  typed(Type::u32, uint32_t{});
  typed(Type::u64, uint64_t{});
  check(numbers<double>("d0", Type::f64, {0, 1, 100}), slot);
  check(numbers<Half>("d0", Type::f16, {Half(0), Half(1), Half(100)}), slot);
  check(texts("d0", {"0", "1", " 1e2"}), slot);
  write(numbers<uint8_t>("s0", Type::boolean, {1, 0, 1}), numbers<uint8_t>("d0", Type::boolean, {0, 1, 1}));
  EXPECT_EQ(read(one_slot(), 3).dense, (std::vector<float>{0, 1, 1}));
  EXPECT_EQ(read(one_slot(), 3).keys[0], (std::vector<int64_t>{1, 0, 1}));
}

TEST_F(Parquet, TextGetsTheKeysThatACsvGivesIt) {
  const std::vector<std::string> words = {"a", "05db9164", "a longer text, with a comma", "ä"};
  std::vector<std::optional<std::string>> column;
  std::string csv = "y,d0,s0,s1\n";
  for (int i = 0; i < 40; ++i) {
    column.push_back(words[static_cast<size_t>(i) % words.size()]);
    csv += cat("1,0.5,\"", *column.back(), "\",", i, "\n");
  }
  std::vector<int64_t> integers(40);
  for (int i = 0; i < 40; ++i) integers[static_cast<size_t>(i)] = i;
  write_parquet(file, {numbers("y", ParquetType::f32, std::vector<float>(40, 1)),
                       numbers("d0", ParquetType::f32, std::vector<float>(40, 0.5f)), texts("s0", column),
                       numbers("s1", ParquetType::i64, integers)});
  write_text(folder / "rows.csv", csv);
  for (const int64_t buckets : {0, 1000}) {
    DataSection parquet = named(1, {input_of("s", 2, 1, 2)});
    parquet_of(parquet).hash_seed = 11;
    parquet_of(parquet).slots[0].keys = KeyRule::hash;
    parquet_of(parquet).slots[0].buckets = buckets;
    DataSection text = parquet;
    text.format = kCsvFormat;
    csv_of(text) = {.columns = {},
                    .labels = {"y"},
                    .dense = parquet_of(parquet).dense,
                    .slots = parquet_of(parquet).slots,
                    .hash_seed = 11};
    const ReadBatch a = read(parquet, 40);
    expect_equal(a, *Rig(text, folder / "rows.csv", {.batch = 40, .repeat = false}).next());
    EXPECT_EQ(a.keys[0][0], csv_hashed_key("a", 11, 0, buckets > 0 ? buckets : kAllKeys));
  }
}

TEST_F(Parquet, NullsBecomeTheDefaultsThatAreStated) {
  const std::vector<int64_t> nulls = {0, 2};
  const Column dense = numbers<float>("d0", ParquetType::f32, {9, 1, 9, 3}, nulls);
  DataSection section = one_slot();
  parquet_of(section).default_dense = -1;
  parquet_of(section).default_key = "42";
  write(numbers<int32_t>("s0", ParquetType::i32, {9, 1, 9, 3}, nulls), dense);
  EXPECT_EQ(read(section, 4).dense, (std::vector<float>{-1, 1, -1, 3}));
  EXPECT_EQ(read(section, 4).keys[0], (std::vector<int64_t>{42, 1, 42, 3}));
  parquet_of(section).dense[0].fallback = 5;
  parquet_of(section).slots[0].fallback = "";
  EXPECT_EQ(read(section, 4).dense, (std::vector<float>{5, 1, 5, 3}));
  EXPECT_EQ(read(section, 4).offsets[0], (std::vector<int32_t>{0, 0, 1, 1, 2}));
  write(lists<int64_t>("s0", ParquetType::i64, {{}, {1, 2}, {}, {}}, nulls), dense);
  EXPECT_EQ(read(section, 4).offsets[0], (std::vector<int32_t>{0, 0, 2, 2, 2}));
  write(texts("s0", {std::nullopt, "x", "", "y"}), dense);
  parquet_of(section).slots[0].fallback = "x";
  const ReadBatch seen = read(section, 4);
  EXPECT_EQ(seen.keys[0], (std::vector<int64_t>{seen.keys[0][1], seen.keys[0][1], seen.keys[0][1], seen.keys[0][3]}));
  EXPECT_NE(seen.keys[0][1], seen.keys[0][3]);
}

TEST_F(Parquet, LabelsMayBeTextsIntegersAndThresholds) {
  const auto labels = [&](const Column& column, Positive positive) {
    write_parquet(file, {column, numbers<float>("d0", ParquetType::f32, {1, 2, 3}),
                         numbers<int64_t>("s0", ParquetType::i64, kThree)});
    DataSection section = one_slot();
    parquet_of(section).labels[0].positive = std::move(positive);
    return section;
  };
  const auto read_labels = [&](const Column& column, Positive positive) {
    return read(labels(column, std::move(positive)), 3).label;
  };
  const Column words = texts("y", {"no", "yes", " yes"});
  EXPECT_EQ(read_labels(words, {{"yes"}, {}}), (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(read_labels(words, {{"yes", "no"}, {}}), (std::vector<float>{1, 1, 0}));
  const Column integers = numbers<int16_t>("y", ParquetType::i16, {3, 5, 4});
  EXPECT_EQ(read_labels(integers, {{"5", "3"}, {}}), (std::vector<float>{1, 1, 0}));
  EXPECT_EQ(read_labels(integers, {{}, 4}), (std::vector<float>{0, 1, 1}));
  const Column fractions = numbers<double>("y", ParquetType::f64, {3.99, 4, 5});
  EXPECT_EQ(read_labels(fractions, {{}, 4}), (std::vector<float>{0, 1, 1}));
  EXPECT_EQ(read_labels(texts("y", {"3.99", "4", "5e0"}), {{}, 4}), (std::vector<float>{0, 1, 1}));
  EXPECT_SAYS(error(labels(fractions, {{"4"}, {}})), "but a label expects one text or integer in each row");
  EXPECT_SAYS(error(labels(words, {{}, 4})), "expected a number, found 'no'");
  EXPECT_SAYS(error(labels(texts("y", {"yes", std::nullopt, "no"}), {{"yes"}, {}})), "is null; a label has no default");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_SAYS(error(labels(numbers<double>("y", ParquetType::f64, {3, nan, 5}), {{}, 4})),
              "is NaN, which counts as missing");
}

TEST_F(Parquet, LabelsMayLackWhereTheSourceSaysSo) {
  const auto rows = [&](const std::vector<Column>& labels) {
    std::vector<Column> columns = {numbers<float>("d0", ParquetType::f32, {1, 2, 3}),
                                   numbers<int64_t>("s0", ParquetType::i64, kThree)};
    columns.insert(columns.begin() + 1, labels.begin(), labels.end());
    write_parquet(file, columns, 2);
  };
  const auto read_without = [&] {
    Rig rig(one_slot(), Source{.path = file.string(), .labels_optional = true}, {.batch = 3, .repeat = false});
    return std::pair{rig.reader->has_labels(), *rig.next()};
  };
  rows({});
  const auto [has_labels, seen] = read_without();
  EXPECT_FALSE(has_labels);
  EXPECT_EQ(seen.label, (std::vector<float>{kNoLabel, kNoLabel, kNoLabel}));
  EXPECT_EQ(seen.dense, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(seen.keys[0], kThree);
  EXPECT_SAYS(error(one_slot()), "there is no column 'y'");
  rows({numbers<float>("y", ParquetType::f32, {1, 9, 0}, {1})});
  EXPECT_TRUE(read_without().first);
  EXPECT_EQ(read_without().second.label, (std::vector<float>{1, kNoLabel, 0}));
  EXPECT_SAYS(error(one_slot()), "is null; a label has no default");
}

TEST_F(Parquet, ColumnsOfAnyTypeArePassedOnAsTexts) {
  write_parquet(file,
                {numbers<float>("y", ParquetType::f32, {1, 0, 1}), numbers<float>("d0", ParquetType::f32, {0.1f, 2, 3}),
                 numbers<int32_t>("s0", ParquetType::i32, {4, 5, 6}), texts("id", {{"a,1"}, {}, {"c|\"3\""}}),
                 numbers<int64_t>("big", ParquetType::i64, {-9007199254740993, 0, 7}, {1}),
                 numbers<double>("exact", ParquetType::f64, {0.1, 1e300, -2}),
                 numbers<uint8_t>("flag", ParquetType::boolean, {1, 0, 1}),
                 lists<int16_t>("list", ParquetType::i16, {{1, 2, 3}, {}, {-4}})});
  const Source source{
      .path = file.string(), .labels_optional = true, .keep = {"list", "id", "big", "exact", "flag", "d0", "id"}};
  const auto kept = [](Rig& rig) {
    std::vector<std::string> cells;
    while (rig.next()) {
      const KeptCells batch = rig.reader->take_passed_on().kept;
      for (size_t i = 0; i < batch.ends.size(); ++i) cells.emplace_back(batch.cell(i));
    }
    return cells;
  };
  const std::vector<std::string> first = {"1|2|3", "a,1", "-9007199254740993", "0.1", "true", "0.1", "a,1"},
                                 second = {"", "", "", "1e+300", "false", "2", ""},
                                 third = {"-4", "c|\"3\"", "7", "-2", "true", "3", "c|\"3\""};
  const auto joined = [](std::vector<std::vector<std::string>> rows) {
    std::vector<std::string> all;
    for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
    return all;
  };
  Rig rig(one_slot(), source, {.batch = 2, .repeat = false});
  EXPECT_EQ(kept(rig), joined({first, second, third}));
  Rig second_rank(one_slot(), source, {.batch = 2, .repeat = false, .rank = 1, .ranks = 2});
  EXPECT_EQ(kept(second_rank), second);
  // Skipping a row also skips its cells in other columns.
  DataSection section = one_slot();
  section.bad_records = BadRecordPolicy::skip;
  parquet_of(section).dense[0].columns = {"big"};
  section.options.edit<BadRecordsSection>() = {source.path + ".bad"};
  Rig skipping(section, source, {.batch = 2, .repeat = false});
  EXPECT_EQ(kept(skipping), joined({first, third}));
  const std::string aside = read_text(source.path + ".bad", "");
  EXPECT_EQ(std::ranges::count(aside, '\n'), 1);
  EXPECT_NE(aside.find(R"("record":2,"cause":"column 'big' ()"), std::string::npos) << aside;

  Source missing = source;
  missing.keep = {"ids"};
  EXPECT_NE(message_of([&] {
              Rig(one_slot(), missing, {.batch = 2});
            }).find("there is no column 'ids'; there are 'y', 'd0', 's0', 'id'"),
            std::string::npos);
}

TEST_F(Parquet, BadRowsAreNamedOrLeftOut) {
  const auto says = [&](const Column& slot, const std::string& words, KeyWidth width = KeyWidth::detect) {
    write(slot);
    const std::string message = error(one_slot(), width);
    EXPECT_SAYS(message, words);
    EXPECT_SAYS(message, "part.parquet': row 2 (row group 1, its row 2): column 's0' (");
  };
  says(numbers<int64_t>("s0", ParquetType::i64, {1, -5, 3}),
       "'-5' gives the key -5, but \"input_key_type\" \"I32\" allows only 0 to 4294967295", KeyWidth::u32);
  says(numbers<int64_t>("s0", ParquetType::i64, {1, 1ll << 32, 3}),
       "gives the key 4294967296, but \"input_key_type\" \"I32\" allows only 0 to 4294967295: set "
       "\"input_key_type\" to \"I64\"",
       KeyWidth::u32);
  says(numbers<int64_t>("s0", ParquetType::i64, {1, 2, 3}, {1}),
       "(int64): is null; set \"default\" or \"default_key\"");
  says(lists<int64_t>("s0", ParquetType::i64, {{1}, {1, 2, 3, 4}, {}}),
       "a list has 4 values, but the slots of a sample may have at most 3 keys in total");
  says(texts("s0", {"x", std::nullopt}), "is null; set \"default\"");
  DataSection two = named(1, {input_of("s", 2, 2, 3)});
  write_parquet(file, {numbers<float>("y", ParquetType::f32, {1, 1}), numbers<float>("d0", ParquetType::f32, {1, 1}),
                       lists<int64_t>("s0", ParquetType::i64, {{1}, {1, 2, 3}}),
                       lists<int64_t>("s1", ParquetType::i64, {{1, 2}, {}})});
  EXPECT_SAYS(error(two),
              "row 2 (row group 1, its row 2): column 's0' (list<element: int64>): slot 0 (of sparse input \"s\") has "
              "3 keys, more than its max_nnz of 2");
  two.sparse[0].max_nnz = 3;
  two.sparse[0].max_feature_num_per_sample = 3;
  EXPECT_EQ(error(two), "");
  write_parquet(file, {numbers<float>("y", ParquetType::f32, {1, 1}), numbers<float>("d0", ParquetType::f32, {1, 1}),
                       lists<int64_t>("s0", ParquetType::i64, {{1}, {1, 2, 3}}),
                       lists<int64_t>("s1", ParquetType::i64, {{1, 2}, {4}})});
  EXPECT_SAYS(
      error(two),
      "sparse input \"s\" has 4 keys in this sample up to slot 1, more than its max_feature_num_per_sample of 3");

  const float infinity = std::numeric_limits<float>::infinity();
  write(numbers<int64_t>("s0", ParquetType::i64, {1, 2, 3}), numbers<float>("d0", ParquetType::f32, {1, infinity, 3}));
  EXPECT_SAYS(error(one_slot()), "column 'd0' (float): the value inf is not a finite float");
  write(numbers<int64_t>("s0", ParquetType::i64, {1, 2, 3}), numbers<double>("d0", ParquetType::f64, {1, 1e300, 3}));
  EXPECT_SAYS(error(one_slot()), "column 'd0' (double): the value 1e+300 is not a finite float");
  write(numbers<int64_t>("s0", ParquetType::i64, {1, 2, 3}), texts("d0", {"1", "one", "3"}));
  EXPECT_SAYS(error(one_slot()), "column 'd0' (string): expected a number, found 'one'");

  // Skipping a row does not change the rows around it.
  DataSection skip = named(2, {input_of("a", 2, 3, 6)});
  skip.bad_records = BadRecordPolicy::skip;
  skip.slot_size_array = {0, 0};  // zero sizes: the reader adds no offsets to keys, and rejects negative keys
  auto rows = random_rows(skip, 9000, 8, 1000, true);
  auto columns = columns_of(rows, true);
  std::vector<Row> good;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool negative = i % 7 == 3 && !rows[i].slots[1].empty(), endless = i % 11 == 5;
    const int64_t minus = -1;
    if (negative) std::memcpy(columns[4].bytes[i].data(), &minus, sizeof minus);
    if (endless) std::memcpy(columns[2].bytes[i].data(), &infinity, sizeof infinity);
    if (!negative && !endless) good.push_back(rows[i]);
  }
  write_parquet(file, columns, 5000);
  expect_reads(skip, file, good);
}

TEST_F(Parquet, WhatDoesNotFitIsSaidBeforeAnyRowIsRead) {
  write(numbers<int64_t>("s0", ParquetType::i64, kThree));
  DataSection section = one_slot();
  parquet_of(section).slots[0].columns = {"s1"};
  EXPECT_SAYS(error(section), "part.parquet': there is no column 's1'; there are 'y', 'd0', 's0'");
  section = one_slot();
  parquet_of(section).labels.clear();
  EXPECT_SAYS(error(section), "which columns are the labels? There is no _metadata.json next to");
  write(numbers<int64_t>("s0", ParquetType::i64, kThree), lists<float>("d0", ParquetType::f32, {{1}, {2}, {3}}));
  EXPECT_SAYS(error(one_slot()),
              "column 'd0' is of type list<element: float>, but a dense value expects one number in each row");
}

TEST_F(Parquet, MetadataThatDisagreesIsAnError) {
  write(numbers<int64_t>("s0", ParquetType::i64, kThree));
  DataSection section = section_of(1, 1, {input_of("s", 1, 1, 1)});
  section.format = kParquetFormat;
  const auto with = [&](int64_t rows, const std::string& name, const std::string& cats) {
    write_text(folder / "_metadata.json", cat(R"({"file_stats": [{"file_name": ")", name, R"(", "num_rows": )", rows,
                                              R"(}], "conts": [{"col_name": "d0", "index": 1}],
      "labels": [{"col_name": "y", "index": 0}], "cats": )",
                                              cats, "}"));
    return error(section);
  };
  EXPECT_EQ(with(3, "part.parquet", R"([{"col_name": "s0", "index": 2}])"), "");
  EXPECT_SAYS(with(4, "part.parquet", R"([{"col_name": "s0", "index": 2}])"),
              "_metadata.json' says that 'part.parquet' has 4 rows; it has 3");
  EXPECT_SAYS(with(3, "other.parquet", R"([{"col_name": "s0", "index": 2}])"),
              "\"file_stats\" does not name 'part.parquet'");
  EXPECT_SAYS(with(3, "part.parquet", R"([{"col_name": "s0", "index": 1}])"),
              "says that column 's0' has the index 1, but in '");
  EXPECT_SAYS(with(3, "part.parquet", R"([{"col_name": "C1", "index": 2}])"), "there is no column 'C1'");
  EXPECT_SAYS(with(3, "part.parquet", "[]"), "\"cats\" names 0 columns, but the Data layer has 1 slots");
  EXPECT_SAYS(with(3, "part.parquet", "7"), "/cats: expected an array, found the integer 7");
  EXPECT_SAYS(with(3, "part.parquet", R"([{"index": 2}])"), "/cats/0/col_name: expected a string, found nothing");
  write(texts("s0", {"x"}), texts("d0", {"1"}));
  EXPECT_SAYS(
      with(1, "part.parquet", R"([{"col_name": "s0", "index": 2}])"),
      "a dense value expects one number in each row; to read its text as numbers, name the column in \"parquet\"");
}

TEST_F(Parquet, DamagedFilesAreErrors) {
  const DataSection section = named(2, {input_of("a", 2, 1, 2)});
  write_parquet(file, columns_of(random_rows(section, 30000, 9, 1 << 30, false), false), 15000);
  const auto whole = bytes_of(file);
  for (const size_t left : {size_t{0}, size_t{3}, size_t{100}, whole.size() / 2, whole.size() - 1}) {
    put_bytes(file, {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(left)});
    const std::string message = error(section);
    EXPECT_SAYS(message, left < 4 ? "" : "part.parquet' is not a complete Parquet file: ");
    EXPECT_NE(message, "") << left;
  }
  for (size_t at = 1000; at < whole.size() - 4000; at += whole.size() / 23) {
    auto bytes = whole;
    for (size_t i = 0; i < 40; ++i) bytes[at + i] ^= std::byte{0x5a};
    put_bytes(file, bytes);
    const std::string message = error(section);
    EXPECT_SAYS(message, "data: '");  // the checksums of the pages detect the damage
    EXPECT_SAYS(message, "': row group ");
    EXPECT_SAYS(message, "cannot be read from its row ");
  }
}

TEST_F(Parquet, APieceThatFailsStopsThoseBehindItAndNoneBefore) {
  write(numbers("s0", ParquetType::i64, std::vector<int64_t>(4 * kParquetPieceRows, 7)));
  ParquetRowGroup group(open_parquet(file), file, 0, {{0}, {1}, {2}}, 0);
  group.read(0, 0);
  group.fail(1);
  EXPECT_EQ(group.read(1, 0).values.rows, kParquetPieceRows);
  group.fail(2);  // the reader calls fail() for every piece that it drops
  EXPECT_EQ(group.read(2, 0).values.rows, kParquetPieceRows);
  EXPECT_SAYS(message_of([&] { group.read(0, 2); }), "row group 1: earlier rows could not be read");
}

TEST_F(Parquet, KeysFitFourBytesWhereColumnsHave) {
  const auto key_bytes = [&](const Column& slot, const std::vector<int64_t>& sizes = {}) {
    write(slot);
    DataSection section = one_slot();
    section.slot_size_array = sizes;
    return open_parquet_set(section, {file.string(), 0}, KeyWidth::detect, Log::silent())->key_bytes();
  };
  EXPECT_EQ(key_bytes(numbers("s0", ParquetType::i64, kThree)), 8);
  EXPECT_EQ(key_bytes(numbers("s0", ParquetType::i32, std::vector<int32_t>{7, 8, 9})), 4);
  EXPECT_EQ(key_bytes(numbers("s0", ParquetType::u32, std::vector<uint32_t>{7, 8, 9}), {int64_t{1} << 33}), 4)
      << "nothing is added to the first slot";
}

TEST_F(Parquet, APieceThatNobodyReadsLeavesNobodyWaiting) {
  write(numbers("s0", ParquetType::i64, std::vector<int64_t>(3 * kParquetPieceRows, 7)));
  const auto set = open_parquet_set(one_slot(), {file.string(), 0}, KeyWidth::detect, Log::silent());
  const auto cutter = set->open(0, {});
  const auto parser = set->parser();
  SampleBlock block;
  Chunk first, second, third;
  for (Chunk* chunk : {&first, &second, &third}) ASSERT_TRUE(cutter->next(*chunk));
  second = Chunk();
  EXPECT_EQ(parser->parse(first, block).count, 0);
  EXPECT_EQ(block.rows, kParquetPieceRows);
  EXPECT_SAYS(message_of([&] { parser->parse(third, block); }), "earlier rows could not be read");
}

TEST_F(Parquet, InspectionNamesADamagedPageAndGoesOnWithTheOtherFiles) {
  const DataSection section = named(1, {input_of("a", 1, 1, 1)});
  const auto columns = columns_of(random_rows(section, 3 * kParquetPieceRows, 9, 1 << 30, false), false);
  write_parquet(file, columns);
  write_parquet(folder / "whole.parquet", columns);
  auto bytes = bytes_of(file);
  for (size_t i = 0; i < 40; ++i) bytes[bytes.size() / 2 + i] ^= std::byte{0x5a};
  put_bytes(file, bytes);
  const Inspection found = inspect({file, folder / "whole.parquet"}, {.section = section, .threads = 2});
  ASSERT_GT(found.problem_count, 0);
  EXPECT_SAYS(found.problems[0], "part.parquet': row group 1 of 1, column '");
  EXPECT_GE(found.samples, 3 * kParquetPieceRows);
}

TEST_F(Parquet, ACriteoSampleThatSparkWroteHoldsRowsOfTheSampleAsText) {
  const char* given = std::getenv("HCTR_SHARED_DATA");
  const fs::path shared = given ? fs::path(given) : hctr::test::source_dir() / "../shared/data";
  const fs::path parts = shared / "criteo_kaggle_parquet", text = shared / "criteo_kaggle_sample.tsv.gz";
  if (!fs::exists(parts) || !fs::exists(text))
    GTEST_SKIP() << "no Criteo sample in " << shared << "; set HCTR_SHARED_DATA to the folder that holds it";
  DataSection section = section_of(1, 13, {input_of("deep", 26, 1, 26)});
  section.format = kParquetFormat;
  parquet_of(section) = {.labels = {"label"},
                         .dense = {DenseColumns{.columns = {}, .mean = {}, .std = {}, .fallback = 0}},
                         .slots = {SlotColumns{}}};
  parquet_of(section).default_key = "";
  for (int i = 1; i <= 13; ++i) parquet_of(section).dense[0].columns.push_back(cat("I", i));
  for (int i = 1; i <= 26; ++i) parquet_of(section).slots[0].columns.push_back(cat("C", i));
  DataSection csv = section;
  csv.format = kCsvFormat;
  csv_of(csv) = {.delimiter = "\t",
                 .quote = "",
                 .header = false,
                 .columns = {"label"},
                 .labels = parquet_of(section).labels,
                 .dense = parquet_of(section).dense,
                 .slots = parquet_of(section).slots};
  for (const auto* columns : {&parquet_of(section).dense[0].columns, &parquet_of(section).slots[0].columns})
    csv_of(csv).columns.insert(csv_of(csv).columns.end(), columns->begin(), columns->end());
  const auto rows_of = [](const DataSection& of, const fs::path& source, std::multiset<std::string>& rows) {
    Rig rig(of, source, {.batch = 1000, .workers = 2, .repeat = false});
    while (const auto seen = rig.next())
      for (int32_t r = 0; r < seen->state.valid_samples; ++r) {
        std::string row(reinterpret_cast<const char*>(&seen->label[static_cast<size_t>(r)]), 4);
        row.append(reinterpret_cast<const char*>(&seen->dense[static_cast<size_t>(13 * r)]), 13 * 4);
        for (size_t s = 0; s < 26; ++s) {
          const int32_t* bag = &seen->offsets[0][s * 1000 + static_cast<size_t>(r)];
          row += cat(" ", bag[1] > bag[0] ? seen->keys[0][static_cast<size_t>(bag[0])] : -1);
        }
        rows.insert(row);
      }
  };
  std::multiset<std::string> all, some;
  rows_of(csv, text, all);
  EXPECT_EQ(all.size(), 104049u);
  for (const char* part : {"part-00001", "part-00002", "part-00004"})
    rows_of(section, parts / cat(part, ".snappy.parquet"), some);
  EXPECT_EQ(some.size(), 1719u + 1640u + 1560u);
  int64_t missing = 0;
  for (const std::string& row : some) missing += !all.contains(row);
  EXPECT_EQ(missing, 0);
}

}  // namespace
}  // namespace hctr::data_test
