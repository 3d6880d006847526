// Batches of samples in memory of a caller, as a Reader makes them of files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/thread_pool.h"
#include "formats/data/batch_layout.h"
#include "formats/data/data_section.h"
#include "formats/data/sample_block.h"
#include "hctr/trainer.h"
#include "score/key_views.h"

namespace hctr {

/// The parts of samples in memory, by the names of the section.
std::vector<ModelTensor> tensors_of_samples(const DataSection&);

/// Views of samples that have been found to fit a section.
class GivenSamples {
 public:
  GivenSamples() = default;
  /// Errors: Error(usage) for a missing or unknown name, a type that does not fit, and offsets that decrease;
  /// Error(data) naming sample, slot and limit for more keys than the section allows. Cost: reads all offsets.
  GivenSamples(const DataSection&, const SamplesView&);

  int64_t samples() const { return samples_; }
  /// Bytes that the keys fit: 4 or 8.
  int key_bytes() const { return key_bytes_; }
  /// Fills `block` with samples [first, first + count).
  void read(int64_t first, int64_t count, SampleBlock& block, ThreadPool&) const;

 private:
  struct Floats {
    const float* data = nullptr;  // null: there are none
    int64_t columns = 0, stride = 0;
  };
  struct Keys {
    InputView view;
    int64_t slots;
    KeyBags bags;
  };
  Floats floats(const DataSection&, const SamplesView&, const std::string& name) const;
  Keys keys(const DataSection&, const SamplesView&, const SparseInput&);
  void expect_limits(const DataSection&) const;

  int64_t samples_ = 0;
  int key_bytes_ = 4;
  Floats label_, weight_, dense_;
  std::vector<Keys> keys_;  // keys of each sparse input
};

/// Batches of given samples on one rank, in a ring of buffers. It has no threads: next() fills a buffer.
class GivenBatches {
 public:
  /// This rank gets rows [batch * rank / ranks, batch * (rank + 1) / ranks) of each batch, as of a Reader. `buffers`:
  /// layout.bytes each. `keep_last_partial`: whether a batch may be smaller than `batch`.
  GivenBatches(const BatchLayout&, std::vector<std::byte*> buffers, int64_t batch, int rank, int ranks,
               bool keep_last_partial, ThreadPool&);

  /// Sets the samples that next() reads from now on; they must outlive that. `samples_before`: samples in earlier
  /// batches, for numbering.
  void give(const GivenSamples&, int64_t samples_before);
  /// Fills the next buffer, which must no longer be in use, and returns its index; nothing after the last sample.
  std::optional<int> next();
  int key_bytes() const { return key_bytes_; }

 private:
  const BatchLayout& layout_;
  std::vector<std::byte*> buffers_;
  int64_t batch_, rank_begin_, rank_end_;
  bool keep_last_partial_;
  ThreadPool& pool_;
  SampleBlock block_;
  const GivenSamples* given_ = nullptr;
  int64_t at_ = 0;       // the next of the given samples
  int64_t samples_ = 0;  // samples of the batches before
  int key_bytes_ = 4;
  size_t next_ = 0;  // the buffer
};

}  // namespace hctr
