// Checks the values of a batch that the data format cannot check, before a step computes with them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "formats/data/batch_layout.h"
#include "net/graph/graph.h"

namespace hctr {

/// The index of the first label column that a tensor contains. The tensor may be the label or a Slice of the label.
/// Empty if the tensor contains no label columns.
std::optional<size_t> first_label_column(const Graph&, TensorId);

class BatchCheck {
 public:
  /// `source`: name of the set, for messages. `labels`: whether to check labels.
  BatchCheck(const Config&, const Graph&, std::string source, bool labels = true);

  /// Checks a batch. `samples_in_set`: number of samples in the set, for the sample's index in messages; 0: unknown.
  /// Errors: Error(data) naming sample, column and value of a label that its loss rejects, or of a key wider than
  /// "input_key_type" if the format's reader does not check keys.
  void expect(const BatchView&, int64_t samples_in_set) const;

 private:
  struct Column {
    size_t index;  ///< label index
    float low, high;
    bool may_be_missing;  ///< values below -0.5 are allowed and mean missing
    bool binary;          ///< only 0 and 1 are allowed
    std::string takes;    ///< describes the allowed values, for messages
  };
  std::string source_;
  int64_t label_dim_;
  std::vector<SparseInput> inputs_;
  std::vector<Column> columns_;
  bool narrow_keys_ = false;  // keys must fit 32 bits
};

}  // namespace hctr
