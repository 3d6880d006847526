#include "serve/model_outputs.h"

#include <algorithm>
#include <utility>

#include "config/problems.h"
#include "core/base/expect.h"
#include "formats/catalog/visit_first_rows.h"
#include "score/feature_names.h"

namespace hctr::serve {
namespace {

constexpr const char* kFirstOutput = "OUTPUT0";

/// The names of the label columns; empty if columns have no names.
std::vector<std::string> label_names(const Config& config) {
  std::vector<std::string> names;
  DataSection section = config.data;
  if (const auto stated = columns_of(section))
    for (const LabelColumn& label : *stated->labels) names.push_back(label.column);
  return names;
}

/// The tensor with the labels of a loss.
std::string labels_read_by(const Config& config, const std::string& loss) {
  for (const LayerEntry& layer : config.layers)
    if (layer.tops.at(0) == loss && layer.bottoms.size() > 1) return layer.bottoms[1];
  return {};
}

/// The number of vectors of a slot in the output of an embedding.
int64_t vectors_of_slot(const EmbeddingSection& section, const SparseInput& input, int64_t slot) {
  return section.pooled() ? 1 : input.kept_nnz(slot);
}

}  // namespace

ModelOutputs::ModelOutputs(const ServedModel& model) {
  const std::vector<std::string> labels = label_names(model.config());
  const std::vector<ModelTensor>& losses = model.outputs();
  // the config's tensors come first, so that a name composed of parts cannot take the name of a tensor
  for (size_t i = 0; i < losses.size(); ++i)
    add({losses[i].name, ServedOutput::Kind::scores, i, 0, losses[i].shape[1], losses[i].shape[1], losses[i].shape});
  for (size_t i = losses.size(); i < model.internals().size(); ++i) {
    const InternalTensor& tensor = model.internals()[i];
    const int64_t elements = tensor.row_elements();
    add({model.config().embeddings[tensor.index].section.top(), ServedOutput::Kind::vectors, i, 0, elements, elements,
         tensor.shape});
  }
  for (size_t i = 0; i < losses.size(); ++i) {
    const bool reads_all = labels_read_by(model.config(), losses[i].name) == model.config().data.label.top;
    add_loss(model, i, reads_all ? labels : std::vector<std::string>());
  }
  for (size_t i = losses.size(); i < model.internals().size(); ++i) add_embedding(model, i);
  ServedOutput first = all_[0];
  first.name = kFirstOutput;
  add(std::move(first));
  for (const ServedOutput& output : all_) offered_.push_back(&output);
  for (size_t i = 0; i < losses.size(); ++i) defaults_.push_back(&all_[i]);
}

void ModelOutputs::add(ServedOutput output, const std::string& other_name) {
  const auto taken = [&](const std::string& name) {
    return std::ranges::find(all_, name, &ServedOutput::name) != all_.end();
  };
  if (taken(output.name)) output.name = other_name;
  if (!output.name.empty() && !taken(output.name)) all_.push_back(std::move(output));
}

void ModelOutputs::add_loss(const ServedModel& model, size_t loss, const std::vector<std::string>& labels) {
  const ModelTensor& scores = model.outputs()[loss];
  const InternalTensor& logits = model.internals()[loss];
  const int64_t columns = scores.shape[1], of_logits = logits.row_elements();
  add({cat(scores.name, ".logits"), ServedOutput::Kind::logits, loss, 0, of_logits, of_logits, logits.shape});
  for (int64_t c = 0; c < columns && columns > 1; ++c) {
    const std::string number = cat(scores.name, ".", c);
    const std::string name =
        std::ssize(labels) >= columns ? cat(scores.name, ".", labels[static_cast<size_t>(c)]) : number;
    add({name, ServedOutput::Kind::scores, loss, c, 1, columns, {-1, 1}}, number);
    if (of_logits == columns)
      add({cat(name, ".logits"), ServedOutput::Kind::logits, loss, c, 1, columns, {-1, 1}}, cat(number, ".logits"));
  }
}

void ModelOutputs::add_embedding(const ServedModel& model, size_t internal) {
  const InternalTensor& tensor = model.internals()[internal];
  const Config& config = model.config();
  const EmbeddingSection& section = config.embeddings[tensor.index].section;
  const FeatureNames names = feature_names(config.data);
  const auto input = static_cast<size_t>(std::ranges::find(config.data.sparse, section.bottom, &SparseInput::top) -
                                         config.data.sparse.begin());
  const int64_t dim = tensor.shape.back(), all = tensor.row_elements();
  int64_t first = 0;
  for (int64_t s = 0; s < config.data.sparse[input].slot_num; ++s) {
    const int64_t vectors = vectors_of_slot(section, config.data.sparse[input], s);
    const std::string number = cat(section.top(), ".", s), &column = names.slots[input][static_cast<size_t>(s)];
    const bool named = column != cat(section.bottom, "[", s, "]");
    add({named ? cat(section.top(), ".", column) : number, ServedOutput::Kind::vectors, internal, first, vectors * dim,
         all, section.pooled() ? std::vector<int64_t>{-1, dim} : std::vector<int64_t>{-1, vectors, dim}},
        number);
    first += vectors * dim;
  }
}

void ModelOutputs::offer_only(std::vector<TensorDescription>& stated, bool batches, const std::string& where) {
  std::vector<std::string> names;
  for (const ServedOutput& output : all_) names.push_back(output.name);
  offered_.clear();
  for (TensorDescription& one : stated) {
    const auto found = std::ranges::find(all_, one.name, &ServedOutput::name);
    if (found == all_.end())
      throw Error(Kind::config,
                  cat(where, ": the model has no output '", one.name, "'", did_you_mean(one.name, names)));
    if (one.type != Datatype::f32)
      throw Error(Kind::config,
                  cat(where, ": output '", one.name, "' is ", config_word_of(one.type), ", but outputs are TYPE_FP32"));
    const std::vector<int64_t> shape(found->shape.begin() + (batches ? 1 : 0), found->shape.end());
    // [-1] accepts any shape, because the examples of NVIDIA's backends use it
    const bool any = one.shape == std::vector<int64_t>{-1};
    bool fits = any || one.shape.empty() || one.shape.size() == shape.size();
    for (size_t i = 0; fits && !any && i < one.shape.size(); ++i) fits = one.shape[i] == -1 || one.shape[i] == shape[i];
    if (!fits)
      throw Error(Kind::config, cat(where, ": output '", one.name, "' has \"dims\" ", text_of_shape(one.shape),
                                    ", but the model's output has ", text_of_shape(shape)));
    if (one.shape.empty()) one.shape = shape;
    if (std::ranges::find(offered_, &*found) != offered_.end())
      throw Error(Kind::config, cat(where, ": output '", one.name, "' is given twice"));
    offered_.push_back(&*found);
  }
  defaults_ = offered_;
  stated_ = true;
}

std::vector<const ServedOutput*> ModelOutputs::listed() const {
  if (stated_) return offered_;
  std::vector<const ServedOutput*> listed;
  for (const ServedOutput* output : offered_)
    if (output->kind != ServedOutput::Kind::vectors && output->name != kFirstOutput) listed.push_back(output);
  return listed;
}

std::vector<std::string> ModelOutputs::vectors() const {
  std::vector<std::string> names;
  for (const ServedOutput* output : offered_)
    if (output->kind == ServedOutput::Kind::vectors) names.push_back(output->name);
  return names;
}

const ServedOutput& ModelOutputs::find(const std::string& name, const std::string& model) const {
  std::vector<std::string> names;
  for (const ServedOutput* output : offered_) {
    if (output->name == name) return *output;
    names.push_back(output->name);
  }
  throw Refusal::invalid("unexpected inference output '", name, "' for model '", model, "'", did_you_mean(name, names),
                         names.size() > 40 ? "" : cat("; outputs are ", one_of(names)));
}

}  // namespace hctr::serve
