// Evaluation: the model after the finished steps, on the evaluation set from its start.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/reader/reader.h"
#include "device/program.h"
#include "model/model.h"
#include "train/batch_check.h"
#include "train/batch_ring.h"
#include "train/eval_cache.h"
#include "train/scores.h"

namespace hctr {

class Evaluator {
 public:
  /// `from`: where evaluations continue, if each continues where the previous one ended. Errors: those of the Reader
  /// for config.data.eval_source.
  Evaluator(const Config&, Runtime&, Communicator&, Model&, const BatchLayout&, const Log&,
            const ReaderPosition& from = {});

  struct Result {
    /// The metrics of eval_metrics, by name. With several losses, a metric of predictions has its own name for the
    /// first loss and <name>/<top> for each other one; AverageLoss is the weighted sum, AverageLoss/<top> that of each
    /// loss.
    std::map<std::string, double> metrics;
    int64_t samples = 0;
  };
  /// `steps`: training steps done so far. Waits for queued training steps. When `stop` becomes other than 0 on a rank,
  /// all leave the evaluation, and the result is empty; it may be null. Errors: those of a rank's reader on every rank.
  std::optional<Result> run(int64_t steps, const std::atomic<int>* stop = nullptr);

  /// Where the next evaluation starts.
  ReaderPosition position() const { return continues_ ? reader_->position() : ReaderPosition{}; }

  // One buffer is computed while the host reads the results of the other; as many again for batches of the cache.
  static constexpr int kBuffers = 2;

 private:
  struct Buffer {
    Program program;
    Event done;
  };
  /// A batch in its buffer.
  struct Running {
    int buffer;
    std::optional<int64_t> cached;  // its index in the cache, when it came from there
  };
  Buffer make_buffer(const Config&, int buffer);
  std::optional<Running> fetch(int64_t batch);
  /// Queues the batch.
  void start(const Running&, int64_t steps);
  void add_results(const Running&, Result&);
  /// The metrics over all ranks, on every rank.
  std::map<std::string, double> merged_values();
  /// Where one result tensor of a batch lies in the host memory of its buffer.
  struct ResultTensor {
    TensorSpec spec;
    size_t offset;
  };
  ResultTensor add_result(const TensorSpec&);
  const float* result(int buffer, const ResultTensor&) const;
  View<const float, 2> view(int buffer, const ResultTensor&) const;
  /// The group of each of the first `rows` samples in the buffer; empty unless a metric needs it.
  std::vector<std::optional<int64_t>> groups(int buffer, int64_t rows) const;

  Runtime& runtime_;
  Communicator& comm_;
  Model& model_;
  EvalCache cache_;
  BatchRing ring_;
  BatchCheck check_;
  std::optional<int64_t> batches_;
  bool continues_;  // each evaluation continues where the previous one ended
  size_t sparse_inputs_;
  std::vector<std::string> tasks_;
  MetricList metrics_;
  std::optional<std::pair<size_t, int64_t>> group_slot_;  // the sparse input and its slot that hold the groups
  std::vector<ResultTensor> losses_, predictions_,
      labels_;  // losses: the sum, and of several tasks each; predictions and labels: per task
  size_t result_bytes_ = 0;
  std::vector<HostBuffer> results_;  // per buffer
  std::vector<Buffer> buffers_;
  std::unique_ptr<Reader> reader_;
  bool fresh_ = true;              // the reader has not been used since it was made
  std::vector<Scores> scores_;     // per task, over this rank's samples of the current evaluation
  std::vector<double> loss_sums_;  // as losses_
};

}  // namespace hctr
