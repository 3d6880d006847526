// Samples of a source as arrays, in the layout of Model::score().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "formats/data/batch_layout.h"
#include "formats/data/source.h"
#include "formats/reader/reader.h"
#include "hctr/model.h"

namespace hctr {

struct SampleArrays {
  struct Keys {
    std::string name;
    int64_t slots = 0;
    std::vector<int64_t> keys, offsets;  ///< offsets: [samples * slots + 1]
    bool one_each = true;                ///< every bag has exactly one key
    /// One key for each bag, [samples * slots], in place of `keys` and `offsets`. Null: not given.
    std::shared_ptr<const int64_t> given{};
  };
  int64_t samples = 0, dense_dim = 0;
  std::string dense_name;
  std::vector<float> dense;                    ///< [samples, dense_dim]
  std::shared_ptr<const float> given_dense{};  ///< in place of `dense`; null: not given
  std::vector<Keys> inputs;

  /// Views of the samples from `first` on, valid during this object's lifetime. Inputs with `one_each` have no offsets.
  std::vector<InputView> views(int64_t first) const;
};

/// Empty arrays with the names and dimensions of a section.
SampleArrays no_samples(const DataSection&);

/// Reads the samples of a source in order, one batch at a time.
class SampleBatches {
 public:
  /// Errors: those of reading; next() has the same errors.
  SampleBatches(const Config&, const Source&, int64_t batch);

  SampleArrays none() const { return no_samples(config_.data); }
  /// Reads the next batch, and appends its first `most` samples; the batch's remaining samples are dropped. Returns
  /// none at the end of the source. Otherwise returns, for each bad record skipped since the last call, the number of
  /// samples before it.
  std::optional<std::vector<int64_t>> next(SampleArrays&, int64_t most);
  /// The number of bad records skipped so far; complete at the end of the source.
  int64_t skipped_records() const { return reader_->skipped_records(); }

 private:
  const Config& config_;
  BatchLayout layout_;
  std::vector<std::byte> buffers_[2];
  std::unique_ptr<Reader> reader_;
};

/// Reads the first `most` samples of a source. Errors: those of reading.
SampleArrays read_sample_arrays(const Config&, const Source&, int64_t most);

}  // namespace hctr
