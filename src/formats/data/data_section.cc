#include "formats/data/data_section.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/expect.h"

namespace hctr {

const std::vector<std::pair<std::string, Check>>& EnumWords<Check>::table() {
  static const std::vector<std::pair<std::string, Check>> words = {{"Sum", Check::sum}, {"None", Check::none}};
  return words;
}

const std::vector<std::pair<std::string, BadRecordPolicy>>& EnumWords<BadRecordPolicy>::table() {
  static const std::vector<std::pair<std::string, BadRecordPolicy>> words = {{"error", BadRecordPolicy::error},
                                                                             {"skip", BadRecordPolicy::skip}};
  return words;
}

const std::vector<std::pair<std::string, SparseType>>& EnumWords<SparseType>::table() {
  static const std::vector<std::pair<std::string, SparseType>> words = {
      {"DistributedSlot", SparseType::distributed_slot}, {"LocalizedSlot", SparseType::localized_slot}};
  return words;
}

Misfit read_value(const Json& value, const Range& range, PerSlot& out) {
  if (value.array() && value.array()->size() != 1) return read_value(value, range, out.values);
  int64_t one = 0;
  const std::string expected = read_value(value, range, one);
  if (!expected.empty()) return expected + ", or an array with one for each slot";
  out.values = {one};
  return {};
}

Json to_json(const PerSlot& per_slot) { return to_json(per_slot.values); }

Misfit read_value(const Json& value, const Range& range, Width& out) {
  std::optional<int64_t> number;
  const Misfit misfit = read_value(value, range, number);
  if (number) out = *number;
  return misfit;
}

Json to_json(const Width& width) { return width.given() ? Json(int64_t{width}) : Json(); }

Misfit read_value(const Json& value, const Range& range, CachedBatches& out) {
  if (const bool* all = unwrapped(value).boolean()) {
    out.most = *all ? std::numeric_limits<int64_t>::max() : 0;
    return {};
  }
  const std::string expected = read_value(value, range, out.most);
  return expected.empty() ? Misfit() : Misfit(expected + ", or true or false");
}

Json to_json(const CachedBatches& cached) {
  return cached.most == std::numeric_limits<int64_t>::max() ? Json(true) : Json(cached.most);
}

Misfit read_value(const Json& value, const Range& range, AsyncParam& out) {
  if (!value.object()) return "an object";
  const Json* shuffle = value.find("shuffle");
  if (!shuffle) return {};
  Misfit misfit = read_value(*shuffle, range, out.shuffle);
  if (!misfit.empty()) {
    misfit.pointer = "/shuffle";
    misfit.found = shuffle->kind();
  }
  return misfit;
}

Json to_json(const AsyncParam& param) { return Json(Json::Object{{"shuffle", param.shuffle}}); }

RecordShape::Input SparseInput::limits() const {
  HCTR_EXPECT(nnz_per_slot || max_feature_num_per_sample, "sparse input \"", top, "\" without limits");
  RecordShape::Input limits{.name = top, .slots = slot_num};
  if (!nnz_per_slot) {
    limits.max_nnz = max_nnz.value_or(*max_feature_num_per_sample);
    limits.max_keys = std::min(limits.max_nnz * slot_num, *max_feature_num_per_sample);
  } else if (const std::vector<int64_t>& values = nnz_per_slot->values; values.size() == 1) {
    limits.max_nnz = values[0];
    limits.max_keys = limits.max_nnz * slot_num;
  } else {
    limits.max_nnz = *std::max_element(values.begin(), values.end());
    limits.max_keys = std::accumulate(values.begin(), values.end(), int64_t{0});
    limits.nnz = values;
  }
  return limits;
}

int64_t SparseInput::kept_places() const {
  const RecordShape::Input limit = limits();
  if (limit.nnz.empty()) return slot_num * kept_of(limit.max_nnz);
  int64_t places = 0;
  for (const int64_t nnz : limit.nnz) places += kept_of(nnz);
  return places;
}

int64_t DataSection::slots() const {
  int64_t sum = 0;
  for (const SparseInput& input : sparse) sum += input.slot_num;
  return sum;
}

RecordShape record_shape(const DataSection& section) {
  RecordShape shape{.label_dim = section.label.label_dim, .dense_dim = section.dense.dense_dim, .inputs = {}};
  for (const SparseInput& input : section.sparse) shape.inputs.push_back(input.limits());
  return shape;
}

BatchShape batch_shape(const DataSection& section, int64_t samples) {
  BatchShape shape{
      .samples = samples, .label_dim = section.label.label_dim, .dense_dim = section.dense.dense_dim, .tables = {}};
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  for (const SparseInput& input : section.sparse) {
    if (samples > 0 && (input.kept_keys() > most / samples || input.slot_num > most / samples))
      throw Error(Kind::config, cat("sparse input \"", input.top, "\": a batch of ", samples, " samples could hold ",
                                    input.kept_keys(), " keys in ", input.slot_num, " slots each, more than ", most,
                                    " in total; set a smaller batch or smaller limits"));
    shape.tables.push_back({.slots = input.slot_num,
                            .key_capacity = input.kept_keys() * samples,
                            .keep = input.keep_first ? *input.keep_first : input.keep_last.value_or(0),
                            .keep_last = input.keep_last.has_value()});
  }
  return shape;
}

}  // namespace hctr
