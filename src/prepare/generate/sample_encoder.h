// Encodes generated samples as bytes of a file: Norm records, Raw records, or lines of text. Samples for Parquet are
// encoded as Norm records and converted to columns later.
#pragma once

#include <string>
#include <vector>

#include "formats/data/data_section.h"
#include "prepare/generate/planted_truth.h"
#include "prepare/write/norm_writer.h"

namespace hctr {

/// The output format of a generated set.
enum class WrittenAs { norm, raw, csv, tsv, parquet };

/// One generated sample. Shapes: label [label_dim], sample.dense [dense_dim], sample.nnz [slots], keys [sum of nnz].
struct GeneratedSample {
  PlantedSample sample;
  std::vector<int64_t> keys;
  std::vector<float> label;
};

class SampleEncoder {
 public:
  /// Errors: Error(usage) if the format cannot represent the section's records.
  SampleEncoder(const DataSection&, WrittenAs, const NormStyle&);

  void append(const GeneratedSample&, std::vector<std::byte>& out) const;
  /// The header of a file with `samples` samples.
  std::vector<std::byte> start(int64_t samples) const;
  /// The ending of data file names; empty for Raw, whose only file is `source`.
  std::string ending() const;

 private:
  void append_norm(const GeneratedSample&, std::vector<std::byte>& out) const;
  void append_raw(const GeneratedSample&, std::vector<std::byte>& out) const;
  void append_line(const GeneratedSample&, std::vector<std::byte>& out) const;

  WrittenAs as_;
  NormStyle style_;
  bool floats_;
  std::vector<int64_t> added_;  // [slot] offset that the reader of Raw and Parquet data adds to keys
  std::string header_;          // only for text formats
};

}  // namespace hctr
