#include "serve/request_samples.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "config/problems.h"
#include "core/base/expect.h"
#include "formats/catalog/visit_first_rows.h"
#include "infer/prediction_source.h"
#include "serve/key_look_up.h"
#include "serve/ranking_form.h"

namespace hctr::serve {
namespace {

[[noreturn]] void refuse_shape(const NamedTensor& tensor, const std::string& expected) {
  throw Refusal::invalid("input '", tensor.name, "' has shape ", text_of_shape(tensor.shape), "; expected ", expected);
}

/// Checks that an input has the same number of samples as all earlier inputs.
void agree_on_samples(int64_t samples, const NamedTensor& of, int64_t& all, std::string& said_by) {
  if (all < 0) {
    all = samples;
    said_by = of.name;
  } else if (all != samples) {
    throw Refusal::invalid("input '", of.name, "' has ", samples, " samples, but input '", said_by, "' has ", all);
  }
}

/// Prefix sums of the bags' sizes. Errors: Refusal for a negative size, and if the sizes do not add up to `values`.
std::vector<int64_t> ends_of(const NamedTensor& counts, int64_t values) {
  std::vector<int64_t> ends = integers_of(counts, false);
  int64_t sum = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < 0 || ends[i] > values - sum)
      throw Refusal::invalid("input '", counts.name, "': element ", i, " is ", ends[i], ", but only ", values - sum,
                             " values are left");
    ends[i] = sum += ends[i];
  }
  if (sum != values)
    throw Refusal::invalid("input '", without_counts(counts.name), "' has ", values, " values, but '", counts.name,
                           "' counts ", sum);
  return ends;
}

std::vector<std::string_view> sorted_names(const InferRequest& request) {
  std::vector<std::string_view> names;
  for (const NamedTensor& input : request.inputs) names.push_back(input.name);
  std::ranges::sort(names);
  return names;
}

/// Errors: Refusal if an input occurs twice.
void expect_distinct_names(const InferRequest& request) {
  const std::vector<std::string_view> names = sorted_names(request);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) throw Refusal::invalid("input '", *twice, "' is given twice");
}

/// The data of a tensor as an array, without a copy; null if the data are not aligned, or have no owner.
template <class T>
std::shared_ptr<const T> array_in(const NamedTensor& tensor) {
  if (!tensor.owner || reinterpret_cast<uintptr_t>(tensor.data.data()) % alignof(T) != 0) return nullptr;
  return {tensor.owner, reinterpret_cast<const T*>(tensor.data.data())};
}

std::vector<RequestColumn> columns_of_config(const Config& config, const std::vector<bool>& slots_optional) {
  std::vector<RequestColumn> columns;
  DataSection section = config.data;
  const auto stated = columns_of(section);
  if (!stated) return columns;
  // A column may occur twice in the config: as a number and as a category.
  const auto add = [&](const RequestColumn& column) {
    const auto before = std::ranges::find(columns, column.name, &RequestColumn::name);
    if (before == columns.end()) {
      columns.push_back(column);
    } else {
      before->has_default = before->has_default && column.has_default;
      before->optional = before->optional && column.optional;
    }
  };
  for (const DenseColumns& group : *stated->dense)
    for (const std::string& name : group.columns) add({name, RequestColumn::Use::dense, group.fallback.has_value()});
  size_t slot = 0;
  for (const SlotColumns& group : *stated->slots)
    for (const std::string& name : group.columns) {
      const bool optional = slot < slots_optional.size() && slots_optional[slot];
      add({name, RequestColumn::Use::slot, group.fallback.has_value(), optional});
      ++slot;
    }
  const auto ignore = [&](const std::string& name) {
    if (!name.empty() && std::ranges::none_of(columns, [&](const auto& column) { return column.name == name; }))
      columns.push_back({name, RequestColumn::Use::ignored});
  };
  for (const LabelColumn& label : *stated->labels) ignore(label.column);
  ignore(section.sample_weight.column);
  return columns;
}

}  // namespace

RequestSamples::RequestSamples(const Config& config, std::vector<ModelTensor> inputs)
    : config_(config), source_(prediction_source(config)), inputs_(std::move(inputs)) {
  config_.data.bad_records = BadRecordPolicy::error;
  config_.data.num_workers = 1;
  source_.num_samples = 0;
  columns_ = columns_of_config(config, source_.slots_optional);
  for (const SparseInput& section : config_.data.sparse) limits_.push_back(limits_of(section));
  for (const ModelTensor& input : inputs_) {
    if (input.role == ModelTensor::Role::dense) {
      described_.push_back({input.name, Datatype::f32, input.shape});
      continue;
    }
    if (std::ranges::all_of(input.most_keys, [](int64_t most) { return most == 1; })) {
      described_.push_back({input.name, Datatype::i64, input.shape});
    } else {
      described_.push_back({input.name, Datatype::i64, {-1}});
      described_.push_back({counts_name(input.name), Datatype::i32, input.shape});
      samples_lead_ = false;
    }
  }
}

bool RequestSamples::is_packed(std::string_view name) const {
  return std::ranges::any_of(inputs_, [&](const ModelTensor& input) {
    return input.name == name || (input.role == ModelTensor::Role::keys && input.name == without_counts(name));
  });
}

bool RequestSamples::is_column(std::string_view name) const {
  return std::ranges::any_of(columns_, [&](const RequestColumn& column) {
    return column.name == name || column.name == without_counts(name);
  });
}

RequestSamples::Form RequestSamples::form_of(const InferRequest& request) const {
  for (const NamedTensor& input : request.inputs) expect_whole(input);
  expect_distinct_names(request);
  const auto all_are = [&](const auto& of_form) {
    return std::ranges::all_of(request.inputs, [&](const NamedTensor& input) { return of_form(input.name); });
  };
  if (all_are([&](std::string_view name) { return is_packed(name); })) return Form::packed;
  if (all_are([&](std::string_view name) { return is_column(name); })) return Form::columns;
  if (all_are([](std::string_view name) { return name == "DES" || name == "CATCOLUMN" || name == "ROWINDEX"; }))
    return Form::backend;
  refuse_names(request);
}

void RequestSamples::refuse_names(const InferRequest& request) const {
  std::vector<std::string> known;
  for (const TensorDescription& one : described_) known.push_back(one.name);
  for (const RequestColumn& column : columns_) known.push_back(column.name);
  const std::vector<std::string_view> seen = sorted_names(request);
  const bool some_packed = std::ranges::any_of(seen, [&](std::string_view name) { return is_packed(name); });
  for (const std::string_view name : seen)
    if (some_packed ? !is_packed(name) : !is_column(name)) {
      if (is_column(name))
        throw Refusal::invalid("input '", name,
                               "' is a column, but other inputs are not: send "
                               "all inputs in one form");
      throw Refusal::invalid("unexpected inference input '", name, "' for model '", request.model, "'",
                             did_you_mean(name, known), known.size() > 40 ? "" : cat("; inputs are ", one_of(known)));
    }
  throw Refusal::invalid("the inputs have several forms; send all inputs in one form");
}

bool RequestSamples::asks_for_vectors(const InferRequest& request) const {
  if (!has_key_inputs(request)) return false;
  // if an input or column of the model itself is named KEYS or NUMKEYS, the request contains samples
  const auto is_own = [&](const NamedTensor& input) {
    return std::ranges::find(described_, input.name, &TensorDescription::name) != described_.end() ||
           std::ranges::find(columns_, input.name, &RequestColumn::name) != columns_.end();
  };
  return std::ranges::none_of(request.inputs, is_own);
}

SampleArrays RequestSamples::read(const InferRequest& request) const {
  if (is_ranking(request)) return read(repeat_single_samples(request));
  SampleArrays samples;
  switch (form_of(request)) {
    case Form::packed:
      samples = read_packed(request);
      break;
    case Form::columns:
      samples = read_columns(request);
      break;
    case Form::backend:
      samples = read_backend_form(request);
      break;
  }
  expect_bags(samples);
  return samples;
}

SampleArrays RequestSamples::empty() const {
  SampleArrays samples{.dense_dim = config_.data.dense.dense_dim, .dense_name = config_.data.dense.top};
  for (const SparseInput& input : config_.data.sparse) {
    SampleArrays::Keys keys{.name = input.top, .slots = input.slot_num};
    keys.offsets.push_back(0);
    samples.inputs.push_back(std::move(keys));
  }
  return samples;
}

void RequestSamples::read_dense(const NamedTensor& tensor, SampleArrays& samples) const {
  if (is_integer(tensor.type) || tensor.type == Datatype::bytes || tensor.type == Datatype::boolean)
    throw Refusal::invalid("input '", tensor.name, "' has datatype ", word_of(tensor.type), "; expected FP32");
  samples.dense = floats_of(tensor);
}

void RequestSamples::read_keys(const NamedTensor& tensor, const NamedTensor* counts, size_t input,
                               SampleArrays& samples) const {
  SampleArrays::Keys& keys = samples.inputs[input];
  const auto bags = static_cast<size_t>(samples.samples * keys.slots);
  if (!counts && tensor.type == Datatype::i64 && tensor.data.size() == bags * sizeof(int64_t))
    keys.given = array_in<int64_t>(tensor);
  if (keys.given) return;
  keys.keys = integers_of(tensor, true);
  if (counts) {
    const std::vector<int64_t> ends = ends_of(*counts, static_cast<int64_t>(keys.keys.size()));
    for (const int64_t end : ends) {
      keys.one_each = keys.one_each && end == keys.offsets.back() + 1;
      keys.offsets.push_back(end);
    }
    return;
  }
  const auto each = static_cast<int64_t>(bags == 0 ? 1 : keys.keys.size() / bags);
  keys.offsets.resize(bags + 1);
  for (size_t bag = 1; bag <= bags; ++bag) keys.offsets[bag] = static_cast<int64_t>(bag) * each;
  keys.one_each = each == 1;
}

SampleArrays RequestSamples::read_packed(const InferRequest& request) const {
  SampleArrays samples = empty();
  int64_t all = -1;
  std::string said_by;
  std::vector<std::pair<const NamedTensor*, const NamedTensor*>> given;
  for (const ModelTensor& input : inputs_) {
    const NamedTensor* tensor = find_input(request, input.name);
    if (!tensor)
      throw Refusal::invalid("expected ", described_.size(), " inputs but found ", request.inputs.size(),
                             " inputs for model '", request.model, "': input '", input.name, "' is missing");
    const NamedTensor* counts = find_counts(request, input.name);
    const int64_t columns = input.shape[1];
    const NamedTensor& leads = counts ? *counts : *tensor;
    const bool flat = leads.shape.size() == 1 && columns == 1;
    const bool lists = !counts && input.role == ModelTensor::Role::keys && leads.shape.size() == 3;
    if (!flat && (leads.shape.size() != (lists ? 3u : 2u) || leads.shape[1] != columns)) {
      const std::string shape = text_of_shape(input.shape);
      refuse_shape(leads, input.role == ModelTensor::Role::dense || counts
                              ? shape
                              : cat(shape, ", or [-1] with an input '", counts_name(input.name), "' of shape ", shape));
    }
    if (counts && tensor->shape.size() != 1) refuse_shape(*tensor, "[-1]");
    expect_few_samples(leads, leads.shape[0]);
    agree_on_samples(leads.shape[0], leads, all, said_by);
    given.emplace_back(tensor, counts);
  }
  samples.samples = std::max<int64_t>(all, 0);
  size_t keys = 0;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].role == ModelTensor::Role::dense) {
      const NamedTensor& tensor = *given[i].first;
      if (tensor.type == Datatype::f32) samples.given_dense = array_in<float>(tensor);
      if (!samples.given_dense) read_dense(tensor, samples);
    } else
      read_keys(*given[i].first, given[i].second, keys++, samples);
  return samples;
}

RequestSamples::BagLimits RequestSamples::limits_of(const SparseInput& section) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  BagLimits limits{.kept = std::min(section.keep_first.value_or(kAll), section.keep_last.value_or(kAll)),
                   .of_sample = section.kept_keys()};
  for (int64_t s = 0; s < section.slot_num; ++s) limits.of_slots.push_back(section.kept_nnz(s));
  const int64_t one = std::min<int64_t>(1, limits.kept);
  limits.allow_one_each = std::ssize(limits.of_slots) * one <= limits.of_sample &&
                          std::ranges::all_of(limits.of_slots, [&](int64_t most) { return one <= most; });
  return limits;
}

void RequestSamples::expect_bags(const SampleArrays& samples) const {
  for (size_t t = 0; t < samples.inputs.size(); ++t) {
    const SampleArrays::Keys& keys = samples.inputs[t];
    const BagLimits& limits = limits_[t];
    if (keys.one_each && limits.allow_one_each) continue;
    size_t bag = 0;
    // All samples are like the first one if each bag has one key.
    for (int64_t b = 0; b < (keys.one_each ? std::min<int64_t>(1, samples.samples) : samples.samples); ++b) {
      int64_t of_sample = 0;
      for (int64_t s = 0; s < keys.slots; ++s, ++bag) {
        const int64_t count = keys.one_each ? 1 : keys.offsets[bag + 1] - keys.offsets[bag];
        const int64_t kept = std::min(count, limits.kept), most = limits.of_slots[static_cast<size_t>(s)];
        if (kept > most)
          throw Refusal::invalid("input '", keys.name, "': slot ", s, " of sample ", b, " has ", count,
                                 " keys, but the model accepts at most ", most);
        of_sample += kept;
      }
      if (of_sample > limits.of_sample)
        throw Refusal::invalid("input '", keys.name, "': sample ", b, " has ", of_sample,
                               " keys in all slots, but the model accepts at most ", limits.of_sample);
    }
  }
}

}  // namespace hctr::serve
