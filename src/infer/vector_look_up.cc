#include "infer/vector_look_up.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/spec/slot_vector_columns.h"
#include "infer/score_session.h"

namespace hctr {
namespace {

// Maximum number of keys in a pass. A reader allocates memory for this number.
constexpr int64_t kKeysOfPass = 4096;

/// The slot in which a key is looked up. If rows are identified by the key alone, this may be any slot.
size_t slot_of(const TableSpec& spec, int64_t key, size_t position) {
  if (!spec.identity_by_slot) return position % static_cast<size_t>(spec.slots);
  for (int64_t slot = 0; slot < spec.slots && !spec.direct.empty(); ++slot)
    if (spec.direct.has(key, slot)) return static_cast<size_t>(slot);
  return 0;  // a key without a row
}

}  // namespace

VectorLookUp::VectorLookUp(LoadedModel& model, const StoreTables* tables, size_t embedding)
    : spec_(model.replica().table_spec(embedding)),
      runtime_(tables ? Device{} : model.device(), session_options(model)),  // a store returns vectors in host memory
      samples_(std::max<int64_t>(1, kKeysOfPass / spec_.slots)),
      first_columns_(slot_vector_columns(spec_).of_slot),
      slots_(static_cast<size_t>(spec_.slots)) {
  if (spec_.identity_by_slot && spec_.slots > 1 && spec_.direct.empty())
    throw Error(Kind::usage, cat("table '", spec_.name,
                                 "' has a row for each slot and key, so a key alone names no row: "
                                 "send samples, and request the output '",
                                 spec_.name, "'"));
  const int64_t capacity = samples_ * spec_.slots;
  reader_ = tables ? tables->reader(embedding, samples_, capacity, reading_)
                   : model.replica().embedding(embedding).reader(runtime_, samples_, capacity);
  keys_ = memory_.add(TensorSpec(DType::i64, {capacity}));
  offsets_ = memory_.add(TensorSpec(DType::i32, {capacity + 1}));
  vectors_ = memory_.add(TensorSpec(DType::f32, {samples_, spec_.columns(), spec_.dim}));
  memory_.build(runtime_.device());
}

void VectorLookUp::look_up(std::span<const int64_t> keys, const StoreReading* reading, std::span<float> vectors) {
  reading_ = reading;
  for (std::vector<Waiting>& slot : slots_) slot.clear();  // removes keys of an earlier call that threw an error
  for (size_t i = 0; i < keys.size(); ++i) {
    std::vector<Waiting>& slot = slots_[slot_of(spec_, keys[i], i)];
    slot.push_back({keys[i], i});
    if (static_cast<int64_t>(slot.size()) == samples_) flush(vectors);
  }
  flush(vectors);
}

void VectorLookUp::flush(std::span<float> vectors) {
  std::vector<int64_t> keys(static_cast<size_t>(samples_ * spec_.slots));
  std::vector<int32_t> offsets = {0};
  size_t count = 0;
  for (const std::vector<Waiting>& slot : slots_)
    for (size_t sample = 0; sample < static_cast<size_t>(samples_); ++sample) {
      if (sample < slot.size()) keys[count++] = slot[sample].key;
      offsets.push_back(static_cast<int32_t>(count));
    }
  if (count == 0) return;
  const StreamRef stream = runtime_.compute_stream();
  from_host(stream, memory_.get(keys_), keys);
  from_host(stream, memory_.get(offsets_), offsets);
  Context ctx(runtime_, stream);
  reader_->lookup(ctx, memory_.get(keys_), memory_.get(offsets_), memory_.get(vectors_));
  const std::vector<float> found = to_host<float>(stream, memory_.get(vectors_));
  for (size_t s = 0; s < slots_.size(); ++s) {
    for (size_t sample = 0; sample < slots_[s].size(); ++sample) {
      const int64_t column = static_cast<int64_t>(sample) * spec_.columns() + first_columns_[s];
      std::copy_n(found.begin() + column * spec_.dim, spec_.dim,
                  vectors.begin() + static_cast<std::ptrdiff_t>(slots_[s][sample].position) * spec_.dim);
    }
    slots_[s].clear();
  }
}

}  // namespace hctr
