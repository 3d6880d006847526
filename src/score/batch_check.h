// Conditions on the values of a batch that the format cannot check, tested before a step computes with them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "formats/data/batch_layout.h"
#include "net/graph/graph.h"

namespace hctr {

/// The first of the label's columns that a tensor holds: that of the label, or of a Slice of it.
std::optional<size_t> first_label_column(const Graph&, TensorId);

class BatchCheck {
 public:
  /// `source`: the set, for messages. `labels`: whether labels are checked.
  BatchCheck(const Config&, const Graph&, std::string source, bool labels = true);

  /// Errors: Error(data) naming sample, column and value of a label that its loss does not accept, or of a key wider
  /// than "input_key_type" if the format reads any key. `samples_in_set`: so that the sample's number is that in the
  /// set; 0 if unknown.
  void expect(const BatchView&, int64_t samples_in_set) const;

 private:
  struct Column {
    size_t index;  ///< index of the label
    float low, high;
    bool may_be_missing;  ///< a value below -0.5
    bool binary;          ///< only 0 and 1
    std::string takes;    ///< for messages: what the model takes
  };
  std::string source_;
  int64_t label_dim_;
  std::vector<SparseInput> inputs_;
  std::vector<Column> columns_;
  bool narrow_keys_ = false;  // keys must fit 32 bits
};

}  // namespace hctr
