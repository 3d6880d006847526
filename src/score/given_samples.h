// Batches of samples in memory of a caller, as a Reader makes them of files.
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

/// The parts of samples in memory, by the names of the section.
std::vector<ModelTensor> tensors_of_samples(const DataSection&);

/// Views of samples that have been found to fit a section.
class GivenSamples {
 public:
  GivenSamples() = default;
  /// `gpu`: the one whose memory may hold the samples; else only the host's may. Dense values and keys lie all on the
  /// GPU or all on the host, and bags on the host; labels are copied to the host, to be checked.
  /// Errors: Error(usage) for a missing or unknown name, a type that does not fit, memory elsewhere, and offsets that
  /// decrease; Error(data) naming sample, slot and limit for more keys than the section allows. Cost: reads all
  /// offsets.
  GivenSamples(const DataSection&, const SamplesView&, std::optional<int> gpu = {});
  GivenSamples(GivenSamples&&) = default;
  GivenSamples& operator=(GivenSamples&&) = default;

  int64_t samples() const { return samples_; }
  /// Whether dense values and keys lie on a GPU.
  bool on_gpu() const { return on_gpu_; }
  /// Bytes that the keys fit: 4 or 8.
  int key_bytes() const { return key_bytes_; }
  /// Fills `block` with samples [first, first + count).
  void read(int64_t first, int64_t count, SampleBlock& block, ThreadPool&) const;
  // In place of read() where they lie on a GPU.
  /// Writes their labels to a batch on the host, and where their keys will lie.
  void place(int64_t first, int64_t count, const BatchView&) const;
  /// Queues copies of dense values and keys to the buffer of the ring that they were placed in.
  void copy(int64_t first, int64_t count, StreamRef, const BatchRing&, int buffer) const;

 private:
  struct Floats {
    const float* data = nullptr;  // null: there are none
    int64_t columns = 0, stride = 0;
    bool on_gpu = false;
    void* stream = nullptr;  // of the caller
  };
  struct Keys {
    InputView view;
    int64_t slots;
    KeyBags bags;
  };
  /// The view of an input that there is once, in memory that is reachable.
  const InputView& view_of(const DataSection&, const SamplesView&, const std::string& name);
  Floats floats(const DataSection&, const SamplesView&, const std::string& name);
  /// Of labels and weights: copied where they lie on the GPU.
  Floats on_host(Floats);
  Keys keys(const DataSection&, const SamplesView&, const SparseInput&);
  void expect_limits(const DataSection&) const;
  void expect_one_place(const DataSection&) const;

  std::optional<int> gpu_;
  bool on_gpu_ = false;
  std::vector<std::pair<void*, CallerStream>> callers_;  // each stream after whose work data are there
  std::vector<std::vector<float>> copies_;
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
  /// Brings the batch in a buffer that next() has filled to the device of the ring whose host memory the buffers are.
  void upload(StreamRef, const BatchRing&, int buffer) const;
  /// Whether upload() reads memory of the caller.
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
  int64_t at_ = 0;       // the next of the given samples
  int64_t samples_ = 0;  // samples of the batches before
  int key_bytes_ = 4;
  size_t next_ = 0;  // the buffer
  struct Placed {
    const GivenSamples* samples = nullptr;  // null: they are in the buffer
    int64_t first = 0, count = 0;
  };
  std::vector<Placed> placed_;  // per buffer
  bool reads_later_ = false;
};

}  // namespace hctr
