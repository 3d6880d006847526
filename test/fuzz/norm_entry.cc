// Fuzz entry for Norm files: cutting into chunks, finding records and parsing, as in training.
#include "formats/norm/norm_cutter.h"
#include "formats/norm/norm_parse.h"
#include "formats/norm/norm_walk.h"
#include "fuzz/entry_tools.h"

namespace hctr::fuzz {
namespace {

/// guess_record() at any offset of a range, and reading on from the guessed record, must not read outside `bytes`.
void expect_guesses_within(const NormInfo& info, Bytes bytes) {
  // a copy of exact size, so that sanitizers detect reads past the end
  const std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  const std::span all(reinterpret_cast<const std::byte*>(copy.data()), copy.size());
  for (auto at = static_cast<size_t>(info.first_block); at < all.size(); at += 1 + all.size() / 8) {
    const auto guess = guess_record(info, all.subspan(at), static_cast<int64_t>(at));
    if (!guess) continue;
    std::vector<uint32_t> begins = {*guess};
    walk_records(info, all.subspan(at), all.size() - at, info.header.number_of_records, begins);
    expect(begins.back() <= all.size() - at);
  }
}

/// Expects that a packed block has the same samples as `block`.
void expect_same(const SampleBlock& block, const SampleBlock& packed, const RecordShape& shape) {
  expect(packed.rows == block.rows);
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b, int64_t count) {
    return count == 0 || std::memcmp(a.data(), b.data(), static_cast<size_t>(count) * sizeof(float)) == 0;
  };
  expect(same(packed.label, block.label, block.rows * shape.label_dim));
  expect(same(packed.dense, block.dense, block.rows * shape.dense_dim));
  for (int64_t s = 0; s < shape.slots(); ++s)
    for (int64_t r = 0; r < block.rows; ++r) {
      const auto bag = static_cast<size_t>(s * block.rows + r);
      const int32_t begin = block.offsets[bag], count = block.offsets[bag + 1] - begin;
      int64_t at = s * block.rows + r;
      if (!packed.has_ones(s)) {
        expect(packed.offsets[bag + 1] - packed.offsets[bag] == count);
        at = packed.offsets[bag];
      } else {
        expect(count == 1);
        if (!packed.one_hot) at = packed.offsets[static_cast<size_t>(s * block.rows)] + r;
      }
      for (int32_t k = 0; k < count; ++k) {
        const auto from = static_cast<size_t>(begin + k), to = static_cast<size_t>(at + k);
        expect(block.keys[from] == (packed.narrow ? int64_t{packed.keys_32[to]} : packed.keys[to]));
      }
    }
}

}  // namespace

void norm_file(Bytes bytes) {
  const uint8_t pick = take(bytes);
  DataSection section =
      small_section(pick & 1 ? 2 : 0, pick & 2 ? std::vector<std::array<int64_t, 3>>{{1, 3, 3}, {2, 2, 3}}
                                               : std::vector<std::array<int64_t, 3>>{{3, 1, 3}});
  const KeyWidth width = pick & 4 ? (pick & 8 ? KeyWidth::i64 : KeyWidth::u32) : KeyWidth::detect;
  std::optional<BadRecordPolicy> policy;
  if (pick & 16) policy = pick & 32 ? BadRecordPolicy::skip : BadRecordPolicy::error;
  const int64_t range = pick & 64 ? 512 << 10 : 100;
  const bool counted = (pick & 128) && policy != BadRecordPolicy::skip;
  const MemoryFile file(bytes);
  tolerate([&] {
    const auto info = std::make_shared<const NormInfo>(read_norm_info(file.path(), norm_demands(section, width)));
    expect_guesses_within(*info, bytes);
    NormCutter cutter(info, {}, range);
    Chunk chunk;
    ParseScratch scratch, of_packed;
    SampleBlock block, packed;
    packed.may_pack = true;
    int64_t records = 0;
    while (cutter.next(chunk)) {
      find_norm_records(*info, chunk);
      expect(chunk.begin.record == records && chunk.records >= 0);
      records += chunk.records;
      if (counted) {
        const std::vector<RowSpan> every = {{0, count_norm_rows(*info, chunk, policy, scratch)}};
        parse_norm_chunk(*info, chunk, RowSelection(every), policy, scratch, block);
        expect(block.rows == every[0].end);
      } else {
        const BadRecords bad = parse_norm_chunk(*info, chunk, {}, policy, scratch, block);
        expect(bad.count + block.rows == chunk.records);
        expect(parse_norm_chunk(*info, chunk, {}, policy, of_packed, packed).count == bad.count);
        expect_same(block, packed, info->shape);
      }
      expect_whole(block, info->shape);
      if (chunk.records == 0) continue;
      NormCutter again(info, chunk.begin, range);  // a cutter that starts at chunk.begin must return the same chunk
      Chunk same;
      expect(again.next(same));
      find_norm_records(*info, same);
      expect(same.begin == chunk.begin && same.records == chunk.records && same.bytes == chunk.bytes);
    }
    expect(records == info->header.number_of_records);
  });
}

}  // namespace hctr::fuzz
