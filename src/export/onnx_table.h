// The lookup of an embedding in an ONNX graph.
//
// A binary search finds each key in the sorted keys of the table. The search uses only operators that every runtime
// supports, and needs no memory except the keys. Row 0 of the vectors is zero, and is used for keys without a row.
#pragma once

#include <string>

#include "config/sections/embedding_section.h"
#include "export/onnx_file.h"
#include "export/onnx_model.h"

namespace hctr {

struct OnnxLookup {
  const TableArrays& table;
  const EmbeddingSection& section;
  const SparseInput& input;
  OnnxKeys keys;
  int64_t no_key = kNoKey;
};

/// Adds the lookup with output `vectors`, [N, columns, dim], and the initializers "<table>/keys" and "<table>/vectors".
/// If `lengths` is not empty, adds the bag lengths [N, slots] under that name.
void add_lookup(OnnxModel&, const OnnxLookup&, const std::string& vectors, const std::string& lengths);

}  // namespace hctr
