// A model with one table and one layer. The table has two slots with one key each, and the layer reads the 32 elements
// of their vectors.
#pragma once

#include <string>

#include "unit/net/model/tiny_model.h"

namespace hctr::test {

/// `optimizer`: fields of the optimizer section. `table`: fields of the embedding except "bottom" and "top". Vectors
/// must have 16 elements.
inline Config one_table(int batchsize, const std::string& optimizer, const std::string& table) {
  Problems problems;
  Config config = read_config(Json::parse(R"({"solver": {"max_iter": 1, "batchsize": )" + std::to_string(batchsize) +
                                              R"(},
    "optimizer": {)" + optimizer + R"(},
    "layers": [{"type": "Data", "source": "list.txt", "check": "None", "label": {"top": "label", "label_dim": 1},
                "dense": {"top": "dense", "dense_dim": 3},
                "sparse": [{"top": "keys", "slot_num": 2, "nnz_per_slot": 1}]},
               {"bottom": "keys", "top": "table", )" +
                                              table + R"(},
               {"type": "Reshape", "bottom": "table", "top": "flat", "leading_dim": 32},
               {"type": "InnerProduct", "bottom": "flat", "top": "fc", "fc_param": {"num_output": 1}},
               {"type": "BinaryCrossEntropyLoss", "bottom": ["fc", "label"], "top": "loss"}]})",
                                          "test.json"),
                              problems);
  problems.throw_if_any("test.json");
  return config;
}

}  // namespace hctr::test
