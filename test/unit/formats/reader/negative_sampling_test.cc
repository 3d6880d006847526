// Negative sampling in the reader: seed, pass and position alone determine which samples are delivered.
#include "formats/reader/negative_sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "formats/norm/norm_set.h"
#include "formats/raw/raw_set.h"
#include "unit/formats/data/raw_test_files.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

constexpr int64_t kSampledRows = 3000;
constexpr double kShare = 0.2;

/// Tests two formats: Norm, with any number of keys per slot, which is read by chunks; and Raw, which is read by rows
/// if no row is dropped. One row in ten is a click. The first dense value is the row index.
class SampledSet : public testing::TestWithParam<DataFormat> {
 protected:
  SampledSet() {
    const bool raw = GetParam() == kRawFormat;
    section_ = raw ? section_of(1, 2, {input_of("wide", 1, 1, 1), input_of("deep", 5, 1, 5)}) : wide_and_deep_section();
    section_.format = GetParam();
    section_.float_label_dense = true;
    rows_ = random_rows(section_, kSampledRows, 5, 1 << 20, !raw);
    for (size_t r = 0; r < rows_.size(); ++r) {
      rows_[r].label[0] = r % 10 == 3 ? 1.0f : 0.0f;
      rows_[r].dense[0] = static_cast<float>(r);
    }
    std::vector<fs::path> files;
    for (const auto& [begin, end] : {std::pair{0, 1100}, {1100, 1101}, {1101, static_cast<int>(kSampledRows)}}) {
      const std::vector<Row> part(rows_.begin() + begin, rows_.begin() + end);
      files.push_back(folder_ / cat("part", begin, ".data"));
      if (raw)
        put_bytes(files.back(), raw_bytes(part, true));
      else
        write_rows(files.back(), style_of(section_, Check::sum, 8), part);
    }
    list_ = folder_ / "list.txt";
    write_file_list(list_, files, true);
  }

  static ReaderOptions options(double share = kShare) {
    return {.batch = 60, .workers = 2, .repeat = true, .seed = 11, .negative_share = share};
  }
  std::vector<ReadBatch> read(const ReaderOptions& options, int batches) {
    return Rig(section_, list_, options).all(batches);
  }
  /// Returns the row indices in the batches, and checks that each row is unchanged.
  std::vector<int64_t> rows_of(const std::vector<ReadBatch>& batches) {
    std::vector<int64_t> numbers;
    const BatchShape shape = batch_shape(section_, batches.at(0).state.samples);
    const auto dense = static_cast<size_t>(shape.dense_dim);
    for (const ReadBatch& batch : batches) {
      std::vector<Row> expected;
      for (int64_t b = 0; b < batch.state.valid_samples; ++b) {
        numbers.push_back(static_cast<int64_t>(batch.dense[static_cast<size_t>(b) * dense]));
        expected.push_back(rows_.at(static_cast<size_t>(numbers.back())));
      }
      expect_batch(batch, shape, expected, 0);
    }
    return numbers;
  }
  static void expect_equal(const ReadBatch& a, const ReadBatch& b) {
    EXPECT_EQ(a.state, b.state);
    EXPECT_EQ(a.label, b.label);
    EXPECT_EQ(a.dense, b.dense);
    EXPECT_EQ(a.offsets, b.offsets);
    EXPECT_EQ(a.keys, b.keys);
  }

  Folder folder_;
  DataSection section_;
  std::vector<Row> rows_;
  fs::path list_;
};
INSTANTIATE_TEST_SUITE_P(Formats, SampledSet, testing::Values(kNormFormat, kRawFormat),
                         [](const auto& format) { return std::string(format.param.name); });

TEST_P(SampledSet, KeepsEveryPositiveAndTheShareOfTheOthersInOrder) {
  ReaderOptions once = options();
  once.repeat = false;
  Rig rig(section_, list_, once);
  const auto batches = rig.all();
  const std::vector<int64_t> kept = rows_of(batches);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  const auto positives = std::count_if(kept.begin(), kept.end(), [](int64_t r) { return r % 10 == 3; });
  EXPECT_EQ(positives, kSampledRows / 10);
  // 2700 negatives with probability 1/5: 540 expected, standard deviation 21.
  EXPECT_NEAR(static_cast<double>(kept.size()) - 300, 540, 4 * 21);
  EXPECT_EQ(rig.reader->samples(), 840);
  EXPECT_TRUE(rig.reader->samples_estimated());
  for (const ReadBatch& batch : batches) EXPECT_FLOAT_EQ(batch.state.log_negative_share, std::log(0.2f));
}

TEST_P(SampledSet, EachPassAndSeedKeepsOthers) {
  const auto set_of = [&](const ReaderOptions& with) {
    ReaderOptions once = with;
    once.repeat = false;
    const auto rows = rows_of(read(once, 1000));
    return std::set<int64_t>(rows.begin(), rows.end());
  };
  const auto first = set_of(options());
  ReaderOptions second_pass = options(), other_seed = options();
  second_pass.from.pass = 1;
  other_seed.seed = 12;
  for (const auto& other : {set_of(second_pass), set_of(other_seed)}) {
    std::vector<int64_t> both;
    std::set_intersection(first.begin(), first.end(), other.begin(), other.end(), std::back_inserter(both));
    // All positives, and 1/25 of the negatives: 108 expected, standard deviation about 10.
    EXPECT_NEAR(static_cast<double>(both.size()) - 300, 108, 45);
  }
}

TEST_P(SampledSet, BatchesAreTheSameOnAnyNumberOfRanksAndWorkers) {
  for (const int64_t window : {0, 100}) {
    ReaderOptions alone = options();
    alone.shuffle = window;
    const auto whole = read(alone, 20);
    const std::vector<int64_t> rows = rows_of(whole);
    ASSERT_EQ(rows.size(), 1200u);
    std::vector<std::vector<ReadBatch>> of_ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ReaderOptions shared = alone;
      shared.rank = rank;
      shared.ranks = 3;
      shared.workers = rank + 1;
      of_ranks.push_back(read(shared, 20));
    }
    std::vector<int64_t> joined;
    for (size_t i = 0; i < 20; ++i)
      for (const auto& of_rank : of_ranks) {
        const auto part = rows_of({of_rank[i]});
        joined.insert(joined.end(), part.begin(), part.end());
        EXPECT_EQ(of_rank[i].state.global_samples, 60);
      }
    EXPECT_EQ(joined, rows);
  }
}

TEST_P(SampledSet, GoesOnFromAnyPositionWithTheSameBatches) {
  for (const int64_t window : {0, 100}) {
    ReaderOptions plain = options();
    plain.shuffle = window;
    Rig rig(section_, list_, plain);
    std::vector<ReadBatch> whole;
    std::vector<ReaderPosition> after;
    for (int i = 0; i < 40; ++i) {  // the batches of nearly three passes
      whole.push_back(*rig.next());
      after.push_back(rig.reader->position());
    }
    for (const size_t at : {0u, 6u, 13u, 14u, 27u, 37u}) {
      ReaderOptions later = plain;
      later.from = after[at];
      later.workers = 3;
      Rig again(section_, list_, later);
      for (size_t i = at + 1; i < std::min<size_t>(at + 8, 40); ++i) expect_equal(*again.next(), whole[i]);
    }
  }
}

TEST_P(SampledSet, AShareOfOneIsNoSampling) {
  ReaderOptions none = options();
  none.negative_share = ReaderOptions().negative_share;
  const auto plain = read(none, 60), all = read(options(1), 60);
  ASSERT_EQ(plain.size(), all.size());
  for (size_t i = 0; i < plain.size(); ++i) expect_equal(plain[i], all[i]);
  EXPECT_EQ(plain[0].state.log_negative_share, 0);
}

TEST_P(SampledSet, APassThatKeepsNothingIsAnError) {
  std::vector<Row> none(rows_.begin(), rows_.begin() + 3);  // these three rows are negatives
  const fs::path path = folder_ / "none.data", list = folder_ / "none.txt";
  if (GetParam() == kRawFormat)
    put_bytes(path, raw_bytes(none, true));
  else
    write_rows(path, style_of(section_, Check::none, 8), none);
  write_file_list(list, {path}, true);
  Rig rig(section_, list, options(1e-9));
  try {
    rig.next();
    FAIL() << "an empty pass was repeated";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Kind::data);
    EXPECT_NE(std::string(error.what()).find("\"negative_sampling\" has dropped every sample"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace hctr::data_test
