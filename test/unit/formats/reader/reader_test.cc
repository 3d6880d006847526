#include "formats/reader/reader.h"
#include "formats/norm/norm_set.h"
#include "formats/raw/raw_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include "formats/catalog/bad_records_file.h"
#include "unit/formats/data/raw_test_files.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

DataSection two_norm_inputs() { return section_of(2, 3, {input_of("wide", 1, 4, 4), input_of("deep", 5, 2, 7)}); }

/// A set of several files with different sizes, checks and key widths.
struct DataSet {
  explicit DataSet(const DataSection& section, std::vector<int64_t> sizes = {700, 1, 0, 1300, 64}) {
    std::vector<fs::path> files;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const bool raw = section.format == kRawFormat;
      const auto part = random_rows(section, sizes[i], i + 1, 1 << 30, !raw);
      files.push_back(folder / cat("part", i, ".data"));
      if (raw)
        put_bytes(files.back(), raw_bytes(part, true));
      else
        write_rows(files.back(), style_of(section, i % 2 ? Check::sum : Check::none, i % 3 ? 4 : 8), part);
      rows.insert(rows.end(), part.begin(), part.end());
    }
    list = folder / "list.txt";
    write_file_list(list, files, true);
  }
  Folder folder;
  std::vector<Row> rows;
  fs::path list;
};

/// Tests both ways of reading: by chunks (Norm), and directly into batches (Raw).
class EachReader : public testing::TestWithParam<DataFormat> {
 protected:
  static DataSection two_inputs() {
    if (GetParam() == kNormFormat) return two_norm_inputs();
    DataSection section = section_of(2, 3, {input_of("wide", 1, 1, 1), input_of("deep", 5, 1, 5)});
    section.format = kRawFormat;
    section.float_label_dense = true;
    return section;
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, EachReader, testing::Values(kNormFormat, kRawFormat),
                         [](const auto& way) { return std::string(way.param == kNormFormat ? "Blocks" : "Rows"); });

TEST_P(EachReader, BatchesHoldTheRowsInListOrderForAnyNumberOfWorkersAndTheLastMayBePartial) {
  const DataSection section = two_inputs();
  const DataSet set(section);
  for (const int workers : {1, 2, 5}) {
    Rig rig(section, set.list, {.batch = 128, .workers = workers, .repeat = false});
    EXPECT_EQ(rig.reader->samples(), 2065);
    const auto batches = rig.all();
    ASSERT_EQ(batches.size(), 17u);
    for (size_t i = 0; i < batches.size(); ++i) {
      const int64_t first = static_cast<int64_t>(i) * 128;
      EXPECT_EQ(batches[i].state.first_sample, first);
      EXPECT_EQ(batches[i].state.valid_samples, i == 16 ? 17 : 128);
      EXPECT_EQ(batches[i].state.global_samples, i == 16 ? 17 : 128);
      expect_batch(batches[i], rig.layout.shape, set.rows, first);
    }
    EXPECT_FALSE(rig.reader->next()) << "the end stays the end";
  }
}

TEST(Reader, LongerSlotsKeepTheirFirstOrLastKeys) {
  for (const bool last : {false, true}) {
    DataSection section = two_inputs();
    const DataSet set(section);
    (last ? section.sparse[0].keep_last : section.sparse[0].keep_first) = 3;
    (last ? section.sparse[1].keep_last : section.sparse[1].keep_first) = 1;
    std::vector<Row> rows = set.rows;
    for (Row& row : rows)
      for (size_t s = 0; s < row.slots.size(); ++s) {
        const size_t kept = std::min<size_t>(row.slots[s].size(), s == 0 ? 3 : 1),
                     begin = last ? row.slots[s].size() - kept : 0;
        row.slots[s] = std::vector<int64_t>(row.slots[s].begin() + static_cast<ptrdiff_t>(begin),
                                            row.slots[s].begin() + static_cast<ptrdiff_t>(begin + kept));
      }
    Rig rig(section, set.list, {.batch = 128, .workers = 2, .repeat = false});
    const auto batches = rig.all();
    ASSERT_EQ(batches.size(), 17u);
    for (size_t i = 0; i < batches.size(); ++i)
      expect_batch(batches[i], rig.layout.shape, rows, static_cast<int64_t>(i) * 128);
  }
}

/// The look-ahead callback receives each complete batch before the training thread receives it.
TEST_P(EachReader, BatchesAreShownOnceTheyAreFilled) {
  const DataSection section = two_inputs();
  const DataSet set(section);
  std::mutex mutex;
  std::map<int64_t, int64_t> filled;  // sum of the keys of each batch, indexed by its first sample
  const auto sum_of_keys = [](const BatchView& batch) {
    int64_t sum = 0;
    for (size_t t = 0; t < batch.tables.size(); ++t) {
      const int64_t bags = batch.layout->shape.tables[t].slots * batch.layout->shape.samples;
      for (const int64_t key : batch.tables[t].keys_of(0, batch.tables[t].offset(bags))) sum += key;
    }
    return sum;
  };
  const auto note = [&](const BatchView& batch) {
    const std::lock_guard lock(mutex);
    filled[batch.state->first_sample] = sum_of_keys(batch);
  };
  Rig rig(section, set.list, {.batch = 128, .workers = 3, .repeat = false, .on_filled = note});
  int batches = 0;
  for (; const std::optional<int> buffer = rig.reader->next(); ++batches) {
    const BatchView batch(rig.layout, rig.memory[static_cast<size_t>(*buffer)].data());
    {
      const std::lock_guard lock(mutex);
      ASSERT_EQ(filled.count(int64_t{batches} * 128), 1u);
      EXPECT_EQ(filled.at(int64_t{batches} * 128), sum_of_keys(batch));
      EXPECT_NE(sum_of_keys(batch), 0);
    }
    rig.reader->release(*buffer);
  }
  EXPECT_EQ(batches, 17);
}

TEST_P(EachReader, CanDropTheLastPartialBatch) {
  const DataSection section = two_inputs();
  const DataSet set(section);
  Rig rig(section, set.list, {.batch = 128, .workers = 2, .repeat = false, .keep_last_partial = false});
  EXPECT_EQ(rig.all().size(), 16u);
}

TEST_P(EachReader, ABatchThatEndsWithTheSetIsFollowedByNoEmptyOne) {
  const DataSection section = two_inputs();
  const DataSet set(section, {100, 28});
  Rig rig(section, set.list, {.batch = 64, .workers = 3, .repeat = false});
  EXPECT_EQ(rig.all().size(), 2u);
}

TEST_P(EachReader, RepeatedBatchesAreFullAndRunAcrossTheEnd) {
  const DataSection section = two_inputs();
  const DataSet set(section, {50, 7});
  for (const int workers : {1, 2, 5}) {
    Rig rig(section, set.list, {.batch = 40, .workers = workers, .repeat = true}, 3);
    const auto batches = rig.all(25);
    ASSERT_EQ(batches.size(), 25u);
    for (size_t i = 0; i < batches.size(); ++i) {
      EXPECT_EQ(batches[i].state.valid_samples, 40);
      EXPECT_EQ(batches[i].state.first_sample, static_cast<int64_t>(i) * 40);
      expect_batch(batches[i], rig.layout.shape, set.rows, static_cast<int64_t>(i) * 40);
    }
  }
}

TEST_P(EachReader, ABatchMayBeLargerThanTheSet) {
  const DataSection section = two_inputs();
  const DataSet set(section, {5, 6});
  Rig rig(section, set.list, {.batch = 40, .workers = 2, .repeat = true});
  expect_batch(*rig.next(), rig.layout.shape, set.rows, 0);
  Rig once(section, set.list, {.batch = 40, .workers = 2, .repeat = false});
  const auto batches = once.all();
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].state.valid_samples, 11);
  expect_batch(batches[0], once.layout.shape, set.rows, 0);
}

TEST_P(EachReader, RanksDivideEachBatchAndTogetherHoldWhatOneRankWould) {
  const DataSection section = two_inputs();
  const DataSet set(section, {300, 41});
  for (const int ranks : {2, 3, 4}) {
    for (int rank = 0; rank < ranks; ++rank) {
      Rig rig(section, set.list, {.batch = 100, .workers = 2, .repeat = false, .rank = rank, .ranks = ranks});
      const auto batches = rig.all();
      ASSERT_EQ(batches.size(), 4u);
      const int64_t begin = 100 * rank / ranks, end = 100 * (rank + 1) / ranks;
      for (size_t i = 0; i < 4; ++i) {
        const int64_t rows = i == 3 ? 41 : 100, base = static_cast<int64_t>(i) * 100;
        EXPECT_EQ(batches[i].state.global_samples, rows);
        EXPECT_EQ(batches[i].state.valid_samples, std::clamp<int64_t>(rows - begin, 0, end - begin));
        EXPECT_EQ(batches[i].state.first_sample, base + begin);
        expect_batch(batches[i], rig.layout.shape, set.rows, base + begin);
      }
    }
  }
}

TEST_P(EachReader, ResetStartsAgainAtTheFirstSampleAtAnyTime) {
  const DataSection section = two_inputs();
  const DataSet set(section);
  Rig rig(section, set.list, {.batch = 128, .workers = 3, .repeat = false}, 3);
  for (const int before : {0, 1, 5, 1000}) {
    rig.all(before);
    rig.reader->reset();
    rig.expected_buffer = 0;
    const auto first = rig.next();
    EXPECT_EQ(first->state.first_sample, 0);
    expect_batch(*first, rig.layout.shape, set.rows, 0);
  }
}

TEST_P(EachReader, BuffersMayBeReleasedInAnyOrderAndAreFilledInTheirOwn) {
  const DataSection section = two_inputs();
  const DataSet set(section, {500});
  Rig rig(section, set.list, {.batch = 10, .workers = 2, .repeat = true}, 3);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(rig.reader->next(), i);
    for (const int buffer : {2, 0, 1}) rig.reader->release(buffer);
  }
  EXPECT_THROW(rig.reader->release(7), Error);
}

TEST_P(EachReader, DestructionAtAnyTimeDoesNotHang) {
  const DataSection section = two_inputs();
  const DataSet set(section);
  for (int batches = 0; batches < 12; ++batches) {
    Rig rig(section, set.list, {.batch = 64, .workers = 4, .repeat = batches % 2 == 0}, 2);
    rig.all(batches);
    if (batches % 3 == 0) rig.reader->next();  // takes a buffer and never releases it
  }
}

TEST(Reader, AnErrorComesAfterTheBatchesBeforeItAndAgainWhenAskedAgain) {
  const DataSection section = two_inputs();
  const DataSet set(section, {128, 100});
  cut_bytes(set.folder / "part1.data", 5);
  for (const int workers : {1, 3}) {
    Rig rig(section, set.list, {.batch = 64, .workers = workers, .repeat = true});
    EXPECT_TRUE(rig.next());
    EXPECT_TRUE(rig.next());
    const std::string message = message_of([&] { rig.all(); });
    EXPECT_NE(message.find("record 100 of 100"), std::string::npos) << message;
    EXPECT_NE(message.find("part1.data"), std::string::npos) << message;
    EXPECT_EQ(message_of([&] { rig.reader->next(); }), message);
  }
}

TEST(Reader, AFileWithAWrongHeaderIsAnErrorBeforeTheFirstBatch) {
  const DataSection section = two_inputs();
  const DataSet set(section);
  DataSection other = section;
  other.dense.dense_dim = 4;
  EXPECT_NE(message_of([&] { Rig rig(other, set.list, {.batch = 64}); })
                .find("dense_dim 3, but the Data layer expects "
                      "4"),
            std::string::npos);
}

TEST(Reader, ALayoutOfAnotherSectionIsABug) {
  const DataSet set(two_inputs());
  const BatchLayout layout(batch_shape(section_of(2, 3, {input_of("wide", 2, 4, 4), input_of("deep", 4, 2, 7)}), 8));
  std::vector<std::byte> memory(layout.bytes);
  EXPECT_SAYS(message_of([&] {
                Reader(two_inputs(), Source{set.list.string()}, layout, {memory.data()}, {.batch = 8}, Log::silent());
              }),
              "bug: the batch layout belongs to another Data layer");
}

TEST(Reader, AnEmptySetIsAnError) {
  const DataSection section = two_inputs();
  const DataSet set(section, {0, 0});
  EXPECT_NE(message_of([&] { Rig rig(section, set.list, {.batch = 64}); }).find("the data set is empty"),
            std::string::npos);
}

TEST(Reader, FromASavedPositionItGoesOnWithTheSameBytes) {
  const DataSection section = two_inputs();
  const DataSet set(section, {700, 1, 0, 1300, 64, 3000});
  std::vector<std::byte> bytes = bytes_of(set.folder / "part3.data");
  bytes[69 + 4] ^= std::byte{1};  // a bad record, so that row and record indices differ
  put_bytes(set.folder / "part3.data", bytes);
  for (const int64_t shuffle : {0, 1, 50, 900, 100000})
    for (const bool repeat : {true, false}) {
      const ReaderOptions options{.batch = 96, .workers = 2, .repeat = repeat, .shuffle = shuffle, .seed = 5};
      Rig whole(section, set.list, options);
      std::vector<ReadBatch> batches;
      std::vector<ReaderPosition> behind = {whole.reader->position()};
      std::vector<int64_t> skipped = {0};
      for (int i = 0; i < 130; ++i) {  // a pass has about 53 batches
        auto seen = whole.next();
        if (!seen) break;
        batches.push_back(std::move(*seen));
        behind.push_back(whole.reader->position());
        skipped.push_back(whole.reader->skipped_records());
      }
      EXPECT_GT(batches.size(), 50u);
      for (const size_t at :
           {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{36}, size_t{52}, batches.size() - 1, batches.size()}) {
        SCOPED_TRACE(cat("shuffle ", shuffle, ", repeat ", repeat, ", from batch ", at));
        ReaderOptions later = options;
        later.workers = 3;
        later.from = reader_position(Json::parse(to_json(behind[at]).text(), "position"));
        EXPECT_EQ(later.from, behind[at]);
        Rig rig(section, set.list, later, 3);
        for (size_t i = at; i < std::min(at + 4, batches.size()); ++i) {
          const auto seen = rig.next();
          ASSERT_TRUE(seen);
          expect_equal(*seen, batches[i]);
          EXPECT_EQ(rig.reader->position(), behind[i + 1]);
          EXPECT_EQ(rig.reader->skipped_records(), skipped[i + 1]);
        }
        if (at == batches.size() && !repeat) {
          EXPECT_FALSE(rig.reader->next());
        }
      }
    }
}

TEST(Reader, APositionThatIsNoneSaysWhatIsWrong) {
  EXPECT_SAYS(message_of([] { reader_position(Json::parse("{\"schema\": 1, \"pass\": -1}", "")); }),
              "needs \"pass\", an integer of at least 0; found -1");
  EXPECT_SAYS(message_of([] { reader_position(Json::parse("{\"schema\": 2}", "")); }),
              "has schema 2; this version reads 1");
  const DataSection section = two_inputs();
  const DataSet set(section, {10, 10});
  EXPECT_SAYS(message_of([&] { Rig rig(section, set.list, {.batch = 4, .from = {.file = 2}}); }),
              "cannot resume in file 3 of a set of 2");
}

/// The index of each row in delivery order. The first label of a row identifies the row.
std::vector<int64_t> order_of(const std::vector<ReadBatch>& batches, int64_t label_dim) {
  std::vector<int64_t> order;
  for (const ReadBatch& seen : batches)
    for (int32_t b = 0; b < seen.state.valid_samples; ++b)
      order.push_back(static_cast<int64_t>(seen.label[static_cast<size_t>(b * label_dim)]));
  return order;
}

TEST(Reader, ShufflingDeliversEachRowOnceAPassInAnOrderOfSeedAndPassAlone) {
  const DataSection section = section_of(1, 0, {input_of("x", 2, 3, 6)});
  const Folder folder;
  const auto rows = random_rows(section, 5000, 1, 1 << 20, true);  // the label is the row index
  write_rows(folder / "a", style_of(section, Check::sum, 8), rows);
  write_file_list(folder / "list.txt", {folder / "a"}, true);
  std::vector<std::vector<int64_t>> orders;
  for (const int64_t window : {1, 64, 1000, 10000})
    for (const uint64_t seed : {1, 2}) {
      std::vector<int64_t> first;
      for (const int workers : {1, 4}) {
        Rig rig(section, folder / "list.txt",
                {.batch = 100, .workers = workers, .repeat = true, .shuffle = window, .seed = seed});
        const auto batches = rig.all(100);
        for (size_t i = 0; i < batches.size(); ++i)
          for (int64_t b = 0; b < 100; ++b) {  // shuffling keeps rows whole, so the label identifies the row
            const auto row = static_cast<size_t>(batches[i].label[static_cast<size_t>(b)]);
            const auto begin = batches[i].offsets[0][static_cast<size_t>(b)],
                       end = batches[i].offsets[0][static_cast<size_t>(b) + 1];
            EXPECT_EQ(std::vector<int64_t>(batches[i].keys[0].begin() + begin, batches[i].keys[0].begin() + end),
                      rows[row].slots[0]);
          }
        const auto order = order_of(batches, 1);
        ASSERT_EQ(order.size(), 10000u);
        if (workers == 1) first = order;
        EXPECT_EQ(order, first);
      }
      std::vector<int64_t> counting(5000);
      std::iota(counting.begin(), counting.end(), 0);
      for (const size_t pass : {0, 1}) {
        std::vector<int64_t> of_pass(first.begin() + static_cast<ptrdiff_t>(pass * 5000),
                                     first.begin() + static_cast<ptrdiff_t>((pass + 1) * 5000));
        for (int64_t i = 0; i < 5000; ++i)
          ASSERT_EQ(of_pass[static_cast<size_t>(i)] / window, i / window) << "a row left its window";
        if (window > 1) orders.push_back(of_pass);
        std::sort(of_pass.begin(), of_pass.end());
        EXPECT_EQ(of_pass, counting) << "each row once";
      }
    }
  std::sort(orders.begin(), orders.end());
  EXPECT_EQ(std::unique(orders.begin(), orders.end()), orders.end()) << "windows, seeds and passes differ";
}

TEST(Reader, ShufflingVisitsTheFilesInAnOrderOfEachPass) {
  const DataSection section = section_of(1, 0, {input_of("x", 1, 1, 1)});
  const Folder folder;
  std::vector<fs::path> files;
  for (int f = 0; f < 20; ++f) {
    files.push_back(folder / cat("f", f));
    write_rows(files.back(), style_of(section, Check::sum, 8), {Row{{static_cast<float>(f)}, {}, {{1}}}});
  }
  write_file_list(folder / "list.txt", files, true);
  Rig rig(section, folder / "list.txt", {.batch = 20, .workers = 2, .repeat = true, .shuffle = 1, .seed = 3});
  auto order = order_of(rig.all(2), 1);
  const std::vector<int64_t> one(order.begin(), order.begin() + 20), two(order.begin() + 20, order.end());
  EXPECT_NE(one, two);
  rig.reader->reset(rig.reader->next_pass());
  rig.expected_buffer = 0;
  const auto three = order_of(rig.all(1), 1);
  EXPECT_NE(three, two) << "a new epoch is a pass of its own";
  Rig again(section, folder / "list.txt", {.batch = 20, .workers = 1, .repeat = true, .shuffle = 1, .seed = 3});
  EXPECT_EQ(order_of(again.all(2), 1), order);
}

TEST(Reader, PoliciesForBadRecords) {
  DataSection section = two_inputs();
  const DataSet set(section, {10, 50});
  std::vector<std::byte> bytes = bytes_of(set.folder / "part1.data");
  bytes[69 + 4] ^= std::byte{1};
  put_bytes(set.folder / "part1.data", bytes);
  const auto run = [&] {
    Rig rig(section, set.list, {.batch = 59, .workers = 2, .repeat = true});
    rig.all(3);
    return rig.reader->skipped_records();
  };
  EXPECT_GE(run(), 3) << "left out by default";
  section.bad_records = BadRecordPolicy::error;
  EXPECT_SAYS(message_of(run), "part1.data': record 1 of 50, at byte 69: fails its check sum");
  section.bad_records = BadRecordPolicy::skip;
  section.max_bad_records = 2;
  EXPECT_SAYS(message_of(run), "3 bad records, but \"max_bad_records\" allows 2; one of the last bad records: ");
  section.max_bad_records = 10;
  EXPECT_EQ(message_of(run), "");
}

TEST(Reader, SkippedRecordsAreCountedAndLoggedOncePerFile) {
  const DataSection section = two_inputs();
  const DataSet set(section, {10, 50});  // the second file has checksums
  std::vector<std::byte> bytes = bytes_of(set.folder / "part1.data");
  bytes[69 + 4] ^= std::byte{1};
  put_bytes(set.folder / "part1.data", bytes);
  int warnings = 0;
  const Log log([&](Level level, std::string_view) { warnings += level == Level::warning; });
  Rig rig(section, set.list, {.batch = 59, .workers = 2, .repeat = true}, 2, log);
  std::vector<Row> good = set.rows;
  good.erase(good.begin() + 10);
  for (int pass = 0; pass < 3; ++pass) expect_batch(*rig.next(), rig.layout.shape, good, 0);
  EXPECT_GE(rig.reader->skipped_records(), 3);
  rig.reader.reset();
  EXPECT_EQ(warnings, 1);
}

TEST(Reader, SkippedRecordsOfNormDataAreSetAside) {
  DataSection section = two_inputs();
  const DataSet set(section, {10, 50});
  std::vector<std::byte> bytes = bytes_of(set.folder / "part1.data");
  bytes[69 + 4] ^= std::byte{1};
  put_bytes(set.folder / "part1.data", bytes);
  section.bad_records = BadRecordPolicy::skip;
  section.options.edit<BadRecordsSection>() = {(set.folder / "bad").string()};
  Rig(section, set.list, {.batch = 59, .workers = 2, .repeat = true}).all(3);
  EXPECT_EQ(read_text(set.folder / "bad", ""), cat(R"({"file":")", (set.folder / "part1.data").string(),
                                                   R"(","record":1,"offset":69,"cause":"fails its check sum"})", "\n"));
}

TEST(Reader, ASetOfOnlyBadRecordsIsAnErrorInsteadOfAnEndlessSearch) {
  const DataSection section = two_inputs();
  const DataSet set(section, {0, 1});
  std::vector<std::byte> bytes = bytes_of(set.folder / "part1.data");
  bytes[69 + 4] ^= std::byte{1};
  put_bytes(set.folder / "part1.data", bytes);
  for (const bool repeat : {true, false}) {
    Rig rig(section, set.list, {.batch = 4, .workers = 2, .repeat = repeat});
    EXPECT_NE(message_of([&] { rig.next(); }).find("every record of the set is bad"), std::string::npos);
  }
}

}  // namespace
}  // namespace hctr::data_test
