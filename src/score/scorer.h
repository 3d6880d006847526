// Passes over a set of samples with the model as it is: losses, predictions and labels of each batch, on the host.
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

/// A sparse input, by its index, and one of its slots.
using InputSlot = std::pair<size_t, int64_t>;

struct ScorerOptions {
  Source source;                         ///< the samples
  std::optional<int64_t> batches = {};   ///< maximum batches of one pass; none: the whole set
  bool continues = false;                ///< each pass continues where the previous one ended
  ReaderPosition from = {};              ///< start of the first pass
  bool losses = true;                    ///< whether losses are wanted
  bool predictions = true;               ///< whether predictions and labels are
  bool check_labels = true;              ///< whether a label that its loss does not take is an error
  std::optional<InputSlot> groups = {};  ///< the slot that holds the group of a sample, where groups are wanted
  int64_t cached = 0;                    ///< batches that stay in the device's memory for later passes
  bool match_keys = false;               ///< whether matches() is wanted
  bool given = false;                    ///< the samples are those of give(), whose groups are the keys as given
  bool beside = false;                   ///< computes in memory of its own: forward_pass_beside()
};

/// The model's outputs for a batch. Views are valid during the call that gets it.
struct ScoredBatch {
  int64_t rows = 0;           ///< rows of this rank: after the previous ranks' rows, and before the next ranks'
  int64_t samples = 0;        ///< samples of all ranks
  std::vector<float> losses;  ///< over all ranks: the weighted sum, and with several losses each
  std::vector<View<const float, 2>> predictions, labels;  ///< [losses][at least rows, columns]
  std::vector<std::optional<int64_t>> groups;             ///< [rows], where they are wanted
  PassedOn passed_on;
  std::optional<BatchView> inputs;  ///< the inputs as read; none for a batch of the cache
};

/// One per rank. It needs neither gradients nor training data.
class Scorer {
 public:
  /// Errors: those of the Reader.
  Scorer(const Config&, Runtime&, Communicator&, Replica&, const BatchLayout&, const ScorerOptions&, const Log&);

  ~Scorer();

  using Visit = std::function<void(ScoredBatch&)>;
  /// Collective. Scores the batches of one pass with the model after `steps` training steps, and calls visit(batch) for
  /// each on every rank, in order; what throws in it stops all ranks. Waits for queued training steps. Returns false
  /// when `stop`, which may be null, became other than 0 on a rank: all ranks then leave the pass. Errors: those of a
  /// rank's reader and of visit(), on every rank.
  bool run(int64_t steps, const std::atomic<int>* stop, const Visit& visit);

  /// With ScorerOptions::given: what the next run() scores. The samples outlive it.
  void give(const GivenSamples& samples) { given_->give(samples, 0); }

  /// Records the computation of a batch again, because its GEMMs use other algorithms now. Not during run().
  void record_again();
  const Reader& reader() const { return *reader_; }
  /// Collective, after run(): how many keys of the pass have rows. Empty unless it is wanted.
  std::vector<SlotMatches> matches() { return matches_ ? matches_->count() : std::vector<SlotMatches>(); }
  /// Which losses have had a sample that counts, on this rank, since the first pass.
  const std::vector<CountedSamples::Loss>& counted() const { return counted_.losses(); }

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
    PassedOn passed_on{};
  };
  Buffer make_buffer(int buffer);
  /// `next` = the next batch, from the cache or from the reader, or nothing at the end of the set. False: the reader
  /// has none yet.
  bool fetch(int64_t batch, const std::atomic<int>* stop, std::optional<Running>& next);
  /// Looks at the batch that has come.
  void take(int buffer, int64_t samples_in_set);
  /// Queues the batch.
  void start(const Running&, int64_t steps);
  void deliver(Running&, const Visit&);
  /// Where one result tensor of a batch lies in the host memory of its buffer.
  struct ResultTensor {
    TensorSpec spec;
    size_t offset;
  };
  ResultTensor add_result(const TensorSpec&);
  const float* result(int buffer, const ResultTensor&) const;
  View<const float, 2> view(int buffer, const ResultTensor&) const;
  /// The group of each of the first `rows` samples in the buffer; empty unless groups are wanted.
  std::vector<std::optional<int64_t>> groups(int buffer, int64_t rows) const;

  Runtime& runtime_;
  Communicator& comm_;
  DataSection data_;  // with an extra slot for the group column, if the column's own slot has keys of other columns too
  ScorerOptions options_;
  BatchLayout layout_;
  EvalCache cache_;
  BatchRing ring_;
  std::unique_ptr<ForwardPass> pass_;
  BatchCheck check_;
  std::optional<KeyMatches> matches_;
  CountedSamples counted_;
  size_t sparse_inputs_;
  std::vector<ResultTensor> losses_, predictions_, labels_;  // losses: the sum, and of several each; else of each loss
  size_t result_bytes_ = 0;
  std::vector<HostBuffer> results_;  // per buffer
  std::vector<Buffer> buffers_;
  std::unique_ptr<Reader> reader_;       // null where samples are given
  std::optional<GivenBatches> given_{};  // then
  bool records_;
  bool matching_ = false;      // batches of this pass go to matches_
  bool fresh_ = true;          // the reader has not been used since it was made
  bool left_waiting_ = false;  // a stop has not waited for the reader
};

}  // namespace hctr
