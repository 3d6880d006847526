// Reading rows directly into batches gives the same result, bit for bit, as reading by chunks: for any set, batch size,
// ranks and start. The option "bad_records": "skip" forces reading by chunks, and changes nothing else if all records
// are good. The test therefore compares runs with and without this option.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "core/base/platform.h"
#include "formats/raw/raw_set.h"
#include "unit/formats/data/raw_test_files.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(mix64(seed)) {}
  int64_t operator()(int64_t from, int64_t to) {
    return from + static_cast<int64_t>((state_ = mix64(state_)) % static_cast<uint64_t>(to - from + 1));
  }
  bool coin() { return (*this)(0, 1) == 1; }
  template <class T>
  T of(std::initializer_list<T> choices) {
    return choices.begin()[(*this)(0, static_cast<int64_t>(choices.size()) - 1)];
  }

 private:
  uint64_t state_;
};

/// Raw files of random shape.
struct AnySet {
  explicit AnySet(Draws& draw) {
    std::vector<SparseInput> inputs;
    for (int64_t i = draw(1, 3); i > 0; --i) {
      const int64_t slots = draw(1, 5);
      inputs.push_back(input_of(cat("input", i), slots, draw(1, 3), slots + draw(0, 3)));
      if (draw(0, 3) == 0) inputs.back().keep_first = draw(1, 3);
    }
    section = section_of(draw(1, 3), draw(0, 9), inputs);
    section.format = kRawFormat;
    section.float_label_dense = draw.coin();
    if (draw.coin())
      for (int64_t s = 0; s < section.slots(); ++s)
        section.slot_size_array.push_back(draw(0, 1) * draw(0, int64_t{1} << 40));
    const bool wide = draw.coin();
    int64_t rows = 0;
    std::vector<fs::path> files;
    for (int64_t f = draw(1, 4); f > 0; --f) {
      const int64_t count = f == 1 ? draw(1, 3000) : draw.of<int64_t>({0, 1, 63, 64, 65, 700, 5000});
      auto part = random_rows(section, count, static_cast<uint64_t>(draw(0, 1 << 30)),
                              wide ? uint64_t{1} << 40 : 1 << 30, false);
      if (!section.float_label_dense)
        for (Row& row : part)
          for (float& value : row.dense) value = value > 100 ? value * 1000 : value;
      rows += static_cast<int64_t>(part.size());
      files.push_back(folder / cat("part", files.size()));
      put_bytes(files.back(), wide ? raw_bytes<int64_t>(part, section.float_label_dense)
                                   : raw_bytes(part, section.float_label_dense));
    }
    write_file_list(folder / "list", files, true);
    width = wide ? KeyWidth::i64 : KeyWidth::detect;
    source = {(folder / "list").string(), wide ? rows : draw.coin() ? draw(1, rows) : 0};
  }
  DataSection by_blocks() const {
    DataSection same = section;
    same.bad_records = BadRecordPolicy::skip;
    return same;
  }
  Folder folder;
  DataSection section;
  Source source;
  KeyWidth width;
};

/// Reads to the end or up to `most` batches, and records the reader position after each batch.
struct Read {
  Read(const DataSection& section, const AnySet& set, const ReaderOptions& options, int buffers, int64_t most) {
    Rig rig(section, set.source, options, buffers);
    behind.push_back(rig.reader->position());
    for (int64_t i = 0; i < most; ++i) {
      auto seen = rig.next();
      if (!seen) break;
      batches.push_back(std::move(*seen));
      behind.push_back(rig.reader->position());
      own_rows += batches.back().state.valid_samples;
      EXPECT_EQ(rig.reader->skipped_records(), options.from.bad_records);
    }
    parsed = rig.reader->parsed_rows();
  }
  std::vector<ReadBatch> batches;
  std::vector<ReaderPosition> behind;
  int64_t own_rows = 0, parsed = 0;
};

void expect_same(const Read& read, const Read& expected, size_t from) {
  ASSERT_EQ(read.batches.size(), expected.batches.size() - from);
  for (size_t i = 0; i < read.batches.size(); ++i) {
    SCOPED_TRACE(cat("batch ", from + i));
    expect_equal(read.batches[i], expected.batches[from + i]);
    EXPECT_EQ(read.behind[i + 1].pass, expected.behind[from + i + 1].pass);
    EXPECT_EQ(read.behind[i + 1].samples, expected.behind[from + i + 1].samples);
  }
}

TEST(ReaderOfRows, DeliversTheBatchesOfReadingByChunksAndEachResumesFromTheOthersPositions) {
  for (uint64_t trial = 0; trial < (kSanitized ? 40 : 150) && !testing::Test::HasFailure(); ++trial) {
    Draws draw(trial);
    const AnySet set(draw);
    const int ranks = static_cast<int>(draw(1, 4));
    ReaderOptions options{.batch = draw.of<int64_t>({1, 2, 7, 64, 97, 128, 300, 1000, 4096, 20000}),
                          .workers = static_cast<int>(draw(1, 5)),
                          .repeat = draw.coin(),
                          .key_width = set.width,
                          .rank = static_cast<int>(draw(0, ranks - 1)),
                          .ranks = ranks,
                          .keep_last_partial = draw.coin()};
    options.from.pass = draw(0, 2);
    SCOPED_TRACE(cat("trial ", trial, ": batch ", options.batch, ", rank ", options.rank, " of ", ranks, ", repeat ",
                     options.repeat));
    const int64_t most = options.repeat ? 9 : 60;
    const Read blocks(set.by_blocks(), set, options, 2, most),
        rows(set.section, set, options, static_cast<int>(draw(1, 4)), most);
    expect_same(rows, blocks, 0);
    if (testing::Test::HasFailure()) return;
    if (!options.repeat && rows.batches.size() < static_cast<size_t>(most)) {
      EXPECT_EQ(rows.parsed, rows.own_rows) << "a rank parses its own rows, and each once";
    }

    const auto at = static_cast<size_t>(draw(0, static_cast<int64_t>(blocks.batches.size())));
    for (const ReaderPosition& from : {blocks.behind[at], rows.behind[at]}) {
      SCOPED_TRACE(cat("from batch ", at, ": ", to_json(from).text()));
      options.from = from;
      options.workers = static_cast<int>(draw(1, 5));
      const int64_t left = most - static_cast<int64_t>(at);
      expect_same(Read(set.section, set, options, 2, left), blocks, at);
      expect_same(Read(set.by_blocks(), set, options, 2, left), blocks, at);
    }
  }
}

DataSection one_hot_section() {
  DataSection section = section_of(1, 2, {input_of("keys", 3, 1, 3)});
  section.format = kRawFormat;
  section.float_label_dense = true;
  return section;
}

struct OneFile {
  explicit OneFile(int64_t count) : rows(random_rows(section, count, 5, 1 << 30, false)) { write(); }
  void write() { put_bytes(path, raw_bytes(rows, true)); }
  Folder folder;
  DataSection section = one_hot_section();
  fs::path path = folder / "rows";
  std::vector<Row> rows;
};

TEST(ReaderOfRows, TheFirstBadRecordIsNamedHoweverManyFollowAndWhoeverMeetsThem) {
  // The second batch begins with the last rows of the first file, which one worker reads. Another worker reads the rows
  // of the second file. `begins`, the number of these last rows, decides which worker finishes first.
  for (const int64_t begins : {10000, 40}) {
    OneFile file(20000 + begins), other(20000);
    file.rows.back().slots[1] = {-3};
    for (const size_t bad : {0u, 1u, 5000u, 15000u}) other.rows[bad].slots[2] = {-4};
    file.write();
    other.write();
    write_file_list(file.folder / "list", {file.path, other.path}, true);
    const int64_t last = 20000 + begins;
    const std::string said = cat("data: '", file.path.string(), "': record ", last, " of ", last, ", at byte ",
                                 (last - 1) * 24, ": slot 1 has the key -3;");
    for (int round = 0; round < (kSanitized ? 5 : 20); ++round) {
      Rig rig(file.section, file.folder / "list",
              {.batch = 20000, .workers = 2 + round % 4 / 3, .repeat = round % 2 == 0}, 1 + round % 4);
      const auto seen = rig.next();
      ASSERT_TRUE(seen);
      expect_batch(*seen, rig.layout.shape, file.rows, 0);
      const std::string problem = message_of([&] { rig.next(); });
      EXPECT_SAYS(problem, said);
      EXPECT_EQ(message_of([&] { rig.next(); }), problem) << "asked again";
      rig.reader->reset();
      rig.expected_buffer = 0;
      expect_batch(*rig.next(), rig.layout.shape, file.rows, 0);
    }
  }
}

TEST(ReaderOfRows, RowsThatAPositionCountsMustStillBeRows) {
  OneFile file(3000);
  file.rows[5].dense[1] = NAN;
  file.write();
  DataSection skipping = file.section;
  skipping.bad_records = BadRecordPolicy::skip;
  Rig by_blocks(skipping, file.path, {.batch = 100, .workers = 1});
  by_blocks.next();
  const ReaderPosition saved = by_blocks.reader->position();
  EXPECT_EQ(saved.rows, 100);  // 100 good rows among 101 records
  Rig rig(file.section, file.path, {.batch = 100, .workers = 3, .from = saved});
  EXPECT_SAYS(message_of([&] { rig.next(); }), "record 6 of 3000, at byte 120: dense value 1 is nan");
}

TEST(ReaderOfRows, AFileThatBecomesShorterIsAnError) {
  OneFile file(3000);
  Rig rig(file.section, file.path, {.batch = 1000, .workers = 2, .repeat = false}, 1);
  // The rig has a single buffer. While the test holds it, the reader cannot fill another batch.
  ASSERT_EQ(rig.reader->next(), 0);
  fs::resize_file(file.path, 1500 * 24);
  rig.reader->release(0);
  EXPECT_SAYS(message_of([&] { rig.reader->next(); }),
              cat("data: '", file.path.string(), "': ends at byte ", 1500 * 24));
}

TEST(ReaderOfRows, WorkersWaitForBuffersAndEndAtAnyTime) {
  OneFile file(5000);
  for (int round = 0; round < 60; ++round) {
    if (round == 40) file.rows[3000].slots[0] = {-1}, file.write();
    Rig rig(file.section, file.path, {.batch = 500, .workers = 1 + round % 6, .repeat = round % 2 == 0}, 1 + round % 3);
    for (int taken = round % 5; taken > 0; --taken) rig.next();
    if (round % 4 == 1) rig.reader->next();  // keeps this buffer until the end
    if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
  }
}

TEST(ReaderOfRows, BuffersThatAreNotHeldCannotBeReleased) {
  OneFile file(500);
  Rig rig(file.section, file.path, {.batch = 10, .workers = 2}, 3);
  ASSERT_EQ(rig.reader->next(), 0);
  rig.reader->release(0);
  for (const int buffer : {0, 1, -1, 3})
    EXPECT_SAYS(message_of([&] { rig.reader->release(buffer); }), "released, but is not in use");
}

TEST(ReaderOfRows, APositionThatIsNoneSaysWhatIsWrong) {
  OneFile file(10);
  EXPECT_SAYS(message_of([&] { Rig rig(file.section, file.path, {.batch = 4, .from = {.file = 1}}); }),
              "cannot resume in file 2 of a set of 1");
  Rig behind(file.section, file.path, {.batch = 4, .repeat = false, .from = {.record = 100, .rows = 7}});
  EXPECT_FALSE(behind.reader->next()) << "there is nothing behind the end";
}

}  // namespace
}  // namespace hctr::data_test
