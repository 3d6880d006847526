// Negative sampling: drops a fraction of the samples with label 0, which dominate if clicks are rare.
#pragma once

#include <cstdint>

#include "formats/data/batch_layout.h"
#include "formats/data/sample_block.h"
#include "formats/data/sample_set.h"

namespace hctr {

/// The origin of a block's samples.
struct BlockPlace {
  int64_t pass;
  size_t file;         ///< index in SampleSet::files()
  FilePosition begin;  ///< start position of the block's chunk
};

/// Decides which samples are kept. A sample with a first label of at least 0.5 is always kept, any other sample with
/// probability `share`. The decision depends on seed, pass and the sample's position in the set. It is therefore the
/// same for any number of ranks and threads, and different in each pass.
class NegativeSampling {
 public:
  /// `share`: probability in (0, 1] of keeping a negative; 1 keeps all samples.
  NegativeSampling(double share, uint64_t seed);

  /// Whether samples are dropped.
  bool samples() const { return share_ < 1; }
  /// The logarithm of `share`, stored in StepState::log_negative_share of batches.
  float log_share() const;
  /// Copies the kept samples of `all` to `kept`, in order. `shape`: label, dense and slot sizes.
  void copy_kept(const SampleBlock& all, const BatchShape& shape, const BlockPlace&, SampleBlock& kept) const;
  /// The expected fraction of all samples that is kept, estimated from the labels at the start of the set. Errors:
  /// those of the format.
  double expected_share(SampleSet&, const BatchShape&) const;

 private:
  double share_;
  uint64_t key_;
};

}  // namespace hctr
