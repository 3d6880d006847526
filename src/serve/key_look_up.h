// Requests for vectors of keys, in the form of NVIDIA's backend hps: inputs KEYS and NUMKEYS, output OUTPUT0.
#pragma once

#include <cstdint>
#include <vector>

#include "infer/served_model.h"
#include "serve/infer_request.h"

namespace hctr::serve {

/// Whether the request has an input KEYS or NUMKEYS.
bool has_key_inputs(const InferRequest&);
/// The keys of each table. KEYS contains the keys of all tables, ordered by table, and NUMKEYS the number of keys of
/// each table. Shapes: [n] or [1, n]. Errors: Refusal naming the input, its value and the expected value.
std::vector<std::vector<int64_t>> read_keys_of_tables(const InferRequest&, size_t tables);
/// The output OUTPUT0: the vectors of all keys in their order, f32 [values]. Errors: Refusal for a result above
/// kMostResultBytes; those of ServedModel::look_up().
NamedTensor vectors_of_keys(ServedModel&, const std::vector<std::vector<int64_t>>& keys);

}  // namespace hctr::serve
