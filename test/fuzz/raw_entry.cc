#include "data/raw_set.h"
#include "fuzz/entry_tools.h"

namespace hctr::fuzz {

void raw_records(Bytes bytes) {
  const uint8_t pick = take(bytes);
  DataClause clause = small_clause(pick & 1 ? 3 : 0, {{2, 1, 2}});
  clause.float_label_dense = pick & 2;
  if (pick & 4) clause.slot_size_array = {7, 5};
  const RawShape shape(clause, pick & 8 ? 8 : 4);
  const auto policy = pick & 16 ? BadRecordPolicy::skip : BadRecordPolicy::error;
  const std::vector<uint8_t> copy(bytes.begin(), bytes.end());  // so that reading past it is seen
  tolerate([&] {
    const int64_t records = hctr::raw_records(shape, "fuzz", static_cast<int64_t>(copy.size()));
    RawScratch scratch;
    SampleBlock block;
    const BadRecords bad = parse_raw(shape, reinterpret_cast<const std::byte*>(copy.data()), records, policy,
                                     [](int64_t i) { return std::to_string(i); }, scratch, block);
    expect(bad.count + block.rows == records);
    expect_whole(block, record_shape(clause));
    for (int64_t k = 0; k < 2 * block.rows; ++k) expect(block.keys[static_cast<size_t>(k)] >= 0 || shape.key_bytes == 8);
  });
}

}  // namespace hctr::fuzz
