// Counts for each loss the samples that contribute: those with a label and a weight above 0.
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

  /// Looks at the rows of a batch. Costs nothing once each loss has had a sample that counts.
  void add(const BatchView&);

  struct Loss {
    std::string top;
    bool label = false, weight = false;  ///< a sample had a label; one had a weight above 0
    bool counted = false;                ///< one had both
  };
  /// Counts of this rank. A loss whose labels are not columns of the data counts every sample.
  const std::vector<Loss>& losses() const { return losses_; }

 private:
  struct Columns {
    size_t first_label, labels;
    std::optional<size_t> weight;
  };
  int64_t label_dim_;
  std::vector<Loss> losses_;
  std::vector<std::optional<Columns>> columns_;  // columns of each loss; none: every sample counts
  bool all_counted_ = false;
};

/// Collective. The same over all ranks.
CountedSamples::Loss over_all_ranks(CountedSamples::Loss, Communicator&);

/// Why no sample counts in a loss, "every label is missing". `weight_column`: for messages; may be empty.
std::string why_none_counts(const CountedSamples::Loss&, const std::string& weight_column);

}  // namespace hctr
