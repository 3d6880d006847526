#include "model/layer_state.h"

#include "base/files.h"
#include "config/json.h"
#include "device/copy.h"

namespace hctr {

LayerState::LayerState(const Config& config, const Graph& graph, Runtime& runtime) {
  for (const LayerEntry& entry : config.layers)
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      if (node.entry != &entry || node.spec.state.empty()) continue;
      LayerItems& layer = layers_.emplace_back(LayerItems{entry.tops[0], entry.type->name(), n, {}});
      for (const StateSpec& spec : node.spec.state)
        layer.items.push_back({spec, arena_.add(TensorSpec(DType::f32, spec.shape))});
    }
  arena_.build(runtime.device());
  for (const LayerItems& layer : layers_)
    for (const Item& item : layer.items)
      from_host(runtime.compute_stream(), arena_.get(item.ticket),
                std::vector<float>(static_cast<size_t>(item.spec.shape.elements()), item.spec.start));
}

std::vector<Tensor> LayerState::of_node(size_t node) const {
  std::vector<Tensor> tensors;
  for (const LayerItems& layer : layers_)
    if (layer.node == node)
      for (const Item& item : layer.items) tensors.push_back(arena_.get(item.ticket));
  return tensors;
}

void LayerState::save(FileSet& set, const std::filesystem::path& path, StreamRef stream) const {
  Json layers(Json::Array{});
  for (const LayerItems& layer : layers_) {
    Json object(Json::Object{{"type", layer.type}, {"name", layer.name}});
    for (const Item& item : layer.items) {
      Json numbers(Json::Array{});
      for (const float value : to_host<float>(stream, arena_.get(item.ticket))) numbers.add(static_cast<double>(value));
      object.set(item.spec.name, std::move(numbers));
    }
    layers.add(std::move(object));
  }
  set.add(path).write(Json(Json::Object{{"layers", std::move(layers)}}).text() + "\n");
}

void LayerState::load(const std::filesystem::path& path, StreamRef stream, const Log& log) {
  const Json file = Json::read_file(path);
  const auto refuse = [&](const std::string& why) {
    throw Error(Kind::data, cat("'", path.string(), "' ", why, ": it belongs to another model"));
  };
  const Json* layers = file.find("layers");
  const size_t count = layers && layers->array() ? layers->array()->size() : 0;
  if (count != layers_.size())
    refuse(cat("has statistics of ", count, count == 1 ? " layer" : " layers", ", and this config has ", layers_.size(),
               " such layers"));
  std::vector<std::pair<size_t, std::vector<float>>> read;  // a file that does not fit changes nothing
  for (size_t l = 0; l < count; ++l) {
    const Json& object = (*layers->array())[l];
    const Json* type = object.find("type");
    const std::string found = type && type->string() ? *type->string() : "a layer without type";
    if (found != layers_[l].type)
      refuse(cat("has ", found, " as layer ", l, ", and this config ", layers_[l].type, " ('", layers_[l].name, "')"));
    for (const Item& item : layers_[l].items) {
      const auto elements = static_cast<size_t>(item.spec.shape.elements());
      std::vector<float>& values =
          read.emplace_back(item.ticket, std::vector<float>(elements, item.spec.when_absent.value_or(0))).second;
      const Json* numbers = object.find(item.spec.name);
      if (!numbers && item.spec.when_absent) continue;
      const size_t size = numbers && numbers->array() ? numbers->array()->size() : 0;
      if (size == 2 * elements)
        log.info("note: '", path.string(), "' has ", size, " numbers as \"", item.spec.name, "\" of layer ", l,
                 ", as HugeCTR 3.0 writes them in mixed precision: the first ", elements, " are taken");
      else if (size != elements)
        refuse(cat("has ", size, " numbers as \"", item.spec.name, "\" of layer ", l, ", and '", layers_[l].name,
                   "' has ", elements));
      for (size_t i = 0; i < elements; ++i) {
        const Json& number = (*numbers->array())[i];
        if (!number.is_number()) refuse(cat("holds ", number.kind(), " in \"", item.spec.name, "\" of layer ", l));
        values[i] = static_cast<float>(number.number());
      }
    }
  }
  for (const auto& [ticket, values] : read) from_host(stream, arena_.get(ticket), values);
}

std::filesystem::path LayerState::path_for(std::filesystem::path dense_model_file) {
  dense_model_file += ".ntp.json";
  return dense_model_file;
}

}  // namespace hctr
