#include <algorithm>

#include "formats/raw/raw_set.h"
#include "fuzz/entry_tools.h"

namespace hctr::fuzz {
namespace {

/// Parses rows directly into a batch, whose memory has exactly the required size. Expects that the result equals the
/// rows of `block`, or that parsing fails if a row is bad. `Key`: the key type of the batch.
template <class Key>
void expect_same_rows(const RawShape& shape, const std::vector<uint8_t>& bytes, int64_t first_row,
                      const SampleBlock& block, int64_t bad) {
  const int64_t rows = block.rows, room = first_row + rows + bad;
  std::vector<float> label(static_cast<size_t>(room * shape.label_dim)),
      dense(static_cast<size_t>(room * shape.dense_dim));
  std::vector<std::vector<Key>> keys(static_cast<size_t>(shape.slots), std::vector<Key>(static_cast<size_t>(room)));
  std::vector<std::byte*> slots;
  for (std::vector<Key>& slot : keys) slots.push_back(reinterpret_cast<std::byte*>(slot.data()));
  bool good = true;
  try {
    parse_raw_rows(
        shape,
        {reinterpret_cast<const std::byte*>(bytes.data()), rows + bad, [](int64_t i) { return std::to_string(i); }},
        {label.data(), dense.data(), slots, first_row, sizeof(Key) == 4});
  } catch (const Error& error) {
    expect(error.kind() == Kind::data);
    good = false;
  }
  expect(good == (bad == 0));
  if (!good) return;
  expect(std::equal(label.begin() + first_row * shape.label_dim, label.end(), block.label.begin()));
  expect(std::equal(dense.begin() + first_row * shape.dense_dim, dense.end(), block.dense.begin()));
  for (int64_t s = 0; s < shape.slots; ++s) {
    const std::vector<Key>& slot = keys[static_cast<size_t>(s)];
    expect(std::equal(slot.begin() + first_row, slot.end(), block.keys.begin() + s * rows));
  }
}

}  // namespace

void raw_records(Bytes bytes) {
  const uint8_t pick = take(bytes);
  DataSection section = small_section(pick & 1 ? 3 : 0, {{2, 1, 2}});
  section.float_label_dense = pick & 2;
  if (pick & 4) section.slot_size_array = {7, 5};
  const RawShape shape(section, pick & 8 ? 8 : 4);
  const auto policy = pick & 16 ? BadRecordPolicy::skip : BadRecordPolicy::error;
  // a copy of exact size, so that sanitizers detect reads past the end
  const std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  tolerate([&] {
    const int64_t records = hctr::raw_records(shape, "fuzz", static_cast<int64_t>(copy.size()));
    RawScratch scratch;
    SampleBlock block;
    const BadRecords bad = parse_raw(
        shape, {reinterpret_cast<const std::byte*>(copy.data()), records, [](int64_t i) { return std::to_string(i); }},
        policy, scratch, block);
    expect(bad.count + block.rows == records);
    expect_whole(block, record_shape(section));
    expect_same_rows<int64_t>(shape, copy, pick >> 5, block, bad.count);
    if (shape.key_bytes == 4) expect_same_rows<uint32_t>(shape, copy, pick >> 5, block, bad.count);
    for (int64_t k = 0; k < 2 * block.rows; ++k)
      expect(block.keys[static_cast<size_t>(k)] >= 0 || shape.key_bytes == 8);
  });
}

}  // namespace hctr::fuzz
