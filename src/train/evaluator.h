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

namespace hctr {

class Evaluator {
 public:
  /// Errors: those of the Reader for config.data.eval_source.
  Evaluator(const Config&, Runtime&, Communicator&, Model&, const BatchLayout&, const Log&);

  struct Result {
    std::map<std::string, double> metrics;  ///< AUC and AverageLoss, by name
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

  Runtime& runtime_;
  Model& model_;
  BatchRing ring_;
  std::optional<int64_t> batches_;
  int64_t samples_per_batch_;
  size_t sparse_inputs_;
  std::vector<HostBuffer> results_;  // per slot: loss, predictions
  std::vector<Slot> slots_;
  std::unique_ptr<Reader> reader_;
  bool fresh_ = true;  // the reader stands at the start of the set
  std::vector<float> predictions_, labels_;
  double loss_sum_ = 0;
};

}  // namespace hctr
