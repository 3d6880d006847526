#include "data/norm/norm_file.h"
#include "fuzz/entry_tools.h"

namespace hctr::fuzz {

void norm_file(Bytes bytes) {
  const uint8_t pick = take(bytes);
  DataSection section =
      small_section(pick & 1 ? 2 : 0, pick & 2 ? std::vector<std::array<int64_t, 3>>{{1, 3, 3}, {2, 2, 3}}
                                               : std::vector<std::array<int64_t, 3>>{{3, 1, 3}});
  const KeyWidth width = pick & 4 ? (pick & 8 ? KeyWidth::i64 : KeyWidth::u32) : KeyWidth::detect;
  std::optional<BadRecordPolicy> policy;
  if (pick & 16) policy = pick & 32 ? BadRecordPolicy::skip : BadRecordPolicy::error;
  const MemoryFile file(bytes);
  tolerate([&] {
    const auto info = std::make_shared<const NormInfo>(read_norm_info(file.path(), norm_demands(section, width)));
    NormFile cutter(info, {});
    Chunk chunk;
    ParseScratch scratch;
    SampleBlock block;
    int64_t records = 0;
    while (cutter.next(chunk)) {
      expect(chunk.begin.record == records && chunk.records > 0);
      records += chunk.records;
      const BadRecords bad = parse_norm_chunk(*info, chunk, policy, scratch, block);
      expect(bad.count + block.rows == chunk.records);
      expect_whole(block, info->shape);
      NormFile again(info, chunk.begin);  // going on from a chunk's place gives the chunk
      Chunk same;
      expect(again.next(same) && same.begins == chunk.begins);
    }
    expect(records == info->header.number_of_records);
  });
}

}  // namespace hctr::fuzz
