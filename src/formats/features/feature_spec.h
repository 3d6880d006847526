// A feature specification: a YAML file that describes the columns of a data set, the files that hold them, and what
// each is used for. It has the sections of NVIDIA's Deep Learning Examples (DLRM): feature_spec, source_spec,
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
bool is_whole(FeatureType);  ///< including bool
/// The numpy name of a type: "int8", "float16", ...
std::string name_of(FeatureType);
/// Parses a type name. Accepts the prefixes torch. and np. Returns nothing if there is no such type.
std::optional<FeatureType> feature_type(std::string_view name);
/// The range of values of a type; for floating-point types, the largest finite values.
double least_of(FeatureType);
double most_of(FeatureType);
/// Returns the smallest of int8, int16, int32, int64 that holds ids below `cardinality`.
FeatureType type_for_ids(int64_t cardinality);

struct FeatureColumn {
  std::string name;
  FeatureType type = FeatureType::f32;
  std::optional<int64_t> cardinality;  ///< ids are 0 .. cardinality - 1
};

/// Columns stored in the same files.
struct FeatureChunk {
  enum class Kind {
    csv,           ///< one line per row, values separated by commas, no header
    split_binary,  ///< rows without separators, each the values of `features` in their types
  };
  Kind kind = Kind::csv;
  std::vector<size_t> features;  ///< indices into FeatureSpec::features, in file order
  std::vector<fs::path> files;   ///< in row order; relative to the folder of the specification
};

/// One version of the data set: "train", "test".
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

  /// Finds a source by name. Errors: Error(config) listing the sources when there is none with this name.
  const FeatureSource& source(const std::string& name) const;
  /// Returns the features of a channel; empty when there is none with this name.
  std::vector<size_t> channel(const std::string& name) const;
  /// Returns the index of a feature; nothing when there is none with this name.
  std::optional<size_t> find(const std::string& name) const;
};

/// The channels that a model with labels, dense values and categories reads.
inline constexpr const char* kLabelChannel = "label";
inline constexpr const char* kNumericalChannel = "numerical";
inline constexpr const char* kCategoricalChannel = "categorical";

/// Reads a specification. Errors: Error(config) with every problem, its place and line: unknown features, types or
/// keys; a feature twice in a mapping or channel; a mapping without a feature of a channel, but for labels; a
/// cardinality that does not fit its type.
FeatureSpec read_feature_spec(const fs::path&);
FeatureSpec parse_feature_spec(std::string_view yaml, const std::string& name, const fs::path& folder);

std::string to_yaml(const FeatureSpec&);

}  // namespace hctr
