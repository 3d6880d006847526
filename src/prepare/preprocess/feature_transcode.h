// Creates feature specifications: describes CSV files, or rewrites a data set as split_binary.
#pragma once

#include "core/base/log.h"
#include "formats/features/feature_spec.h"

namespace hctr {

struct DescribeOptions {
  fs::path out;                       ///< the specification to write
  std::vector<std::string> features;  ///< column names, in file order
  std::vector<std::string> labels, numerical, categorical;
  std::vector<fs::path> train, test;  ///< CSV files without a header
  ShowProgress progress{};            ///< shows each mapping; null: not shown
};

/// Reads the files once to determine types and cardinalities: a category is an id, its cardinality is the largest id of
/// all files + 1, and its type is type_for_ids(); a label with only 0 and 1 is bool; all others are float32. Writes and
/// returns the specification. Errors: Error(usage) for a role of an unknown feature; Error(data) naming file and line.
FeatureSpec describe_features(const DescribeOptions&);

struct TranscodeOptions {
  fs::path spec;                ///< the file of the specification that is transcoded
  fs::path folder;              ///< output folder: feature_spec.yaml, and one folder of files per mapping
  bool half_numerical = false;  ///< store the numerical channel as float16, as NVIDIA's DLRM does
  bool force = false;
  ShowProgress progress{};  ///< shows each mapping; null: not shown
};

/// Writes every mapping as split_binary: the features of the numerical channel together in numerical.bin, each other
/// one in <name>.bin. Memory is constant. Writes the specification last, and returns it.
FeatureSpec transcode_features(const FeatureSpec&, const TranscodeOptions&);

}  // namespace hctr
