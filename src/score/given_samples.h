// Builds batches from samples in the caller's memory, as a Reader does from files.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/device/copy_rows.h"
#include "formats/data/batch_layout.h"
#include "formats/data/data_section.h"
#include "formats/data/sample_block.h"
#include "hctr/trainer.h"
#include "score/batch_ring.h"
#include "score/key_views.h"

namespace hctr {

/// The tensors that make up samples in memory, named as in the section.
std::vector<ModelTensor> tensors_of_samples(const DataSection&);

/// Views of the caller's samples, checked against a section.
class GivenSamples {
 public:
  GivenSamples() = default;
  /// `gpu`: samples may be in the memory of this GPU; empty: only in host memory. Dense values and keys must all be on
  /// the GPU or all on the host; bags must be on the host. Labels are copied to the host for checks. Cost: reads all
  /// offsets. Errors: Error(usage) for a missing or unknown name, a wrong type, memory of another device, and
  /// decreasing offsets; Error(data) naming sample, slot and limit if a sample has more keys than the section allows.
  GivenSamples(const DataSection&, const SamplesView&, std::optional<int> gpu = {});
  GivenSamples(GivenSamples&&) = default;
  GivenSamples& operator=(GivenSamples&&) = default;

  int64_t samples() const { return samples_; }
  /// Whether dense values and keys are in GPU memory.
  bool on_gpu() const { return on_gpu_; }
  /// Bytes per key, 4 or 8, that suffice for all keys.
  int key_bytes() const { return key_bytes_; }
  /// Copies samples [first, first + count) to `block`.
  void read(int64_t first, int64_t count, SampleBlock& block, ThreadPool&) const;
  // For samples on a GPU; replaces read(). Writes the labels to a batch on the host, and assigns the buffer ranges of
  // the keys.
  void place(int64_t first, int64_t count, const BatchView&) const;
  /// Queues copies of dense values and keys from GPU memory to the device buffer, at the ranges that place() assigned.
  void copy(int64_t first, int64_t count, StreamRef, const BatchRing&, int buffer) const;

 private:
  struct Floats {
    const float* data = nullptr;  // null: the input does not exist
    int64_t columns = 0, stride = 0;
    bool on_gpu = false;
    void* stream = nullptr;  // the caller's stream
  };
  struct Keys {
    InputView view;
    int64_t slots;
    KeyBags bags;
  };
  /// Finds the view of an input by name. Checks that it occurs once and is in accessible memory.
  const InputView& view_of(const DataSection&, const SamplesView&, const std::string& name);
  Floats floats(const DataSection&, const SamplesView&, const std::string& name);
  /// Copies labels or weights to the host if they are on the GPU.
  Floats on_host(Floats);
  Keys keys(const DataSection&, const SamplesView&, const SparseInput&);
  void expect_limits(const DataSection&) const;
  void expect_one_place(const DataSection&) const;

  std::optional<int> gpu_;
  bool on_gpu_ = false;
  std::vector<std::pair<void*, CallerStream>> callers_;  // caller's streams whose queued work produces the data
  std::vector<std::vector<float>> copies_;
  int64_t samples_ = 0;
  int key_bytes_ = 4;
  Floats label_, weight_, dense_;
  std::vector<Keys> keys_;  // [sparse inputs]
};

/// As with a Reader, a rank gets rows [batch * rank / ranks, batch * (rank + 1) / ranks) of each batch.
struct RankOfBatch {
  int64_t batch;
  int rank, ranks;
};

/// Batches of given samples on one rank, in a ring of buffers. There are no threads: next() fills a buffer
/// synchronously.
class GivenBatches {
 public:
  /// `buffers`: layout.bytes each. `keep_last_partial`: whether to deliver a smaller last batch.
  GivenBatches(const BatchLayout&, std::vector<std::byte*> buffers, const RankOfBatch&, bool keep_last_partial,
               ThreadPool&);

  /// Sets the samples that next() reads. The samples must outlive their batches. `samples_before`: number of samples in
  /// earlier batches, added to sample indices.
  void give(const GivenSamples&, int64_t samples_before);
  /// Fills the next buffer, which must not be in use, and returns its index. Returns nothing after the last sample.
  std::optional<int> next();
  /// Queues the copy of a batch from this object's buffers to the device memory of `ring`. The host memory of `ring`
  /// must be these buffers.
  void upload(StreamRef, const BatchRing&, int buffer) const;
  /// Whether upload() reads the caller's memory.
  bool reads_later() const { return reads_later_; }
  int key_bytes() const { return key_bytes_; }

 private:
  const BatchLayout& layout_;
  std::vector<std::byte*> buffers_;
  int64_t batch_, rank_begin_, rank_end_;
  bool keep_last_partial_;
  ThreadPool& pool_;
  SampleBlock block_;
  const GivenSamples* given_ = nullptr;
  int64_t at_ = 0;       // index of the next given sample
  int64_t samples_ = 0;  // number of samples in earlier batches
  int key_bytes_ = 4;
  size_t next_ = 0;  // index of the buffer that next() fills
  struct Placed {
    const GivenSamples* samples = nullptr;  // null: the batch is in the host buffer
    int64_t first = 0, count = 0;
  };
  std::vector<Placed> placed_;  // per buffer
  bool reads_later_ = false;
};

}  // namespace hctr
