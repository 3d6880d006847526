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
  ShowProgress progress{};            ///< shows the progress of each mapping; null: not shown
};

/// Reads the files once to determine types and cardinalities. A category is an id: its cardinality is the largest id of
/// all files + 1, and its type is type_for_ids(). A label with only 0 and 1 has type bool. All other features are
/// float32. Writes and returns the specification. Errors: Error(usage) for a role of an unknown feature; Error(data)
/// with file and line.
FeatureSpec describe_features(const DescribeOptions&);

struct TranscodeOptions {
  fs::path spec;                ///< the file of the specification to transcode
  fs::path folder;              ///< output folder of feature_spec.yaml, with one folder of files per mapping
  bool half_numerical = false;  ///< whether to store the numerical channel as float16, as NVIDIA's DLRM does
  bool force = false;
  ShowProgress progress{};  ///< shows the progress of each mapping; null: not shown
};

/// Writes every mapping as split_binary: all features of the numerical channel in `numerical.bin`, and each other
/// feature in `<name>.bin`. Memory is constant. Writes the specification last, and returns it.
FeatureSpec transcode_features(const FeatureSpec&, const TranscodeOptions&);

}  // namespace hctr
