// Samples of feature specifications. The rows do not depend on the distribution of columns over chunks and files, and
// equal the rows in other formats.
#include "formats/features/feature_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>

#include "core/base/half.h"
#include "core/base/platform.h"
#include "formats/catalog/bad_records_file.h"
#include "formats/catalog/data_schema.h"
#include "formats/features/feature_section.h"
#include "formats/features/feature_spec.h"
#include "formats/raw/raw_set.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

/// A data set as columns, which are written to files as the chunks of its specification require.
struct FeatureTable {
  FeatureSpec spec;
  std::vector<std::vector<double>> values;  // [features][rows]
  size_t rows = 0;

  size_t add(const std::string& channel, const std::string& name, FeatureType type, std::optional<int64_t> cardinality,
             std::vector<double> column) {
    spec.features.push_back({name, type, cardinality});
    auto found = std::find_if(spec.channels.begin(), spec.channels.end(),
                              [&](const FeatureChannel& each) { return each.name == channel; });
    if (found == spec.channels.end()) found = spec.channels.insert(found, {channel, {}});
    found->features.push_back(spec.features.size() - 1);
    rows = column.size();
    values.push_back(std::move(column));
    return spec.features.size() - 1;
  }
  /// Adds a chunk to the mapping "train", and distributes its rows over files with `lengths` rows. The last file gets
  /// the remaining rows.
  void chunk(FeatureChunk::Kind kind, const std::vector<size_t>& features, const std::vector<size_t>& lengths = {}) {
    if (spec.sources.empty()) spec.sources.push_back({"train", {}});
    auto& chunks = spec.sources[0].chunks;
    chunks.push_back({kind, features, {}});
    size_t row = 0;
    for (size_t f = 0; f <= lengths.size(); ++f) {
      const size_t end = f == lengths.size() ? rows : std::min(rows, row + lengths[f]);
      const fs::path file =
          spec.folder / cat("c", chunks.size(), "_", f, kind == FeatureChunk::Kind::csv ? ".csv" : ".bin");
      write_text(file, kind == FeatureChunk::Kind::csv ? text(features, row, end) : bytes(features, row, end));
      chunks.back().files.push_back(file);
      row = end;
    }
  }
  void finish() const { write_text(spec.folder / "spec.yaml", to_yaml(spec)); }

 private:
  std::string text(const std::vector<size_t>& features, size_t begin, size_t end) const {
    std::string all;
    for (size_t r = begin; r < end; ++r) {
      if (r % 7 == 3) all += r % 2 ? "\n" : "\r\n";  // readers must skip blank lines
      for (size_t i = 0; i < features.size(); ++i) {
        char cell[64];
        std::snprintf(cell, sizeof cell, "%s%.17g", i == 0 ? "" : r % 5 ? "," : " , ", values[features[i]][r]);
        all += cell;
      }
      if (r + 1 < end || r % 2) all += r % 3 ? "\n" : "\r\n";
    }
    return all;
  }
  std::string bytes(const std::vector<size_t>& features, size_t begin, size_t end) const {
    std::string all;
    const auto put = [&](auto value) { all.append(reinterpret_cast<const char*>(&value), sizeof value); };
    for (size_t r = begin; r < end; ++r)
      for (const size_t feature : features) {
        const double value = values[feature][r];
        switch (spec.features[feature].type) {
          case FeatureType::boolean:
          case FeatureType::u8:
            put(static_cast<uint8_t>(value));
            break;
          case FeatureType::i8:
            put(static_cast<int8_t>(value));
            break;
          case FeatureType::i16:
            put(static_cast<int16_t>(value));
            break;
          case FeatureType::u16:
            put(static_cast<uint16_t>(value));
            break;
          case FeatureType::i32:
            put(static_cast<int32_t>(value));
            break;
          case FeatureType::u32:
            put(static_cast<uint32_t>(value));
            break;
          case FeatureType::i64:
            put(static_cast<int64_t>(value));
            break;
          case FeatureType::u64:
            put(static_cast<uint64_t>(value));
            break;
          case FeatureType::f16:
            put(Half(static_cast<float>(value)));
            break;
          case FeatureType::f32:
            put(static_cast<float>(value));
            break;
          case FeatureType::f64:
            put(value);
            break;
        }
      }
    return all;
  }
};

/// A section for the specification in `folder`. It is completed and checked like the section of a config.
DataSection section_for(const Folder& folder, int64_t labels, int64_t dense, std::vector<SparseInput> inputs) {
  DataSection section = section_of(labels, dense, std::move(inputs));
  section.feature_spec = (folder / "spec.yaml").string();
  Problems problems;
  complete_feature_section(section, "/layers/0", problems);
  if (!problems.any_error()) check_feature_section(section, "/layers/0", problems);
  problems.throw_if_any("config");
  return section;
}

struct FeatureDraws {
  uint64_t state;
  uint64_t below(uint64_t limit) { return (state = mix64(state)) % limit; }
};

/// A table with random columns: slots of every integer type, and numbers of every type. `rows_of` receives the rows of
/// the table.
FeatureTable random_table(const fs::path& folder, FeatureDraws& draw, size_t rows, std::vector<Row>& rows_of,
                          DataSection& shape) {
  FeatureTable table;
  table.spec.folder = folder;
  rows_of.assign(rows, {});
  const auto column = [&](auto&& value) {
    std::vector<double> all(rows);
    for (double& one : all) one = value();
    return all;
  };
  const FeatureType all[] = {FeatureType::boolean, FeatureType::i8,  FeatureType::u8,  FeatureType::i16,
                             FeatureType::u16,     FeatureType::i32, FeatureType::u32, FeatureType::i64,
                             FeatureType::u64,     FeatureType::f16, FeatureType::f32, FeatureType::f64};
  const auto labels = 1 + static_cast<int64_t>(draw.below(3)), dense = static_cast<int64_t>(draw.below(5)),
             slots = 1 + static_cast<int64_t>(draw.below(8));
  shape = section_of(labels, dense, {input_of("a", 1, 1, 1)});
  if (slots > 1) shape.sparse.push_back(input_of("b", slots - 1, 1, slots - 1));
  for (int64_t i = 0; i < labels + dense; ++i) {
    const FeatureType type = all[draw.below(12)];
    const auto values = column([&] {  // values that are exact in every type
      const double whole = static_cast<double>(draw.below(type == FeatureType::boolean ? 2 : 100));
      return is_whole(type) ? whole : (whole - 50) / 8;
    });
    table.add(i < labels ? "label" : "numerical", cat("n", i), type, {}, values);
    for (size_t r = 0; r < rows; ++r)
      (i < labels ? rows_of[r].label : rows_of[r].dense).push_back(static_cast<float>(values[r]));
  }
  int64_t base = 0;
  for (int64_t s = 0; s < slots; ++s) {
    const FeatureType type = all[draw.below(9)];
    const auto most = static_cast<uint64_t>(std::min(most_of(type), 3e9)) + 1;
    const auto cardinality = static_cast<int64_t>(type == FeatureType::boolean ? 2 : 1 + draw.below(most));
    const auto values = column([&] { return static_cast<double>(draw.below(static_cast<uint64_t>(cardinality))); });
    table.add("categorical", cat("s", s), type, cardinality, values);
    for (size_t r = 0; r < rows; ++r) rows_of[r].slots.push_back({base + static_cast<int64_t>(values[r])});
    base += cardinality;
  }
  std::vector<size_t> left(table.spec.features.size());
  for (size_t i = 0; i < left.size(); ++i) left[i] = i;
  while (!left.empty()) {
    std::vector<size_t> some, lengths;
    for (uint64_t count = 1 + draw.below(left.size()); count > 0; --count) {
      const auto at = left.begin() + static_cast<ptrdiff_t>(draw.below(left.size()));
      some.push_back(*at);
      left.erase(at);
    }
    for (uint64_t files = draw.below(4); files > 0; --files) lengths.push_back(draw.below(rows + 1));
    table.chunk(draw.below(2) ? FeatureChunk::Kind::csv : FeatureChunk::Kind::split_binary, some, lengths);
  }
  table.finish();
  return table;
}

TEST(FeatureSet, RowsOfAnyShapeComeBackHoweverTheirColumnsAreSpread) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Folder folder;
    FeatureDraws draw{mix64(seed)};
    std::vector<Row> rows;
    DataSection shape;
    const size_t count = seed % 20 == 0 ? 40000 : 1 + draw.below(900);  // 40000 rows are several chunks
    random_table(folder.path(), draw, count, rows, shape);
    SCOPED_TRACE(cat("seed ", seed, "\n", read_text(folder / "spec.yaml", "spec")));
    const DataSection section = section_for(folder, shape.label.label_dim, shape.dense.dense_dim, shape.sparse);
    expect_reads(section, "train", rows, 1 + static_cast<int64_t>(draw.below(700)));
    if (::testing::Test::HasFailure()) return;
  }
}

/// 30000 rows with a label, two dense values and five slots, as columns and as rows.
struct Samples : ::testing::Test {
  Samples() {
    FeatureDraws draw{5};
    const auto column = [&](uint64_t limit, double scale) {
      std::vector<double> all(kRows);
      for (double& one : all)
        one = static_cast<double>(static_cast<float>(static_cast<double>(draw.below(limit)) / scale));
      return all;
    };
    table.spec.folder = folder.path();
    table.add("label", "click", FeatureType::boolean, {}, column(2, 1));
    table.add("numerical", "age", FeatureType::f32, {}, column(1000, 7));
    table.add("numerical", "price", FeatureType::f32, {}, column(1000, 3));
    for (size_t s = 0; s < 5; ++s)
      table.add("categorical", cat("s", s), FeatureType::i32, sizes[s], column(static_cast<uint64_t>(sizes[s]), 1));
    for (size_t r = 0; r < kRows; ++r) {
      Row row;
      const auto at = [&](size_t feature) { return static_cast<float>(table.values[feature][r]); };
      row.label = {at(0)};
      row.dense = {at(1), at(2)};
      int64_t base = 0;
      for (size_t s = 0; s < 5; base += sizes[s++])
        row.slots.push_back({base + static_cast<int64_t>(table.values[3 + s][r])});
      rows.push_back(std::move(row));
    }
  }
  FeatureTable with(const std::function<void(FeatureTable&)>& chunks) {
    FeatureTable copy = table;
    chunks(copy);
    copy.finish();
    return copy;
  }
  DataSection section() { return section_for(folder, 1, 2, inputs); }
  std::string reads() {
    return message_of([&] { expect_reads(section(), "train", rows); });
  }

  static constexpr size_t kRows = 30000;
  const std::vector<int64_t> sizes = {3, 100, 2655, 70000, 7};
  const std::vector<SparseInput> inputs = {input_of("a", 2, 1, 2), input_of("b", 3, 1, 3)};
  Folder folder;
  FeatureTable table;
  std::vector<Row> rows;
};

void two_texts(FeatureTable& table) {
  table.chunk(FeatureChunk::Kind::csv, {7, 0, 3}, {10000});
  table.chunk(FeatureChunk::Kind::csv, {1, 2, 4, 5, 6}, {1, 0, 25000});
}
void binary_columns(FeatureTable& table) {
  table.chunk(FeatureChunk::Kind::split_binary, {1, 2}, {100});
  for (const size_t feature : {0, 3, 4, 5, 6, 7}) table.chunk(FeatureChunk::Kind::split_binary, {feature}, {20000});
}
void one_of_each(FeatureTable& table) {
  table.chunk(FeatureChunk::Kind::csv, {0, 2, 5}, {12345});
  table.chunk(FeatureChunk::Kind::split_binary, {1, 7, 6, 4, 3}, {5000});
}

TEST_F(Samples, TextBinaryRawAndNormDeliverTheSameBatchesBitForBit) {
  DataSection norm = section_of(1, 2, inputs), raw = norm;
  write_rows(folder / "norm.data", style_of(norm, Check::sum, 4), rows);
  write_file_list(folder / "list.txt", {folder / "norm.data"}, true);
  raw.format = kRawFormat;
  raw.float_label_dense = true;
  raw.slot_size_array = sizes;
  std::string bytes;
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t i = 0; i < 3; ++i)
      bytes.append(std::bit_cast<std::array<char, 4>>(static_cast<float>(table.values[i][r])).data(), 4);
    for (size_t s = 3; s < 8; ++s)
      bytes.append(std::bit_cast<std::array<char, 4>>(static_cast<int32_t>(table.values[s][r])).data(), 4);
  }
  write_text(folder / "all.raw", bytes);
  const auto batches = [&](const DataSection& of, const fs::path& source, ReaderOptions options) {
    return Rig(of, source, options).all(options.repeat ? 50 : 1000);
  };
  for (const auto& options :
       {ReaderOptions{.batch = 999, .workers = 2, .repeat = false},
        ReaderOptions{.batch = 2001, .workers = 3, .repeat = true, .rank = 1, .ranks = 3},
        ReaderOptions{.batch = 512, .workers = 3, .repeat = true, .shuffle = 5000, .seed = 9},
        ReaderOptions{.batch = 4096, .workers = 1, .repeat = false, .keep_last_partial = false}}) {
    const auto expected = batches(norm, folder / "list.txt", options);
    std::vector<std::vector<ReadBatch>> others = {batches(raw, folder / "all.raw", options)};
    for (const auto& chunks : {two_texts, binary_columns, one_of_each}) {
      with(chunks);
      others.push_back(batches(section(), "train", options));
    }
    for (const auto& other : others) {
      ASSERT_EQ(other.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) expect_equal(other[i], expected[i]);
    }
  }
}

TEST_F(Samples, AReaderGoesOnFromAnyPlace) {
  for (const auto& chunks : {two_texts, binary_columns, one_of_each})
    for (const int64_t shuffle : {0, 3000}) {
      with(chunks);
      const ReaderOptions options{.batch = 4000, .workers = 2, .repeat = true, .shuffle = shuffle};
      Rig whole(section(), "train", options);
      for (int i = 0; i < 12; ++i) {  // the batches continue into the second pass
        const auto seen = whole.next();
        if (i % 3 != 2 || (kSanitized && i % 6 != 2)) continue;
        ReaderOptions later = options;
        later.from = whole.reader->position();
        Rig rest(section(), "train", later);
        Rig again(section(), "train", options);
        for (int skip = 0; skip <= i; ++skip) again.next();
        expect_equal(*rest.next(), *again.next());
      }
    }
}

TEST_F(Samples, NoMoreThanNumSamplesAreRead) {
  for (const auto& chunks : {two_texts, binary_columns, one_of_each}) {
    with(chunks);
    const DataSection of = section();
    const auto read = [&](int64_t stated) {
      const BatchLayout layout(batch_shape(of, 10000));
      std::vector<std::byte> memory(layout.bytes);
      Reader reader(of, {"train", stated}, layout, {memory.data()}, {.batch = 10000, .repeat = false}, Log::silent());
      int64_t samples = 0;
      while (const auto slot = reader.next()) {
        samples += BatchView(layout, memory.data()).state->valid_samples;
        reader.release(*slot);
      }
      return samples;
    };
    EXPECT_EQ(read(23456), 23456);
    EXPECT_EQ(read(0), 30000);
    EXPECT_SAYS(message_of([&] { read(30001); }), "holds 30000 rows, but the Data layer expects 30001");
  }
}

TEST_F(Samples, BadRowsAreErrorsOrLeftOutWithAllTheirColumns) {
  table.values[6][20001] = 70000;  // 70000 is not an id of this slot
  table.values[1][5] = NAN;
  table.values[4][5] = -1;  // a second invalid value in the same row
  table.values[3][29999] = 3;
  auto good = rows;
  for (const size_t bad : {29999, 20001, 5}) good.erase(good.begin() + static_cast<ptrdiff_t>(bad));
  for (const auto& chunks : {two_texts, binary_columns, one_of_each}) {
    with(chunks);
    DataSection of = section();
    EXPECT_SAYS(message_of([&] { expect_reads(of, "train", rows); }), chunks == two_texts ? "c2_2.csv' line "
                                                                      : chunks == binary_columns
                                                                          ? "c1_0.bin' row 6: feature age: nan"
                                                                          : ".bin' row 6: ");
    of.bad_records = BadRecordPolicy::skip;
    expect_reads(of, "train", good, 777);
    Rig rig(of, "train", {.batch = 1000, .workers = 2, .repeat = false});
    rig.all();
    EXPECT_EQ(rig.reader->skipped_records(), 3);
    const fs::path aside = fs::path(table.spec.features[0].name + ".bad");
    of.options.edit<BadRecordsSection>() = {(folder / aside).string()};
    Rig(of, "train", {.batch = 1000, .workers = 2, .repeat = false}).all();
    const std::string lines = read_text(folder / aside, "");
    EXPECT_EQ(std::ranges::count(lines, '\n'), 3);
    if (chunks == binary_columns) {
      EXPECT_NE(lines.find(R"(c1_0.bin","record":6,"offset":)"), std::string::npos) << lines;
    }
    fs::remove(folder / aside);
  }
}

TEST_F(Samples, ALabelWithACardinalityIsHeldAgainstItInEveryKindOfChunk) {
  table.spec.features[0] = {"click", FeatureType::i8, 2};
  for (const double wrong : {2.0, -1.0}) {
    table.values[0][10] = wrong;
    for (const auto& chunks : {two_texts, binary_columns, one_of_each}) {
      with(chunks);
      EXPECT_SAYS(reads(), cat("feature click: ", wrong, " is not an id below its cardinality of 2"));
    }
  }
}

TEST_F(Samples, WhatIsWrongInTheFilesIsNamedWithFilePlaceColumnAndValue) {
  const auto text = with(two_texts).spec.sources[0].chunks;
  const auto spoil = [&](const fs::path& file, const std::string& content) {
    const std::string before = read_text(file, "test");
    write_text(file, content);
    const std::string message = reads();
    write_text(file, before);
    return message;
  };
  const fs::path first = text[0].files[0], last = text[1].files[3];
  EXPECT_SAYS(spoil(first, "1,0,2\n1,0\n"),
              cat("data: '", first.string(),
                  "' line 2: expected 3 values separated by commas, one for each feature of the chunk, found 2"));
  EXPECT_SAYS(spoil(first, "s4,click,s0\n1,0,2\n"),
              "line 1: feature s4: expected a whole number (int32), found 's4'; a csv chunk has no header line");
  EXPECT_SAYS(spoil(first, "1,0,2\n\n7,1,2\n"), "line 3: feature s4: 7 is not an id below its cardinality of 7");
  EXPECT_SAYS(spoil(first, "1,2,2\n"), "line 1: feature click: 2 does not fit its type bool");
  EXPECT_SAYS(spoil(first, "1,1,2\n"),
              cat("the chunks of mapping \"train\" differ in length: the chunk of '", first.string(),
                  "' ends after 20001 rows, the chunk of '", text[1].files[0].string(), "' has more"));
  EXPECT_SAYS(spoil(last, std::string(2 << 20, '1')), "line 1: more than 1048576 bytes without a line end");
  EXPECT_SAYS(spoil(last, "1,nan,1,1,1\n"), "line 1: feature price: nan is not a finite float");
  EXPECT_SAYS(spoil(last, "1,1e39,1,1,1\n"), "line 1: feature price: 1e+39 does not fit its type float32");
  fs::rename(last, folder / "away");
  EXPECT_SAYS(reads(), cat("io: cannot open data file '", last.string(), "': No such file"));

  const auto binary = with(binary_columns).spec.sources[0].chunks;
  const fs::path ids = binary[2].files[1];
  EXPECT_SAYS(spoil(ids, std::string(39999, '\0')),
              cat("data: '", ids.string(),
                  "' has 39999 bytes, which is not a whole number of rows of 4 bytes; was the file truncated"));
  EXPECT_SAYS(spoil(ids, std::string(39996, '\0')),
              cat("differ in length: the chunk of '", binary[1].files[0].string(), "' has 30000 rows, the chunk of '",
                  binary[2].files[0].string(), "' 29999"));
  std::string bytes(40000, '\0');
  bytes[4 * 9876 + 1] = 1;
  EXPECT_SAYS(spoil(ids, bytes),
              cat("'", ids.string(), "' row 9877: feature s0: 256 is not an id below its cardinality of 3"));
  EXPECT_SAYS(spoil(binary[1].files[0], std::string(20000, '\7')),
              "row 1: feature click: 7 does not fit its type bool");
}

TEST_F(Samples, IdsWithoutACardinalityAreKeysOrCheckedAgainstSlotSizeArray) {
  for (size_t s = 3; s < 8; ++s) table.spec.features[s].cardinality.reset();
  with(one_of_each);
  auto plain = rows;
  for (size_t r = 0; r < kRows; ++r)
    for (size_t s = 0; s < 5; ++s) plain[r].slots[s] = {static_cast<int64_t>(table.values[3 + s][r])};
  DataSection of = section();
  EXPECT_TRUE(of.slot_size_array.empty());
  expect_reads(of, "train", plain, 999);
  of.slot_size_array = sizes;
  expect_reads(of, "train", rows, 999);
  of.slot_size_array[3] = 69000;
  EXPECT_SAYS(message_of([&] { expect_reads(of, "train", rows); }),
              "is not an id: \"slot_size_array\" allows ids from 0 to 68999 in slot 3");
}

TEST_F(Samples, TheLayerIsHeldAgainstTheSpecification) {
  with(one_of_each);
  const auto problems = [&](const std::string& change) {
    return message_of([&] {
      Problems found;
      data_section_of(Json::parse(cat(R"({"layers": [{"type": "Data", )", change, R"(, "feature_spec": ")",
                                      (folder / "spec.yaml").string(), R"("}]})"),
                                  "x"),
                      found);
      found.throw_if_any("x");
    });
  };
  const std::string label = R"("label": {"top": "y", "label_dim": 1}, )",
                    dense = R"("dense": {"top": "x", "dense_dim": 2}, )";
  const std::string sparse = R"("sparse": [{"top": "a", "slot_num": 5, "nnz_per_slot": 1}])";
  EXPECT_EQ(problems(label + dense + sparse), "");
  EXPECT_SAYS(
      problems(R"("label": {"top": "y", "label_dim": 2}, )" + dense + sparse),
      "/layers/0/label/label_dim: is 2, but the channel \"label\" of the feature specification has 1 feature: click");
  EXPECT_SAYS(problems(label + R"("dense": {"top": "x", "dense_dim": 0}, )" + sparse),
              "/layers/0/dense/dense_dim: is 0, but the channel \"numerical\" of the feature specification has 2 "
              "features: age, price");
  EXPECT_SAYS(problems(label + dense + R"("sparse": [{"top": "a", "slot_num": 3, "nnz_per_slot": 1}])"),
              "/layers/0/sparse: the inputs without a channel of the same name have 3 slots in total, but the "
              "channel \"categorical\" of the feature specification has 5 features");
  EXPECT_SAYS(problems(label + dense + R"("sparse": [{"top": "numerical", "slot_num": 2, "nnz_per_slot": 1}])"),
              "/layers/0/sparse/0: the feature \"age\" has the type float32; ids are integers");
  EXPECT_SAYS(problems(label + dense + R"("sparse": [{"top": "a", "slot_num": 5, "max_feature_num_per_sample": 4}])"),
              "/layers/0/sparse/0: each feature puts one key into its slot, so a sample has 5 keys; the input's "
              "limits allow only 4");
  EXPECT_SAYS(problems(label + dense + sparse + R"(, "source": "trian")"),
              "/layers/0/source: the feature specification has no mapping \"trian\"; there is train");
  EXPECT_SAYS(
      problems(label + dense + sparse + R"(, "format": "Raw")"),
      "/layers/0/format: a feature specification defines how samples are stored; remove \"Raw\" or \"feature_spec\"");
  EXPECT_SAYS(problems(label + dense + sparse + R"(, "slot_size_array": [1, 2])"),
              "/layers/0/slot_size_array: has 2 numbers for 5 slots");
  EXPECT_SAYS(problems(label + dense + sparse + R"(, "slot_size_array": [3, 99, 2655, 70000, 7])"),
              "/layers/0/slot_size_array/1: is 99, but the feature \"s1\" has ids below its cardinality of 100");
  table.spec.features[4] = {"s1", FeatureType::i64, (1LL << 48) + 1};
  with(one_of_each);
  EXPECT_SAYS(problems(label + dense + sparse),
              "/layers/0/slot_size_array/1: the feature \"s1\" has a cardinality of 281474976710657, but a slot has at "
              "most 281474976710656 ids; correct or remove the cardinality");
  fs::remove(folder / "spec.yaml");
  EXPECT_EQ(problems(label + dense + sparse), "") << "not there yet";
}

TEST(FeatureSection, AnInputReadsTheChannelOfItsNameAndTheOthersShareTheUsualOne) {
  FeatureSpec spec;
  for (const char* name : {"u0", "c0", "c1", "u1", "c2"}) spec.features.push_back({name, FeatureType::i32, 10});
  spec.channels = {{"categorical", {1, 2, 4}}, {"user", {3, 0}}, {"label", {0}}};
  Problems problems;
  const FeatureUse use = use_features(
      spec, section_of(1, 0, {input_of("first", 1, 1, 1), input_of("user", 2, 1, 2), input_of("rest", 2, 1, 2)}), "",
      problems);
  EXPECT_FALSE(problems.any_error());
  EXPECT_EQ(use.slots, (std::vector<size_t>{1, 3, 0, 2, 4}));
  EXPECT_EQ(use.labels, std::vector<size_t>{0}) << "a feature may be several things";
}

}  // namespace
}  // namespace hctr::data_test
