// A reader under test, its memory, and the batches that it delivers.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "formats/reader/reader.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {

/// A copy of a delivered batch, as a consumer reads it.
struct ReadBatch {
  StepState state;
  std::vector<float> label, dense;
  std::vector<std::vector<int32_t>> offsets;
  std::vector<std::vector<int64_t>> keys;
  std::vector<PackedKeys> packed;  // the keys as stored in the batch
};

/// The reader under test with its memory.
struct Rig {
  Rig(const DataSection& section, const fs::path& list, ReaderOptions options, int buffers = 2, Log log = Log::silent())
      : Rig(section, Source{list.string()}, options, buffers, log) {}
  Rig(const DataSection& section, const Source& source, ReaderOptions options, int buffers = 2, Log log = Log::silent())
      : layout(batch_shape(section, (options.batch + options.ranks - 1) / options.ranks)),
        memory(static_cast<size_t>(buffers)) {
    std::vector<std::byte*> pointers;
    for (auto& block : memory) {
      block.assign(layout.bytes, std::byte{0xAB});
      pointers.push_back(block.data());
    }
    reader = std::make_unique<Reader>(section, source, layout, pointers, options, log);
  }

  std::optional<ReadBatch> next() {
    const std::optional<int> buffer = reader->next();
    if (!buffer) return std::nullopt;
    EXPECT_EQ(*buffer, expected_buffer);
    expected_buffer = (expected_buffer + 1) % static_cast<int>(memory.size());
    const BatchView view(layout, memory[static_cast<size_t>(*buffer)].data());
    const BatchShape& shape = layout.shape;
    ReadBatch seen{*view.state,
                   {view.label, view.label + shape.samples * shape.label_dim},
                   {view.dense, view.dense + shape.samples * shape.dense_dim},
                   {},
                   {},
                   {}};
    for (size_t t = 0; t < shape.tables.size(); ++t) {
      auto& offsets = seen.offsets.emplace_back();
      for (int64_t bag = 0; bag <= shape.tables[t].slots * shape.samples; ++bag)
        offsets.push_back(view.tables[t].offset(bag));
      seen.keys.push_back(view.tables[t].keys_of(0, offsets.back()));
      EXPECT_EQ(view.packed[t].count, offsets.back());
      seen.packed.push_back(view.packed[t]);
    }
    reader->release(*buffer);
    return seen;
  }

  std::vector<ReadBatch> all(int most = 1000) {
    std::vector<ReadBatch> batches;
    for (int i = 0; i < most; ++i) {
      auto seen = next();
      if (!seen) break;
      batches.push_back(std::move(*seen));
    }
    return batches;
  }

  BatchLayout layout;
  std::vector<std::vector<std::byte>> memory;
  std::unique_ptr<Reader> reader;
  int expected_buffer = 0;
};

/// Checks that the batch `seen` contains the rows of the set from row `first` on, where the layout defines their place.
/// After its last row, the set starts again.
inline void expect_batch(const ReadBatch& seen, const BatchShape& shape, const std::vector<Row>& rows, int64_t first) {
  size_t slot0 = 0;
  for (int64_t b = 0; b < shape.samples; ++b) {
    const bool valid = b < seen.state.valid_samples;
    const Row& row = rows[static_cast<size_t>(first + b) % rows.size()];
    for (int64_t k = 0; k < shape.label_dim; ++k)
      ASSERT_EQ(seen.label[static_cast<size_t>(b * shape.label_dim + k)],
                valid ? row.label[static_cast<size_t>(k)] : 0);
    for (int64_t k = 0; k < shape.dense_dim; ++k)
      ASSERT_EQ(seen.dense[static_cast<size_t>(b * shape.dense_dim + k)],
                valid ? row.dense[static_cast<size_t>(k)] : 0);
  }
  for (size_t t = 0; t < shape.tables.size(); ++t) {
    ASSERT_EQ(seen.offsets[t][0], 0);
    for (int64_t s = 0; s < shape.tables[t].slots; ++s)
      for (int64_t b = 0; b < shape.samples; ++b) {
        const auto bag = static_cast<size_t>(s * shape.samples + b);
        const std::vector<int64_t> keys(seen.keys[t].begin() + seen.offsets[t][bag],
                                        seen.keys[t].begin() + seen.offsets[t][bag + 1]);
        const Row& row = rows[static_cast<size_t>(first + b) % rows.size()];
        ASSERT_EQ(keys,
                  b < seen.state.valid_samples ? row.slots[slot0 + static_cast<size_t>(s)] : std::vector<int64_t>{})
            << "slot " << s << " sample " << b;
      }
    slot0 += static_cast<size_t>(shape.tables[t].slots);
  }
}

/// Expects equal batches, bit for bit.
inline void expect_equal(const ReadBatch& a, const ReadBatch& b) {
  EXPECT_TRUE(a.state == b.state) << a.state.first_sample << " " << b.state.first_sample;
  EXPECT_EQ(a.label, b.label);
  EXPECT_EQ(a.dense, b.dense);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.keys, b.keys);
}

/// Expects that a reader of `source` delivers exactly `rows`, in this order. Repeats the test with several numbers of
/// workers.
inline void expect_reads(const DataSection& section, const fs::path& source, const std::vector<Row>& rows,
                         int64_t batch = 100) {
  for (const int workers : {1, 3}) {
    Rig rig(section, source, {.batch = batch, .workers = workers, .repeat = false});
    const auto batches = rig.all(100000);
    int64_t first = 0;
    for (const ReadBatch& seen : batches) {
      expect_batch(seen, rig.layout.shape, rows, first);
      first += seen.state.valid_samples;
    }
    EXPECT_EQ(first, static_cast<int64_t>(rows.size()));
  }
}

}  // namespace hctr::data_test
