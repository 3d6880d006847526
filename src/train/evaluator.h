// Evaluation: the eval set from its start, the model as finished steps left it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/reader.h"
#include "device/program.h"
#include "model/model.h"
#include "train/batch_ring.h"
#include "train/scores.h"

namespace hctr {

class Evaluator {
 public:
  /// Errors: those of the Reader for config.data.eval_source.
  Evaluator(const Config&, Runtime&, Communicator&, Model&, const BatchLayout&, const Log&);

  struct Result {
    /// AUC and AverageLoss, by name. With several losses, AverageLoss is that of their weighted sum, AUC that of the first, and
    /// AUC/<top> that of each other.
    std::map<std::string, double> metrics;
    int64_t samples = 0;
  };
  /// `steps`: training steps done so far. Waits for the training steps queued before.
  Result run(int64_t steps);

  static constexpr int kSlots = 2;  // one on the device, one whose results the host takes in

 private:
  struct Slot {
    Program program;
    Event done;
  };
  Slot make_slot(const Config&, int slot);
  void take_in(int slot, Result&);
  /// Where one tensor of a batch's results lies in the slot's host memory.
  struct Piece {
    TensorSpec spec;
    size_t offset;
  };
  Piece add_piece(const TensorSpec&);
  View<const float, 2> view(int slot, const Piece&) const;

  Runtime& runtime_;
  Model& model_;
  BatchRing ring_;
  std::optional<int64_t> batches_;
  size_t sparse_inputs_;
  std::vector<std::string> tasks_;
  std::vector<Piece> predictions_, labels_;  // per task
  size_t result_bytes_ = 256;                // the loss stands first
  std::vector<HostBuffer> results_;          // per slot
  std::vector<Slot> slots_;
  std::unique_ptr<Reader> reader_;
  bool fresh_ = true;  // the reader stands at the start of the set
  std::vector<Scores> scores_;  // per task
  double loss_sum_ = 0;
};

}  // namespace hctr
