// Feature specifications made for data: described from CSV files, and rewritten as split_binary.
#pragma once

#include "base/log.h"
#include "data/features/feature_spec.h"

namespace hctr {

struct DescribeOptions {
  fs::path out;                       ///< the specification to write
  std::vector<std::string> features;  ///< names of the columns, in the order of the files
  std::vector<std::string> labels, numerical, categorical;
  std::vector<fs::path> train, test;  ///< CSV files without a header
};

/// Reads the files once to find types and cardinalities: a category is an id, its cardinality the largest of all files
/// + 1 and its type type_for_ids(); a label of 0 and 1 is bool; all else is float32. Writes and returns the
/// specification. Errors: Error(usage) for a role of a feature that is not there, Error(data) naming file and line.
FeatureSpec describe_features(const DescribeOptions&);

struct TranscodeOptions {
  fs::path folder;              ///< gets feature_spec.yaml and, for each mapping, a folder with its files
  bool half_numerical = false;  ///< the numerical channel as float16, as NVIDIA's DLRM wants it
  bool force = false;
};

/// Writes every mapping as split_binary: the features of the numerical channel together in numerical.bin, every other
/// in <name>.bin. Memory is constant. The specification is written last. Returns it.
FeatureSpec transcode_features(const FeatureSpec&, const TranscodeOptions&);

}  // namespace hctr
