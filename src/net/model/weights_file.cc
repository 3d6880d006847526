// The files of dense weights and of dense optimizer states.
#include <algorithm>
#include <cstring>

#include "config/json.h"
#include "config/sections/optimizer_catalog.h"
#include "core/base/files.h"
#include "core/base/half.h"
#include "core/base/not_finite.h"
#include "core/device/copy_bytes.h"
#include "formats/model/dense_layout.h"
#include "net/model/weights.h"

namespace hctr {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The layer part of a weight's name: "fc1" for "fc1/weights".
std::string layer_of(const std::string& weight) { return weight.substr(0, weight.rfind('/')); }

}  // namespace

std::filesystem::path Weights::layout_path(std::filesystem::path dense_model_file) {
  dense_model_file += ".layout.json";
  return dense_model_file;
}

void Weights::save(FileSet& set, const std::filesystem::path& path, StreamRef stream) const {
  AtomicFile& file = set.add(path);
  Json layout(Json::Array{});
  for (const Item& item : items_) {
    const Tensor value = values_.get(item.value);
    const std::vector<float> host = to_host<float>(stream, value);
    if (const int64_t at = find_not_finite(host); at >= 0)
      throw Error(Kind::data, cat("weight ", at, " of '", item.name, "' is ", host[static_cast<size_t>(at)],
                                  ": training diverged, and this model is not saved"));
    file.write(host.data(), host.size() * sizeof(float));
    Json shape(Json::Array{});
    for (int d = 0; d < value.rank(); ++d) shape.add(value.dim(d));
    layout.add(Json(Json::Object{{"name", item.name}, {"shape", shape}}));
  }
  file.finish();
  set.add(layout_path(path)).write(Json(Json::Object{{"schema", 1}, {"weights", layout}}).text(1) + "\n");
}

void Weights::expect_layout(const std::filesystem::path& path) const {
  const std::filesystem::path layout = layout_path(path);
  if (!std::filesystem::exists(layout)) return;
  const Json file = Json::read_file(layout);
  const Json* weights = file.find("weights");
  if (!weights || !weights->array()) return;
  const auto saved = [&](size_t i) {
    if (i >= weights->array()->size()) return std::string("nothing");
    const Json *name = (*weights->array())[i].find("name"), *shape = (*weights->array())[i].find("shape");
    return cat("'", name && name->string() ? *name->string() : "?", "' ", shape ? shape->text() : "");
  };
  const auto here = [&](size_t i) {
    return i < items_.size() ? cat("'", items_[i].name, "' ", to_string(values_.get(items_[i].value).shape()))
                             : std::string("nothing");
  };
  for (size_t i = 0; i < std::max(items_.size(), weights->array()->size()); ++i)
    if (saved(i) != here(i))
      throw Error(Kind::data,
                  cat("dense model file '", path.string(), "' belongs to another model: its weight ", i, " is ",
                      saved(i), ", but the config has ", here(i), " there (as '", layout.string(), "' says)"));
}

namespace {

/// Reads a dense file. The caller has checked the size.
std::string read_dense(const std::filesystem::path& path, int64_t size) {
  std::string bytes = read_text(path, "dense model file", size);
  if (static_cast<int64_t>(bytes.size()) != size)
    throw Error(Kind::io,
                cat("cannot read dense model file '", path.string(), "': the file was truncated while being read"));
  return bytes;
}

}  // namespace

void Weights::load(const std::filesystem::path& path, Context& ctx, const std::vector<std::string>& layers) {
  const int64_t size = size_of_file(path, "dense model file");  // checks the size before reading
  const bool described = std::filesystem::exists(layout_path(path));
  if (!layers.empty() && described) {
    load_chosen(path, size, layers, ctx);
    return refresh_copies(ctx);
  }
  expect_layout(path);
  size_t expected = 0;
  for (const Item& item : items_) expected += static_cast<size_t>(values_.get(item.value).elements()) * sizeof(float);
  if (size != static_cast<int64_t>(expected))
    throw Error(Kind::data,
                cat("dense model file '", path.string(), "' has ", size, " bytes, but this config's dense layers have ",
                    expected / sizeof(float), " weights, ", expected, " bytes: the file belongs to another model",
                    layers.empty() ? ""
                                   : cat(", and the file '", layout_path(path).string(),
                                         "' with the positions of "
                                         "layers does not exist")));
  const std::string bytes = read_dense(path, size);
  size_t at = 0;
  for (const Item& item : items_) {
    if (layers.empty() || contains(layers, layer_of(item.name))) set_value(item, path, bytes, at, ctx);
    at += static_cast<size_t>(values_.get(item.value).elements()) * sizeof(float);
  }
  refresh_copies(ctx);
}

/// Loads the weights of the chosen layers from the file of another network.
void Weights::load_chosen(const std::filesystem::path& path, int64_t size, const std::vector<std::string>& layers,
                          Context& ctx) {
  const std::vector<SavedWeight> parts = weights_in_layout(layout_path(path), static_cast<size_t>(size));
  const std::string bytes = read_dense(path, size);
  for (const Item& item : items_) {
    if (!contains(layers, layer_of(item.name))) continue;
    const auto found =
        std::find_if(parts.begin(), parts.end(), [&](const SavedWeight& part) { return part.name == item.name; });
    if (found == parts.end()) {
      std::vector<std::string> names;
      for (const SavedWeight& part : parts)
        if (!contains(names, layer_of(part.name))) names.push_back(layer_of(part.name));
      throw Error(Kind::data, cat("dense model file '", path.string(), "' has no '", item.name, "', as '",
                                  layout_path(path).string(), "' states; the layers of the file are ", one_of(names)));
    }
    const Tensor value = values_.get(item.value);
    std::vector<int64_t> shape;
    for (int d = 0; d < value.rank(); ++d) shape.push_back(value.dim(d));
    if (found->shape != shape)
      throw Error(Kind::data, cat("dense model file '", path.string(), "' has '", item.name, "' of shape ",
                                  to_json(found->shape).text(), ", but this config has ", to_json(shape).text()));
    set_value(item, path, bytes, found->at, ctx);
  }
}

/// Sets a weight from the bytes of a file at offset `at`.
void Weights::set_value(const Item& item, const std::filesystem::path& path, const std::string& bytes, size_t at,
                        Context& ctx) const {
  const Tensor value = values_.get(item.value);
  std::vector<float> host(static_cast<size_t>(value.elements()));
  std::memcpy(host.data(), bytes.data() + at, host.size() * sizeof(float));
  if (const int64_t bad = find_not_finite(host); bad >= 0)
    throw Error(Kind::data,
                cat("dense model file '", path.string(), "': weight ", bad, " of '", item.name, "', at byte ",
                    at + static_cast<size_t>(bad) * sizeof(float), ", is ", host[static_cast<size_t>(bad)]));
  from_host(ctx.stream(), value, host);
}

void Weights::save_opt_states(FileSet& set, const std::filesystem::path& path, StreamRef stream) const {
  AtomicFile& file = set.add(path);
  for (const Arena& state : states_)
    for (const Item& item : items_) {
      const std::vector<float> host = to_host<float>(stream, state.get(item.value));
      if (const int64_t at = find_not_finite(host); at >= 0)
        throw Error(Kind::data, cat("the optimizer's state ", at, " of '", item.name, "' is ",
                                    host[static_cast<size_t>(at)], ": training diverged, and this model is not saved"));
      file.write(host.data(), host.size() * sizeof(float));
    }
  file.finish();
}

void Weights::load_opt_states(const std::filesystem::path& path, StreamRef stream) {
  const int64_t size = size_of_file(path, "file of optimizer states");
  size_t weights = 0;
  for (const Item& item : items_) weights += static_cast<size_t>(values_.get(item.value).elements());
  const size_t numbers = weights * states_.size();
  const bool of_two_bytes = size == static_cast<int64_t>(numbers) * 2 && numbers > 0;
  if (size != static_cast<int64_t>(numbers) * 4 && !of_two_bytes)
    throw Error(Kind::data, cat("file of optimizer states '", path.string(), "' has ", size, " bytes, but ",
                                states_.size(), states_.size() == 1 ? " state" : " states", " of ",
                                optimizer_type(optimizer_.kind).name, " for each of ", weights, " dense weights need ",
                                numbers * 4, " bytes: the file belongs to another model or optimizer"));
  const std::string bytes = read_text(path, "file of optimizer states", size);
  if (static_cast<int64_t>(bytes.size()) != size)
    throw Error(Kind::io, cat("cannot read file of optimizer states '", path.string(),
                              "': the file was truncated while being read"));
  const char* at = bytes.data();
  for (const Arena& state : states_)
    for (const Item& item : items_) {
      const Tensor to = state.get(item.value);
      std::vector<float> host(static_cast<size_t>(to.elements()));
      if (of_two_bytes) {
        for (float& value : host) {
          Half half;
          std::memcpy(&half, at, sizeof half);
          at += sizeof half;
          value = static_cast<float>(half);
        }
      } else {
        std::memcpy(host.data(), at, host.size() * sizeof(float));
        at += host.size() * sizeof(float);
      }
      if (const int64_t bad = find_not_finite(host); bad >= 0)
        throw Error(Kind::data, cat("file of optimizer states '", path.string(), "': the state of weight ", bad,
                                    " of '", item.name, "' is ", host[static_cast<size_t>(bad)]));
      from_host(stream, to, host);
    }
}

}  // namespace hctr
