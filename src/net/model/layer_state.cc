#include "net/model/layer_state.h"

#include <algorithm>

#include "config/json.h"
#include "core/base/files.h"
#include "core/device/copy_bytes.h"

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

std::vector<NamedTensor> LayerState::values() const {
  std::vector<NamedTensor> named;
  for (const LayerItems& layer : layers_)
    for (const Item& item : layer.items) named.push_back({layer.name + "/" + item.spec.name, arena_.get(item.ticket)});
  return named;
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

std::vector<std::vector<float>> LayerState::read_layer(const Json& object, const LayerItems& layer, size_t number,
                                                       const std::filesystem::path& path, const Log& log) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Kind::data, cat("'", path.string(), "' ", why, ": the file belongs to another model"));
  };
  const Json* type = object.find("type");
  const std::string found = type && type->string() ? *type->string() : "a layer without type";
  if (found != layer.type)
    refuse(cat("has ", found, " as layer ", number, ", but this config has ", layer.type, " ('", layer.name, "')"));
  std::vector<std::vector<float>> of_items;
  for (const Item& item : layer.items) {
    const auto elements = static_cast<size_t>(item.spec.shape.elements());
    std::vector<float>& values = of_items.emplace_back(elements, item.spec.when_absent.value_or(0));
    const Json* numbers = object.find(item.spec.name);
    if (!numbers && item.spec.when_absent) continue;
    const size_t size = numbers && numbers->array() ? numbers->array()->size() : 0;
    if (size == 2 * elements)
      log.info("note: '", path.string(), "' has ", size, " numbers as \"", item.spec.name, "\" of layer ", number,
               ", as HugeCTR 3.0 writes them in mixed precision: the first ", elements, " numbers are used");
    else if (size != elements)
      refuse(cat("has ", size, " numbers as \"", item.spec.name, "\" of layer ", number, ", but '", layer.name,
                 "' needs ", elements));
    for (size_t i = 0; i < elements; ++i) {
      const Json& value = (*numbers->array())[i];
      if (!value.is_number()) refuse(cat("holds ", value.kind(), " in \"", item.spec.name, "\" of layer ", number));
      values[i] = static_cast<float>(value.number());
    }
  }
  return of_items;
}

void LayerState::set_values(const LayerItems& layer, const std::vector<std::vector<float>>& values, StreamRef stream) {
  for (size_t i = 0; i < values.size(); ++i) from_host(stream, arena_.get(layer.items[i].ticket), values[i]);
}

void LayerState::load(const std::filesystem::path& path, StreamRef stream, const Log& log) {
  const Json file = Json::read_file(path);
  const Json* layers = file.find("layers");
  const size_t count = layers && layers->array() ? layers->array()->size() : 0;
  if (count != layers_.size())
    throw Error(Kind::data,
                cat("'", path.string(), "' has statistics of ", count, count == 1 ? " layer" : " layers",
                    ", but this config has ", layers_.size(), " such layers: the file belongs to another model"));
  // Read the whole file before setting values, so that a mismatch changes nothing.
  std::vector<std::vector<std::vector<float>>> read;
  for (size_t l = 0; l < count; ++l) read.push_back(read_layer((*layers->array())[l], layers_[l], l, path, log));
  for (size_t l = 0; l < count; ++l) set_values(layers_[l], read[l], stream);
}

void LayerState::load_layers(const std::filesystem::path& path, const std::vector<std::string>& chosen,
                             StreamRef stream, const Log& log) {
  const Json file = Json::read_file(path);
  const Json* list = file.find("layers");
  const Json::Array objects = list && list->array() ? *list->array() : Json::Array{};
  for (const LayerItems& layer : layers_) {
    if (std::find(chosen.begin(), chosen.end(), layer.name) == chosen.end()) continue;
    const auto object = std::find_if(objects.begin(), objects.end(), [&](const Json& of) {
      const Json* name = of.find("name");
      return name && name->string() && *name->string() == layer.name;
    });
    if (object == objects.end())
      log.info("note: '", path.string(), "' has no statistics of layer '", layer.name,
               "': the statistics of this layer are reset");
    else
      set_values(layer, read_layer(*object, layer, static_cast<size_t>(object - objects.begin()), path, log), stream);
  }
}

std::filesystem::path LayerState::path_for(std::filesystem::path dense_model_file) {
  dense_model_file += ".ntp.json";
  return dense_model_file;
}

}  // namespace hctr
