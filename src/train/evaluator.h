// Evaluation: the eval set from its start, the model as finished steps left it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/reader/reader.h"
#include "device/program.h"
#include "model/model.h"
#include "train/batch_ring.h"
#include "train/eval_cache.h"
#include "train/scores.h"

namespace hctr {

class Evaluator {
 public:
  /// Errors: those of the Reader for config.data.eval_source.
  Evaluator(const Config&, Runtime&, Communicator&, Model&, const BatchLayout&, const Log&);

  struct Result {
    /// What eval_metrics asks for, by name. With several losses: a metric of predictions under its name for the first
    /// and as <name>/<top> for each other; AverageLoss for their weighted sum and AverageLoss/<top> for each.
    std::map<std::string, double> metrics;
    int64_t samples = 0;
  };
  /// `steps`: training steps done so far. Waits for the training steps queued before.
  Result run(int64_t steps);

  static constexpr int kSlots =
      2;  // one on the device, one whose results the host takes in; as many again for batches of the cache

 private:
  struct Slot {
    Program program;
    Event done;
  };
  /// A batch under way.
  struct Running {
    int slot;
    std::optional<int64_t> cached;  // its place in the cache, when it came from there
  };
  Slot make_slot(const Config&, int slot);
  std::optional<Running> start(int64_t batch, int64_t steps);
  void take_in(const Running&, Result&);
  /// The values of what all ranks measured, on every rank.
  std::map<std::string, double> united_values();
  /// Where one tensor of a batch's results lies in the slot's host memory.
  struct Piece {
    TensorSpec spec;
    size_t offset;
  };
  Piece add_piece(const TensorSpec&);
  const float* result(int slot, const Piece&) const;
  View<const float, 2> view(int slot, const Piece&) const;
  /// The group of each of the first `rows` samples in the slot; empty where no metric wants them.
  std::vector<std::optional<int64_t>> groups(int slot, int64_t rows) const;

  Runtime& runtime_;
  Communicator& comm_;
  Model& model_;
  EvalCache cache_;
  BatchRing ring_;
  std::optional<int64_t> batches_;
  bool continues_;  // where the evaluation before ended
  size_t sparse_inputs_;
  std::vector<std::string> tasks_;
  MetricList metrics_;
  std::optional<std::pair<size_t, int64_t>> group_slot_;  // sparse input and slot of it that hold the groups
  std::vector<Piece> losses_, predictions_,
      labels_;  // losses: the sum, and of several tasks each; predictions and labels: per task
  size_t result_bytes_ = 0;
  std::vector<HostBuffer> results_;  // per slot
  std::vector<Slot> slots_;
  std::unique_ptr<Reader> reader_;
  bool fresh_ = true;              // the reader stands behind the batches of the cache
  std::vector<Scores> scores_;     // per task, of the evaluation under way and of this rank's samples
  std::vector<double> loss_sums_;  // as losses_
};

}  // namespace hctr
