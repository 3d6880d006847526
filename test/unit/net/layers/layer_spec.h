// Creates layers from JSON sections, and computes their specs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "net/layers/layer_catalog.h"
#include "support/message_of.h"

namespace hctr::test {

/// Creates a layer from its section. Appends the schema's problems to `problems`.
inline std::unique_ptr<Layer> made(const std::string& section, Problems& problems) {
  const Json json = Json::parse(section, "test.json");
  const LayerType* type = find_layer_type(*json.find("type")->string());
  HCTR_EXPECT(type, "no such layer");
  return type->make(json, "/layers/1", "top", problems);
}

/// The spec of a layer for f32 inputs of these shapes. The section must be valid.
inline LayerSpec spec_of(const std::string& section, const std::vector<Shape>& shapes, DType dtype = DType::f32) {
  Problems problems;
  const std::unique_ptr<Layer> layer = made(section, problems);
  problems.throw_if_any("test.json");
  Specs specs;
  for (const Shape& shape : shapes) specs.emplace_back(dtype, shape);
  return layer->spec(specs);
}

/// Returns "field: message" of the LayerError for inputs of these shapes.
inline std::string spec_error(const std::string& section, const std::vector<Shape>& shapes) {
  try {
    spec_of(section, shapes);
  } catch (const LayerError& error) {
    return error.field() + ": " + error.what();
  }
  ADD_FAILURE() << "a spec was made";
  return "";
}

/// Returns errors, warnings and notes about the section, one per line: "/layers/1/field: message".
inline std::string complaints(const std::string& section) {
  Problems problems;
  made(section, problems);
  std::string text;
  for (const auto* list : {&problems.errors(), &problems.warnings(), &problems.notes()})
    for (const Problems::Entry& entry : *list) text += entry.pointer + ": " + entry.message + "\n";
  return text;
}

}  // namespace hctr::test
