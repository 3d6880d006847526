#include "formats/model/dense_layout.h"

#include "config/json.h"
#include "core/base/expect.h"

namespace hctr {

std::vector<SavedWeight> weights_in_layout(const fs::path& layout, size_t bytes) {
  const Json file = Json::read_file(layout);
  const Json* weights = file.find("weights");
  std::vector<SavedWeight> parts;
  size_t at = 0;
  for (const Json& weight : weights && weights->array() ? *weights->array() : Json::Array{}) {
    const Json *name = weight.find("name"), *shape = weight.find("shape");
    if (!name || !name->string() || !shape || !shape->array())
      throw Error(Kind::data, cat("'", layout.string(), "' has ", weight.text(), " as a weight"));
    SavedWeight& part = parts.emplace_back(SavedWeight{*name->string(), {}, at});
    for (const Json& size : *shape->array()) {
      if (!size.integer() || *size.integer() < 0 || *size.integer() > static_cast<int64_t>(bytes))
        throw Error(Kind::data, cat("'", layout.string(), "' has ", size.text(), " in the shape of '", part.name, "'"));
      part.shape.push_back(*size.integer());
      if (part.bytes() > bytes) break;
    }
    if (part.bytes() > bytes - at)
      throw Error(Kind::data, cat("'", layout.string(), "' has '", part.name, "' end after the ", bytes,
                                  " bytes of the dense model file"));
    at += part.bytes();
  }
  if (at != bytes)
    throw Error(Kind::data,
                cat("'", layout.string(), "' lists weights of ", at, " bytes, but the dense model file has ", bytes));
  return parts;
}

}  // namespace hctr
