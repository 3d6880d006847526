// Generated samples as bytes of a file: Norm or Raw records, or lines of text. Those of Parquet are Norm's until they
// become columns.
#pragma once

#include <string>
#include <vector>

#include "data/data_section.h"
#include "prepare/generate/planted_truth.h"
#include "prepare/write/norm_writer.h"

namespace hctr {

/// What a generated set is written as.
enum class WrittenAs { norm, raw, csv, tsv, parquet };

/// One generated sample. Shapes: label [label_dim], sample.dense [dense_dim], sample.nnz [slots], keys [sum of nnz].
struct GeneratedSample {
  PlantedSample sample;
  std::vector<int64_t> keys;
  std::vector<float> label;
};

class SampleEncoder {
 public:
  /// Errors: Error(usage) when the section's records cannot be written so.
  SampleEncoder(const DataSection&, WrittenAs, const NormStyle&);

  void append(const GeneratedSample&, std::vector<std::byte>& out) const;
  /// The header of a file of `samples` samples.
  std::vector<std::byte> start(int64_t samples) const;
  /// Of a data file's name; empty for Raw, whose one file is `source` itself.
  std::string ending() const;

 private:
  void append_norm(const GeneratedSample&, std::vector<std::byte>& out) const;
  void append_raw(const GeneratedSample&, std::vector<std::byte>& out) const;
  void append_line(const GeneratedSample&, std::vector<std::byte>& out) const;

  WrittenAs as_;
  NormStyle style_;
  bool floats_;
  std::vector<int64_t> added_;  // what the reader of Raw and Parquet data adds to the keys of each slot
  std::string header_;          // of text
};

}  // namespace hctr
