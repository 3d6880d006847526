// Determines for each loss whether any sample contributes. A sample contributes if it has a label and a weight above 0.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "core/comm/communicator.h"
#include "formats/data/batch_layout.h"
#include "net/graph/graph.h"

namespace hctr {

class CountedSamples {
 public:
  CountedSamples(const Config&, const Graph&);

  /// Examines the rows of a batch. Does nothing once every loss has a contributing sample.
  void add(const BatchView&);

  struct Loss {
    std::string top;
    bool label = false, weight = false;  ///< label: some sample has a label; weight: some sample has a weight above 0
    bool counted = false;                ///< some sample has both a label and a weight above 0
  };
  /// Results of this rank. For a loss whose labels are not data columns, every sample counts.
  const std::vector<Loss>& losses() const { return losses_; }

 private:
  struct Columns {
    size_t first_label, labels;
    std::optional<size_t> weight;
  };
  int64_t label_dim_;
  std::vector<Loss> losses_;
  std::vector<std::optional<Columns>> columns_;  // [losses] label and weight columns; empty: every sample counts
  bool all_counted_ = false;
};

/// Combines a result over all ranks. Collective.
CountedSamples::Loss over_all_ranks(CountedSamples::Loss, Communicator&);

/// The reason why no sample contributes to a loss, such as "every label is missing". `weight_column`: for messages; may
/// be empty.
std::string why_none_counts(const CountedSamples::Loss&, const std::string& weight_column);

}  // namespace hctr
