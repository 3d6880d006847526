#include "infer/small_table.h"

#include <algorithm>

#include "formats/catalog/open_set.h"
#include "formats/io/memory_source.h"
#include "formats/parquet/memory_table.h"

namespace hctr {
namespace {

/// Above this number of rows, a reader with several threads is faster.
constexpr int64_t kMostParsedHere = 512;

/// Appends the keys of slots [first, first + to.slots) of each record, limited to the bag sizes that a batch keeps.
void add_bags(const SampleBlock& block, const BatchShape::Table& shape, int64_t first, SampleArrays::Keys& to) {
  for (int64_t row = 0; row < block.rows; ++row)
    for (int64_t slot = first; slot < first + to.slots; ++slot) {
      const auto bag = static_cast<size_t>(slot * block.rows + row);
      int64_t begin = block.offsets[bag], end = block.offsets[bag + 1];
      if (shape.keep > 0 && end - begin > shape.keep)
        shape.keep_last ? begin = end - shape.keep : end = begin + shape.keep;
      to.keys.insert(to.keys.end(), block.keys.begin() + begin, block.keys.begin() + end);
      to.offsets.push_back(static_cast<int64_t>(to.keys.size()));
      to.one_each = to.one_each && end == begin + 1;
    }
}

void add_block(const SampleBlock& block, const BatchShape& shape, SampleArrays& to) {
  to.samples += block.rows;
  to.dense.insert(to.dense.end(), block.dense.begin(), block.dense.begin() + block.rows * to.dense_dim);
  int64_t first = 0;
  for (size_t t = 0; t < to.inputs.size(); ++t) {
    add_bags(block, shape.tables[t], first, to.inputs[t]);
    first += to.inputs[t].slots;
  }
}

}  // namespace

std::optional<SampleArrays> parse_small_table(const DataSection& section, const Source& source) {
  if (!is_in_memory(source.path) || section.bad_records == BadRecordPolicy::skip) return std::nullopt;
  if (memory_source(source.path)->info().rows > kMostParsedHere) return std::nullopt;
  const std::unique_ptr<SampleSet> set = open_set(section, source, KeyWidth::detect, Log::silent());
  const std::unique_ptr<Parser> parser = set->parser();
  const std::unique_ptr<Cutter> cutter = set->open(0, {});
  const BatchShape shape = batch_shape(section, 1);
  SampleArrays samples = no_samples(section);
  Chunk chunk;
  SampleBlock block;
  while (cutter->next(chunk)) {
    parser->parse(chunk, block);
    add_block(block, shape, samples);
  }
  return samples;
}

}  // namespace hctr
