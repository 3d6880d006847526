// Scores a set of samples with the current model: losses, predictions and labels of each batch, on the host.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/device/program.h"
#include "formats/reader/reader.h"
#include "net/model/replica.h"
#include "score/batch_check.h"
#include "score/batch_ring.h"
#include "score/counted_samples.h"
#include "score/eval_cache.h"
#include "score/forward_pass.h"
#include "score/given_samples.h"
#include "score/key_matches.h"

namespace hctr {

/// A sparse input's index and a slot of the input.
using InputSlot = std::pair<size_t, int64_t>;

struct ScorerOptions {
  Source source;                         ///< the samples
  std::optional<int64_t> batches = {};   ///< maximum batches per pass; empty: the whole set
  bool continues = false;                ///< each pass continues where the previous one ended
  ReaderPosition from = {};              ///< start position of the first pass
  bool losses = true;                    ///< whether to compute losses
  bool predictions = true;               ///< whether to return predictions and labels
  bool check_labels = true;              ///< whether a label that its loss rejects is an error
  std::optional<InputSlot> groups = {};  ///< the slot that identifies a sample's group, if groups are needed
  int64_t cached = 0;                    ///< number of batches to cache in device memory for later passes
  bool match_keys = false;               ///< whether to collect matches()
  bool given = false;                    ///< samples come from give(); group keys are used unchanged
  Runtime* own_memory_in = nullptr;      ///< the scorer gets activation memory of its own, in this runtime; null: not
};

/// The model's outputs for a batch. Views are valid only during the visit(batch) call.
struct ScoredBatch {
  int64_t rows = 0;           ///< this rank's rows, which follow the rows of lower ranks
  int64_t samples = 0;        ///< batch size over all ranks
  std::vector<float> losses;  ///< over all ranks: the weighted sum and, with several losses, each loss
  std::vector<View<const float, 2>> predictions, labels;  ///< [losses][at least rows, columns]
  std::vector<std::optional<int64_t>> groups;             ///< [rows] if groups are needed, else empty
  PassedOn passed_on;
  std::optional<BatchView> inputs;  ///< the batch on the host; empty for a cached batch
};

/// Scores batches. One object per rank. Needs neither gradients nor training data.
class Scorer {
 public:
  /// Errors: those of the Reader.
  Scorer(const Config&, Communicator&, Replica&, const BatchLayout&, const ScorerOptions&, const Log&);

  ~Scorer();

  using Visit = std::function<void(ScoredBatch&)>;
  /// Scores the batches of one pass with the model after `steps` training steps. Calls visit(batch) for each batch in
  /// order, on every rank; an exception in visit() stops all ranks. Waits for queued training steps. Returns false if
  /// `*stop` became nonzero on any rank, which stops all ranks; `stop` may be null. Collective. Errors: those of any
  /// rank's reader and visit(), on every rank.
  bool run(int64_t steps, const std::atomic<int>* stop, const Visit& visit);

  /// With ScorerOptions::given: sets the samples of the next run(). The samples must outlive that run.
  void give(const GivenSamples& samples) { given_->give(samples, 0); }

  /// Records the forward pass again. Call after GEMM algorithms have changed, but not during run().
  void record_again();
  const Reader& reader() const { return *reader_; }
  /// Number of keys with rows in the last pass, per slot. Empty without ScorerOptions::match_keys. Collective, after
  /// run().
  std::vector<SlotMatches> matches() { return matches_ ? matches_->count() : std::vector<SlotMatches>(); }
  /// Per loss, whether any sample contributed on this rank since the first pass.
  const std::vector<CountedSamples::Loss>& counted() const { return counted_.losses(); }

  // Double buffering: the device computes one buffer while the host reads the results of the other. Cached batches have
  // two further buffers.
  static constexpr int kBuffers = 2;

 private:
  struct Buffer {
    Program program;
    Event done;
  };
  /// A batch that was assigned to a buffer.
  struct Running {
    int buffer;
    std::optional<int64_t> cached;  // index in the cache; empty: read from the set
    PassedOn passed_on{};
  };
  Buffer make_buffer(int buffer);
  /// Sets `next` to the next batch, from the cache or the reader; empty at the end of the set. Returns false if the
  /// reader has no batch yet.
  bool fetch(int64_t batch, const std::atomic<int>* stop, std::optional<Running>& next);
  /// Checks a batch that was just read.
  void take(int buffer, int64_t samples_in_set);
  /// Queues the computation of a batch.
  void start(const Running&, int64_t steps);
  void deliver(Running&, const Visit&);
  /// The offset of a result tensor in the host results of a buffer.
  struct ResultTensor {
    TensorSpec spec;
    size_t offset;
  };
  ResultTensor add_result(const TensorSpec&);
  const float* result(int buffer, const ResultTensor&) const;
  View<const float, 2> view(int buffer, const ResultTensor&) const;
  /// The groups of the first `rows` samples in a buffer; empty if groups are not needed.
  std::vector<std::optional<int64_t>> groups(int buffer, int64_t rows) const;

  Runtime& runtime_;
  Communicator& comm_;
  DataSection data_;  // has an extra slot for groups if several values of the group slot may share a key
  ScorerOptions options_;
  BatchLayout layout_;
  EvalCache cache_;
  BatchRing ring_;
  std::unique_ptr<ForwardPass> pass_;
  BatchCheck check_;
  std::optional<KeyMatches> matches_;
  CountedSamples counted_;
  size_t sparse_inputs_;
  // losses_: the weighted sum and, with several losses, each loss; predictions_, labels_: one per loss
  std::vector<ResultTensor> losses_, predictions_, labels_;
  size_t result_bytes_ = 0;
  std::vector<HostBuffer> results_;  // per buffer
  std::vector<Buffer> buffers_;
  std::unique_ptr<Reader> reader_;       // null if samples are given
  std::optional<GivenBatches> given_{};  // set if samples are given
  bool records_;
  bool matching_ = false;      // whether this pass adds keys to matches_
  bool fresh_ = true;          // the reader has not been used yet
  bool left_waiting_ = false;  // the last wait for the reader ended without a batch
};

}  // namespace hctr
