#include "prepare/inspect/inspect_judge.h"

#include <cmath>
#include <numeric>

#include "core/base/expect.h"

namespace hctr {

SampleJudge::SampleJudge(const RecordShape& shape, const InspectOptions& options)
    : shape_(shape), limits_(options.section.has_value()), binary_(options.binary_labels) {
  if (!limits_ || static_cast<int64_t>(options.section->slot_size_array.size()) != shape.slots()) return;
  sizes_ = options.section->slot_size_array;
  offsets_.resize(sizes_.size());
  std::exclusive_scan(sizes_.begin(), sizes_.end(), offsets_.begin(), int64_t{0});
}

std::string SampleJudge::operator()(const SampleBlock& block, int64_t row) const {
  for (int64_t i = 0; i < shape_.label_dim; ++i) {
    const float value = block.label[static_cast<size_t>(row * shape_.label_dim + i)];
    if (!std::isfinite(value)) return cat("label ", i, " is ", value);
    if (binary_ && value != 0 && value != 1)
      return cat("label ", i, " is ", value, "; BinaryCrossEntropyLoss expects 0 or 1");
  }
  for (int64_t i = 0; i < shape_.dense_dim; ++i)
    if (const float value = block.dense[static_cast<size_t>(row * shape_.dense_dim + i)]; !std::isfinite(value))
      return cat("dense value ", i, " is ", value);
  return limits_ ? keys(block, row) : "";
}

std::string SampleJudge::keys(const SampleBlock& block, int64_t row) const {
  const auto bag_of = [&](int64_t slot) { return block.offsets.data() + slot * block.rows + row; };
  if (std::string problem = shape_.excess([&](int64_t slot) { return bag_of(slot)[1] - bag_of(slot)[0]; });
      !problem.empty() || sizes_.empty())
    return problem;
  int64_t first = 0;
  for (const RecordShape::Input& input : shape_.inputs) {
    for (int64_t s = 0; s < input.slots; ++s) {
      const int64_t slot = first + s;
      const int64_t size = sizes_[static_cast<size_t>(slot)], offset = offsets_[static_cast<size_t>(slot)];
      for (int32_t k = bag_of(slot)[0]; k < bag_of(slot)[1]; ++k) {
        const int64_t key = block.keys[static_cast<size_t>(k)];
        const bool counted_on = key >= offset && key < offset + size, counted_anew = key >= 0 && key < size;
        if (!counted_on && !counted_anew)
          return cat(input.name_of(first, s), " has the key ", key, "; slot_size_array allows keys from ", offset,
                     " to ", offset + size - 1, ", or below ", size);
      }
    }
    first += input.slots;
  }
  return "";
}

}  // namespace hctr
