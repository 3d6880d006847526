// The look-up of an embedding in an ONNX graph.
//
// A binary search finds keys among the sorted keys of the table, with operators that every runtime has and no memory
// beyond the keys. Row 0 of the vectors is zeros, for keys without a row.
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

/// Adds the vectors [N, columns, dim] under the name `vectors` and, unless its name is empty, the lengths [N, slots];
/// and the initializers "<table>/keys" and "<table>/vectors".
void add_lookup(OnnxModel&, const OnnxLookup&, const std::string& vectors, const std::string& lengths);

}  // namespace hctr
