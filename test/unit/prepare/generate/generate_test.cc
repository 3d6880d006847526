#include "prepare/generate/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "formats/io/file_list.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

struct Generated : ::testing::Test {
  Generated() {
    section = section_of(1, 4, {input_of("wide", 1, 6, 6), input_of("deep", 8, 1, 8)});
    section.source = (folder / "train.txt").string();
    section.eval_source = (folder / "val.txt").string();
    options.samples = 20000;
    options.eval_samples = 30000;
    options.files = 3;
    options.vocabulary = {1000};
  }
  std::optional<BestPossible> make() {
    return generate(section, options, Log([this](Level, std::string_view line) { said += line; }));
  }
  std::vector<SampleBlock> read(const std::string& list) {
    std::vector<SampleBlock> blocks;
    for (const fs::path& file : read_file_list(list, Log::silent()))
      blocks.push_back(read_norm_file(file, norm_demands(section, KeyWidth::detect)));
    return blocks;
  }
  std::string bytes() {
    std::string all;
    for (const fs::path& file : read_file_list(section.source, Log::silent())) all += read_text(file, "");
    return all;
  }
  Folder folder;
  DataSection section;
  GenerateOptions options;
  std::string said;
};

TEST_F(Generated, TheSetKeepsTheSectionAndTheBestAucIsAboutWhatItShouldBe) {
  for (const double share : {0.1, 0.25}) {
    options.positive_share = share;
    options.force = true;
    const auto best = make();
    ASSERT_TRUE(best);
    EXPECT_NEAR(best->positive_share, share, 0.01);
    EXPECT_NEAR(best->calibration, 1, 0.05);
    EXPECT_NEAR(best->auc, 0.80, 0.015);
    int64_t rows = 0;
    double positives = 0;
    for (const SampleBlock& block : read(section.source)) {
      rows += block.rows;
      for (int64_t r = 0; r < block.rows; ++r) positives += static_cast<double>(block.label[static_cast<size_t>(r)]);
    }
    EXPECT_EQ(rows, 20000);
    EXPECT_NEAR(positives / 20000, share, 0.02);
  }
}

TEST_F(Generated, MetadataOfAnotherParquetSetIsNotOverwrittenUnasked) {
  section.eval_source.clear();  // without eval_source, the set is in the folder of its list
  options.written_as = WrittenAs::parquet;
  write_text(folder / "_metadata.json", "{}");
  EXPECT_SAYS(message_of([&] { make(); }),
              cat("'", (folder / "_metadata.json").string(),
                  "' already exists, and this data set would overwrite the file; choose another folder for '"));
  EXPECT_EQ(read_text(folder / "_metadata.json", "test"), "{}");
}

TEST_F(Generated, NoModelBeatsTheTruth) {
  const auto best = make();
  EXPECT_LT(best->average_loss, -(0.25 * std::log(0.25) + 0.75 * std::log(0.75))) << "the truth beats the base rate";
  options.signal = 0;
  options.force = true;
  EXPECT_NEAR(make()->auc, 0.5, 0.01);
}

/// The fraction of samples in which both labels agree, minus the fraction expected by chance.
double agreement(const std::vector<SampleBlock>& blocks) {
  double both = 0, first = 0, second = 0, rows = 0;
  for (const SampleBlock& block : blocks)
    for (size_t r = 0; r < static_cast<size_t>(block.rows); ++r, ++rows) {
      const double a = static_cast<double>(block.label[2 * r]), b = static_cast<double>(block.label[2 * r + 1]);
      both += a * b;
      first += a;
      second += b;
    }
  return both / rows - first * second / (rows * rows);
}

TEST_F(Generated, LabelsHaveATruthEachWhichMayBeRelated) {
  section.label.label_dim = 2;
  options.force = true;
  const auto apart = make();
  const double by_chance = agreement(read(section.source));
  options.related = 0.9;
  const auto alike = make();
  EXPECT_NEAR(by_chance, 0, 0.015);
  EXPECT_GT(agreement(read(section.source)), by_chance + 0.02);
  for (const auto& best : {apart, alike}) {
    ASSERT_EQ(best->labels.size(), 2u);
    EXPECT_EQ(best->samples, 30000);
    EXPECT_NEAR(best->auc, (best->labels[0].auc + best->labels[1].auc) / 2, 1e-12);
    EXPECT_NEAR(best->average_loss, (best->labels[0].average_loss + best->labels[1].average_loss) / 2, 1e-12);
    for (const BestPossible& label : best->labels) EXPECT_NEAR(label.auc, 0.80, 0.015);
  }
  EXPECT_EQ(alike->labels[0].auc, apart->labels[0].auc) << "the first label is what the others are related to";
  EXPECT_NE(alike->labels[1].auc, apart->labels[1].auc);
  const auto read_back = read_best_possible(section.eval_source);
  ASSERT_EQ(read_back->labels.size(), 2u);
  EXPECT_EQ(read_back->labels[1].auc, alike->labels[1].auc);
  EXPECT_EQ(read_back->labels[1].positive_share, alike->labels[1].positive_share);
}

TEST_F(Generated, OneLabelIsNoListOfLabels) {
  EXPECT_TRUE(make()->labels.empty());
  EXPECT_TRUE(read_best_possible(section.eval_source)->labels.empty());
}

TEST_F(Generated, SlotsHaveKeysOfTheirOwnAndFewAreFrequent) {
  for (const bool hashed : {false, true}) {
    options.hashed_keys = hashed;
    options.force = true;
    make();
    std::set<int64_t> all;
    size_t sum = 0;
    const auto blocks = read(section.source);
    for (size_t s = 0; s < 9; ++s) {
      std::map<int64_t, int64_t> counts;
      for (const SampleBlock& block : blocks)
        for (auto k = block.offsets[s * static_cast<size_t>(block.rows)];
             k < block.offsets[(s + 1) * static_cast<size_t>(block.rows)]; ++k)
          ++counts[block.keys[static_cast<size_t>(k)]];
      int64_t most = 0;
      for (const auto& [key, count] : counts) {
        all.insert(key);
        most = std::max(most, count);
        if (!hashed) {
          EXPECT_EQ(key / 1000, static_cast<int64_t>(s));
        }
      }
      sum += counts.size();
      EXPECT_GT(most, 1000);
      EXPECT_GT(counts.size(), 800u);
    }
    EXPECT_EQ(all.size(), sum) << "no key is in two slots";
  }
}

TEST_F(Generated, TheBytesDoNotDependOnThreadsButOnTheSeed) {
  make();
  const std::string first = bytes();
  options.force = true;
  options.threads = 3;
  fs::remove(section.source);
  make();
  EXPECT_EQ(bytes(), first);
  options.seed = 2;
  make();
  EXPECT_NE(bytes(), first);
}

TEST_F(Generated, DataOfTheSameParametersIsLeftAloneAndOtherDataNeedsForce) {
  const auto best = make();
  const auto time = fs::last_write_time(folder / "train.0.data");
  EXPECT_EQ(make()->auc, best->auc);
  EXPECT_SAYS(said, "already exists and was made with the same parameters: nothing to do");
  EXPECT_EQ(fs::last_write_time(folder / "train.0.data"), time);
  options.seed = 9;
  EXPECT_SAYS(message_of([&] { make(); }),
              "usage: '" + section.source + "' already exists, but was made with other parameters; --force");
}

TEST_F(Generated, TheTruthReadsBackAndABrokenFileSaysSo) {
  const auto best = make();
  const auto read = read_best_possible(section.eval_source);
  EXPECT_EQ(read->auc, best->auc);
  EXPECT_EQ(read->average_loss, best->average_loss);
  EXPECT_EQ(read->samples, 30000);
  EXPECT_FALSE(read_best_possible(folder / "other.txt"));
  write_text(truth_path(section.eval_source), "{\"schema\": 1}");
  EXPECT_SAYS(message_of([&] { read_best_possible(section.eval_source); }), "expected a number \"AUC\"");
  write_text(truth_path(section.eval_source), "{\"schema\": 7}");
  EXPECT_SAYS(message_of([&] { read_best_possible(section.eval_source); }), "has schema 7; this program knows 1");
}

TEST_F(Generated, NarrowKeysNoCheckSumsAndAFolderOfItsOwn) {
  options.key_bytes = 4;
  section.check = Check::none;
  options.folder = folder / "old";
  make();
  EXPECT_TRUE(fs::exists(folder / "old" / "train" / "gen_2.data"));
  EXPECT_TRUE(fs::exists(folder / "old" / "val" / "gen_1.data"));
  const NormInfo info =
      read_norm_info(folder / "old" / "train" / "gen_0.data", norm_demands(section, KeyWidth::detect));
  EXPECT_EQ(info.key_bytes, 4);
  EXPECT_EQ(info.check, Check::none);
}

TEST_F(Generated, OptionsThatDoNotFitTheSectionAreUsageErrors) {
  const auto message = [&](auto change) {
    const GenerateOptions before = options;
    change(options);
    const std::string said_now = message_of([&] { make(); });
    options = before;
    return said_now;
  };
  EXPECT_SAYS(message([](auto& o) { o.vocabulary = {1, 2}; }),
              "--vocabulary has 2 numbers; the Data layer has 9 slots");
  EXPECT_SAYS(message([](auto& o) { o.max_nnz = 7; }), "allows max_nnz 6 in sparse input \"wide\"");
  EXPECT_SAYS(message([](auto& o) { o.max_nnz = 2; }), "allows max_nnz 1 in sparse input \"deep\"");
  EXPECT_SAYS(message([](auto& o) { o.positive_share = 1; }), "the share of positives must be between 0 and 1");
  EXPECT_SAYS(message([](auto& o) { o.related = 1.5; }), "the correlation of labels must be from -1 to 1, not 1.5");
  EXPECT_SAYS(message([](auto& o) { o.files = 30000; }), "20000 samples in 30000 files");
  EXPECT_SAYS(message([](auto& o) { o.hashed_keys = true, o.key_bytes = 4; }), "hashed keys need 64 bits");
  EXPECT_SAYS(message([](auto& o) { o.vocabulary = {int64_t{1} << 31}, o.key_bytes = 4; }), "does not fit 32 bits");
  section.eval_source = (folder / "train.list").string();
  EXPECT_SAYS(message([](auto&) {}), "differ only in their extension");
}

TEST_F(Generated, AnEvaluationSetOfOneClassIsAnError) {
  options.eval_samples = options.eval_files = 1;
  EXPECT_SAYS(message_of([&] { make(); }), "data: the 1 evaluation samples are all of one class");
}

TEST_F(Generated, EverySlotKeepsALimitOfItsOwn) {
  section.sparse = {input_of("x", 3, 9, 12)};
  section.sparse[0].nnz_per_slot = PerSlot{{9, 1, 2}};
  make();
  int64_t longest[3] = {};
  for (const SampleBlock& block : read(section.source))
    for (int64_t bag = 0; bag < 3 * block.rows; ++bag)
      longest[bag / block.rows] =
          std::max<int64_t>(longest[bag / block.rows],
                            block.offsets[static_cast<size_t>(bag) + 1] - block.offsets[static_cast<size_t>(bag)]);
  EXPECT_EQ(std::vector<int64_t>(longest, longest + 3), (std::vector<int64_t>{9, 1, 2}));
}

TEST_F(Generated, FewerKeysThanSlotsLeaveTheLastSlotsEmpty) {
  section.sparse = {input_of("x", 5, 3, 3)};
  make();
  for (const SampleBlock& block : read(section.source))
    for (size_t s = 0; s < 5; ++s) {
      const auto rows = static_cast<size_t>(block.rows);
      EXPECT_EQ(block.offsets[(s + 1) * rows] - block.offsets[s * rows], s < 3 ? block.rows : 0);
    }
}

}  // namespace
}  // namespace hctr::data_test
