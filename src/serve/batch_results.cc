#include "serve/batch_results.h"

#include <algorithm>
#include <utility>

#include "core/device/current_device.h"

namespace hctr::serve {
namespace {

std::string_view bytes_of_floats(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

std::shared_ptr<std::vector<float>> values_for(int64_t samples, int64_t row_elements) {
  return std::make_shared<std::vector<float>>(static_cast<size_t>(samples * row_elements));
}

}  // namespace

void WantedInternals::add(std::span<const ServedOutput* const> outputs) {
  for (const ServedOutput* output : outputs)
    if (output->kind != ServedOutput::Kind::scores) {
      wanted_.resize(model_->internals().size());
      wanted_[output->result] = true;
    }
}

void WantedInternals::add(const WantedInternals& other) {
  if (wanted_.empty()) wanted_ = other.wanted_;
  for (size_t i = 0; i < wanted_.size(); ++i) wanted_[i] = has(i) || other.has(i);
}

int64_t WantedInternals::bytes_of_sample() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < wanted_.size(); ++i)
    if (wanted_[i]) bytes += model_->internals()[i].row_elements() * static_cast<int64_t>(sizeof(float));
  return bytes;
}

BatchResults::BatchResults(ServedModel& model, const SampleArrays& samples, const WantedInternals& wanted) {
  std::vector<OutputView> outputs;
  std::vector<float*> internals;
  for (const ModelTensor& output : model.outputs()) {
    scores_.push_back(values_for(samples.samples, output.shape[1]));
    outputs.push_back({.name = output.name, .data = scores_.back()->data()});
  }
  for (size_t i = 0; i < model.internals().size(); ++i) {
    internals_.push_back(wanted.has(i) ? values_for(samples.samples, model.internals()[i].row_elements()) : nullptr);
    internals.push_back(internals_.back() ? internals_.back()->data() : nullptr);
  }
  const CurrentDevice kept(model.on_gpu());
  if (samples.samples > 0) model.score(samples.samples, samples.views(0), outputs, internals);
}

NamedTensor BatchResults::rows(const ServedOutput& output, int64_t first, int64_t count) const {
  const Values& all = (output.kind == ServedOutput::Kind::scores ? scores_ : internals_)[output.result];
  std::vector<int64_t> shape = output.shape;
  shape[0] = count;
  const auto row = static_cast<size_t>(output.row_elements), own = static_cast<size_t>(output.elements);
  if (output.whole_rows())
    return {.name = output.name,
            .type = Datatype::f32,
            .shape = std::move(shape),
            .data = bytes_of_floats(
                std::span(*all).subspan(static_cast<size_t>(first) * row, static_cast<size_t>(count) * row)),
            .owner = all};
  Values part = values_for(count, output.elements);
  for (size_t r = 0; r < static_cast<size_t>(count); ++r)
    std::copy_n(all->data() + (static_cast<size_t>(first) + r) * row + static_cast<size_t>(output.first), own,
                part->data() + r * own);
  return tensor_of(output.name, std::move(shape), std::move(part));
}

NamedTensor tensor_of(std::string name, std::vector<int64_t> shape, std::shared_ptr<const std::vector<float>> values) {
  const std::string_view data = bytes_of_floats(*values);
  return {.name = std::move(name),
          .type = Datatype::f32,
          .shape = std::move(shape),
          .data = data,
          .owner = std::move(values)};
}

}  // namespace hctr::serve
