#include "formats/norm/norm_cutter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/base/ordered_workers.h"
#include "formats/norm/norm_walk.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

/// Records found in a file: position and bytes of each record, and the error after the last one.
struct Found {
  std::vector<int64_t> begins;
  std::vector<std::vector<std::byte>> records;
  std::string problem;

  void add(const Chunk& chunk) {
    EXPECT_EQ(chunk.begin.record, static_cast<int64_t>(records.size()));
    for (size_t i = 0; i < static_cast<size_t>(chunk.records); ++i) {
      begins.push_back(chunk.begin.offset + chunk.begins[i] - chunk.begins[0]);
      records.emplace_back(chunk.buffer.begin() + chunk.begins[i], chunk.buffer.begin() + chunk.begins[i + 1]);
    }
  }
};

/// The reference: one sequential pass over the whole file.
Found walked(const std::shared_ptr<const NormInfo>& info) {
  Found found;
  const std::vector<std::byte> file = bytes_of(info->path);
  const int64_t first = info->first_block, promised = info->header.number_of_records;
  const std::span bytes = std::span(file).subspan(static_cast<size_t>(first));
  std::vector<uint32_t> ends = {0};
  const RecordWalk walk = walk_records(*info, bytes, bytes.size(), promised, ends);
  for (size_t i = 0; i + 1 < ends.size(); ++i) {
    found.begins.push_back(first + ends[i]);
    found.records.emplace_back(bytes.begin() + ends[i], bytes.begin() + ends[i + 1]);
  }
  const auto records = static_cast<int64_t>(found.records.size());
  const int64_t end = first + ends.back();
  const std::string file_name = cat("data: '", info->path.string(), "': ");
  const std::string place = cat(file_name, "record ", records + 1, " of ", promised, ", at byte ", end, ": ");
  if (walk.end == RecordWalk::End::bad)
    found.problem = place + walk.problem;
  else if (records < promised)
    found.problem = cat(place, "is truncated: only ", info->bytes - end, " of its bytes are in the file");
  else if (end != info->bytes)
    found.problem = cat(file_name, "its header promises ", promised, " records, which end at byte ", end,
                        ", but the file has ", info->bytes, " bytes");
  return found;
}

/// Finds records in ranges that threads read concurrently.
Found ranged(const std::shared_ptr<const NormInfo>& info, int64_t bytes, int threads, FilePosition from = {}) {
  Found found;
  found.problem = message_of([&] {
    NormCutter cutter(info, from, bytes);
    OrderedWorkers<Chunk, std::shared_ptr<Chunk>> workers(
        threads, [&](Chunk& chunk) { return cutter.next(chunk); },
        [&](Chunk& chunk) {
          find_norm_records(*info, chunk);
          auto copy = std::make_shared<Chunk>();
          copy->begin = chunk.begin;
          copy->records = chunk.records;
          copy->buffer = chunk.buffer;
          copy->begins = chunk.begins;
          return copy;
        });
    while (const auto chunk = workers.next()) {
      if (from.offset > 0 && found.records.empty())
        found.records.resize(static_cast<size_t>(from.record)), found.begins.resize(found.records.size());
      found.add(**chunk);
    }
  });
  return found;
}

TEST(NormCutter, FindTheRecordsThatOneWalkFindsForAnyRangeAndAnyNumberOfThreads) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  for (const auto& [check, key_bytes, bags] : kNormVariants)
    for (const uint64_t key_limit : {uint64_t{2}, uint64_t{1} << 31}) {  // keys 0 and 1 look like key counts
      write_rows(folder / "a", style_of(section, check, key_bytes),
                 random_rows(section, 2000, 5 + key_limit, key_limit, bags));
      const auto info =
          std::make_shared<const NormInfo>(read_norm_info(folder / "a", norm_demands(section, KeyWidth::detect)));
      const Found expected = walked(info);
      ASSERT_EQ(expected.records.size(), 2000u);
      for (const int64_t bytes : {50, 1000, 9999, 512 << 10})  // 50 bytes are shorter than most records
        for (const int threads : {1, 4}) {
          SCOPED_TRACE(cat("check ", check == Check::sum, ", keys of ", key_bytes, ", bags ", bags, ", ranges of ",
                           bytes, ", ", threads, " threads"));
          const Found found = ranged(info, bytes, threads);
          EXPECT_EQ(found.problem, "");
          EXPECT_EQ(found.begins, expected.begins);
          EXPECT_EQ(found.records, expected.records);
        }
    }
}

TEST(NormCutter, TheFirstRecordBehindAnyByteIsGuessedRight) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  for (const auto& [check, key_bytes, bags] : kNormVariants) {
    write_rows(folder / "a", style_of(section, check, key_bytes), random_rows(section, 100, 9, 1 << 20, bags));
    const auto info =
        std::make_shared<const NormInfo>(read_norm_info(folder / "a", norm_demands(section, KeyWidth::detect)));
    const auto begins = walked(info).begins;
    const auto bytes = bytes_of(folder / "a");
    int asked = 0, right = 0;
    for (int64_t at = info->first_block; at < begins[80]; at += 7, ++asked) {
      const auto guess = guess_record(*info, {bytes.begin() + at, bytes.end()}, at);
      right += guess && at + *guess == *std::lower_bound(begins.begin(), begins.end(), at);
    }
    EXPECT_GE(right, bags && check == Check::none ? asked / 4 : asked * 99 / 100)
        << right << " of " << asked;  // bags without checksums have few bytes that identify a record
  }
}

TEST(NormCutter, ARecordLongerThanSeveralRangesLeavesThoseEmpty) {
  const Folder folder;
  const DataSection section = section_of(1, 0, {input_of("x", 1, 5000, 5000)});
  for (const Check check : {Check::sum, Check::none}) {
    auto rows = random_rows(section, 40, 3, 1000, true);
    write_rows(folder / "a", style_of(section, check, 8), rows);
    const auto info =
        std::make_shared<const NormInfo>(read_norm_info(folder / "a", norm_demands(section, KeyWidth::detect)));
    const Found found = ranged(info, 1000, 3);
    EXPECT_EQ(found.problem, "");
    EXPECT_EQ(found.records, walked(info).records);
  }
}

TEST(NormCutter, GoingOnFromWhereAChunkBeginsGivesTheSameChunks) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  for (const auto& [check, key_bytes, bags] : kNormVariants) {
    write_rows(folder / "a", style_of(section, check, key_bytes), random_rows(section, 300, 9, 100, bags));
    const auto info =
        std::make_shared<const NormInfo>(read_norm_info(folder / "a", norm_demands(section, KeyWidth::detect)));
    std::vector<FilePosition> begins;
    NormCutter cutter(info, {}, 700);
    for (Chunk chunk; cutter.next(chunk);) {
      find_norm_records(*info, chunk);
      begins.push_back(chunk.begin);
    }
    EXPECT_EQ(begins.back(), (FilePosition{300, info->bytes}));
    for (size_t i = 0; i < begins.size(); i += 5) {
      NormCutter again(info, begins[i], 700);
      size_t at = i;
      for (Chunk chunk; again.next(chunk);) {
        find_norm_records(*info, chunk);
        while (at < begins.size() && begins[at] == begins[i] && chunk.begin != begins[i])
          ++at;  // skips ranges in which no record begins, because `again` does not return them
        ASSERT_LT(at, begins.size());
        ASSERT_EQ(chunk.begin, begins[at++]) << i;
      }
      EXPECT_EQ(at, begins.size());
    }
  }
}

TEST(NormCutter, EveryDamageIsReportedAsByOneWalk) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  int problems = 0;
  for (const auto& [check, key_bytes, bags] : kNormVariants) {
    write_rows(folder / "whole", style_of(section, check, key_bytes), random_rows(section, 120, 9, 1000, bags));
    const auto bytes = bytes_of(folder / "whole");
    const auto clean = read_norm_info(folder / "whole", norm_demands(section, KeyWidth::detect));
    for (uint64_t i = 0; i < 150; ++i) {
      auto damaged = bytes;
      const uint64_t draw = mix64(i), place = static_cast<uint64_t>(clean.first_block) +
                                              mix64(draw) % (bytes.size() - static_cast<size_t>(clean.first_block));
      if (i % 5 == 0)
        damaged.resize(place);
      else if (i % 5 == 1)
        damaged.insert(damaged.end(), 1 + draw % 700, std::byte{1});
      else
        damaged[place] = static_cast<std::byte>(draw);
      put_bytes(folder / "a", damaged);
      auto info = std::make_shared<NormInfo>(clean);
      info->path = folder / "a";
      info->bytes = static_cast<int64_t>(damaged.size());
      const Found expected = walked(info);
      for (const int threads : {1, 3}) {
        const Found found = ranged(info, 1000, threads);
        EXPECT_EQ(found.problem, expected.problem) << i;
        if (expected.problem.empty()) {
          EXPECT_EQ(found.records, expected.records) << i;
        }
      }
      problems += !expected.problem.empty();
    }
  }
  EXPECT_GT(problems, 600)
      << "half of the files were cut off or got longer, and of the others many have a count that is wrong";
}

TEST(NormCutter, AnImpossibleLengthIsNamedAtAnyRecord) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  write_rows(folder / "whole", style_of(section, Check::sum, 8), random_rows(section, 40, 3, 1000, true));
  const auto bytes = bytes_of(folder / "whole");
  auto info = std::make_shared<NormInfo>(read_norm_info(folder / "whole", norm_demands(section, KeyWidth::detect)));
  info->path = folder / "whole";
  const Found clean = walked(info);
  ASSERT_EQ(clean.records.size(), 40u);
  info->path = folder / "a";
  for (const size_t record : {0u, 1u, 17u, 39u})
    for (const int32_t length :
         {-5, -6, -1, 0, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
      auto damaged = bytes;
      std::memcpy(damaged.data() + clean.begins[record], &length, sizeof length);
      put_bytes(folder / "a", damaged);
      for (const Found& found : {walked(info), ranged(info, 300, 1), ranged(info, 300, 3)})
        EXPECT_NE(found.problem.find(cat("record ", record + 1)), std::string::npos) << length << ": " << found.problem;
    }
}

TEST(NormCutter, ThoseBehindARangeThatIsNotReadDoNotWait) {
  const Folder folder;
  const DataSection section = wide_and_deep_section();
  write_rows(folder / "a", style_of(section, Check::sum, 8), random_rows(section, 100, 9, 1000, true));
  const auto info =
      std::make_shared<const NormInfo>(read_norm_info(folder / "a", norm_demands(section, KeyWidth::detect)));
  NormCutter cutter(info, {}, 1000);
  Chunk first, second;
  EXPECT_TRUE(cutter.next(first) && cutter.next(second));
  first.source.reset();
  EXPECT_SAYS(message_of([&] { find_norm_records(*info, second); }), "records before byte 1000 could not be read");
}

}  // namespace
}  // namespace hctr::data_test
