// A feature specification: a YAML file that describes the columns of a data set, the files with these columns, and the
// use of each column. Its sections are those of NVIDIA's Deep Learning Examples (DLRM): feature_spec, source_spec,
// channel_spec, metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files.h"

namespace hctr {

enum class FeatureType { boolean, i8, u8, i16, u16, i32, u32, i64, u64, f16, f32, f64 };

size_t bytes_of(FeatureType);
bool is_whole(FeatureType);  ///< whether the type is an integer or bool
/// The numpy name of a type: "int8", "float16", ...
std::string name_of(FeatureType);
/// Parses a type name, with an optional prefix torch. or np. Returns nothing if the type is unknown.
std::optional<FeatureType> feature_type(std::string_view name);
/// The smallest and the largest finite value of a type.
double least_of(FeatureType);
double most_of(FeatureType);
/// Returns the smallest of int8, int16, int32, int64 that represents all ids below `cardinality`.
FeatureType type_for_ids(int64_t cardinality);

struct FeatureColumn {
  std::string name;
  FeatureType type = FeatureType::f32;
  std::optional<int64_t> cardinality;  ///< ids are in [0, cardinality)
};

/// Columns stored in the same files.
struct FeatureChunk {
  enum class Kind {
    csv,           ///< one line per row, values separated by commas, no header
    split_binary,  ///< fixed-size rows: the binary values of `features`, without separators
  };
  Kind kind = Kind::csv;
  std::vector<size_t> features;  ///< indices into FeatureSpec::features, in file order
  std::vector<fs::path> files;   ///< in row order; paths relative to the specification's folder
};

/// A mapping: one version of the data set, such as "train" or "test".
struct FeatureSource {
  std::string name;
  std::vector<FeatureChunk> chunks;
};

struct FeatureChannel {
  std::string name;
  std::vector<size_t> features;
};

struct FeatureSpec {
  fs::path folder;  ///< the folder of the specification file
  std::vector<FeatureColumn> features;
  std::vector<FeatureSource> sources;
  std::vector<FeatureChannel> channels;
  std::string metadata;  ///< YAML text; empty: none

  /// Finds a mapping by name. Errors: Error(config) listing all mappings if the name is unknown.
  const FeatureSource& source(const std::string& name) const;
  /// Returns the features of a channel; empty if the channel does not exist.
  std::vector<size_t> channel(const std::string& name) const;
  /// Returns the index of a feature; nothing if the name is unknown.
  std::optional<size_t> find(const std::string& name) const;
};

/// Default channel names for labels, dense values and categorical features.
inline constexpr const char* kLabelChannel = "label";
inline constexpr const char* kNumericalChannel = "numerical";
inline constexpr const char* kCategoricalChannel = "categorical";

/// Reads a specification. Errors: Error(config) with the section and line of every problem: unknown features, types or
/// keys; a duplicate feature in a mapping or channel; a channel's feature that a mapping lacks, except labels; a
/// cardinality that exceeds its type.
FeatureSpec read_feature_spec(const fs::path&);
FeatureSpec parse_feature_spec(std::string_view yaml, const std::string& name, const fs::path& folder);

std::string to_yaml(const FeatureSpec&);

}  // namespace hctr
