#include "formats/reader/negative_sampling.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/expect.h"
#include "core/base/random.h"

namespace hctr {
namespace {

constexpr int64_t kEnoughRows = 1 << 16;  // enough to estimate a share of 1 % positives with an error of 4 %

bool is_positive(const SampleBlock& block, int64_t label_dim, int64_t row) {
  return block.label[static_cast<size_t>(row * label_dim)] >= 0.5f;
}

/// Copies the rows `which` of a matrix with `width` columns.
void copy_rows(const std::vector<float>& from, int64_t width, const std::vector<int64_t>& which,
               std::vector<float>& to) {
  if (to.size() < which.size() * static_cast<size_t>(width)) to.resize(which.size() * static_cast<size_t>(width));
  float* at = to.data();
  for (const int64_t row : which) at = std::copy_n(from.data() + row * width, width, at);
}

/// Copies the bags of the rows `which`, in slot-major order.
void copy_bags(const SampleBlock& all, int64_t slots, const std::vector<int64_t>& which, SampleBlock& kept) {
  kept.offsets.clear();
  kept.keys.clear();
  for (int64_t s = 0; s < slots; ++s)
    for (const int64_t row : which) {
      const int32_t* bag = all.offsets.data() + s * all.rows + row;
      kept.offsets.push_back(static_cast<int32_t>(kept.keys.size()));
      kept.keys.insert(kept.keys.end(), all.keys.begin() + bag[0], all.keys.begin() + bag[1]);
    }
  kept.offsets.push_back(static_cast<int32_t>(kept.keys.size()));
}

}  // namespace

NegativeSampling::NegativeSampling(double share, uint64_t seed)
    : share_(share), key_(random_key(seed, random_stream("negative sampling"))) {
  HCTR_EXPECT(share > 0 && share <= 1, "the share of kept samples with label 0 is ", share,
              ", expected above 0 and at most 1");
}

float NegativeSampling::log_share() const { return static_cast<float>(std::log(share_)); }

void NegativeSampling::copy_kept(const SampleBlock& all, const BatchShape& shape, const BlockPlace& place,
                                 SampleBlock& kept) const {
  uint64_t key = random_key(key_, static_cast<uint64_t>(place.pass));
  key = random_key(key, place.file);
  key = random_key(key, static_cast<uint64_t>(place.begin.record));
  key = random_key(key, static_cast<uint64_t>(place.begin.offset));
  thread_local std::vector<int64_t> which;
  which.clear();
  for (int64_t row = 0; row < all.rows; ++row) {
    if (!is_positive(all, shape.label_dim, row)) {
      const Random4 draw = philox(key, 0, static_cast<uint64_t>(row));
      const uint64_t bits = uint64_t{draw.v[1]} << 32 | draw.v[0];
      if (static_cast<double>(bits >> 11) * 0x1p-53 >= share_) continue;
    }
    which.push_back(row);
  }
  int64_t slots = 0;
  for (const BatchShape::Table& table : shape.tables) slots += table.slots;
  kept.rows = static_cast<int64_t>(which.size());
  kept.one_hot = all.one_hot;
  copy_rows(all.label, shape.label_dim, which, kept.label);
  copy_rows(all.dense, shape.dense_dim, which, kept.dense);
  copy_bags(all, slots, which, kept);
}

double NegativeSampling::expected_share(SampleSet& set, const BatchShape& shape) const {
  const std::unique_ptr<Parser> parser = set.parser();
  Chunk chunk;
  SampleBlock block;
  int64_t rows = 0, positives = 0;
  for (size_t file = 0; file < set.files().size() && rows < kEnoughRows; ++file) {
    const std::unique_ptr<Cutter> cutter = set.open(file, {});
    chunk.file = file;
    while (rows < kEnoughRows && cutter->next(chunk)) {
      parser->parse(chunk, block);
      rows += block.rows;
      for (int64_t row = 0; row < block.rows; ++row) positives += is_positive(block, shape.label_dim, row);
    }
  }
  if (rows == 0) return 1;
  const double share = static_cast<double>(positives) / static_cast<double>(rows);
  return share + share_ * (1 - share);
}

}  // namespace hctr
