// Leaving out a share of the samples with label 0, which are most of the samples where clicks are rare.
#pragma once

#include <cstdint>

#include "formats/data/batch_layout.h"
#include "formats/data/sample_block.h"
#include "formats/data/sample_set.h"

namespace hctr {

/// Where the samples of a block are from.
struct BlockPlace {
  int64_t pass;
  size_t file;         ///< index in SampleSet::files()
  FilePosition begin;  ///< begin of its chunk
};

/// Decides which samples are kept. A sample whose first label is 0.5 or more always is, each other one with probability
/// `share`, drawn from the seed, the pass and the sample's place in the set: the same on any number of ranks and
/// threads, and other samples in each pass.
class NegativeSampling {
 public:
  /// `share`: in (0, 1]; with 1 every sample is kept.
  NegativeSampling(double share, uint64_t seed);

  /// Whether samples are dropped.
  bool samples() const { return share_ < 1; }
  /// The log of the share: what StepState::log_negative_share is for batches of the kept samples.
  float log_share() const;
  /// Copies the kept samples of `all` to `kept`, in their order. `shape`: of the batches, for the widths.
  void copy_kept(const SampleBlock& all, const BatchShape& shape, const BlockPlace&, SampleBlock& kept) const;
  /// The share of all samples that is kept, expected from the labels at the start of the set. Errors: those of the
  /// format.
  double expected_share(SampleSet&, const BatchShape&) const;

 private:
  double share_;
  uint64_t key_;
};

}  // namespace hctr
