#include "formats/features/feature_spec.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "config/problems.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

std::vector<std::string> names_of(const FeatureSpec& spec) {
  std::vector<std::string> names;
  for (const FeatureColumn& feature : spec.features) names.push_back(feature.name);
  return names;
}

/// Parses the sections in order. Adds each problem to `problems` with its section and line.
class SpecParser {
 public:
  explicit SpecParser(Problems& problems) : problems_(problems) {}

  FeatureSpec parse(const YAML::Node& root, const fs::path& folder) {
    spec_.folder = folder;
    if (!root.IsMap()) {
      error("", root, "expected the sections feature_spec, source_spec and channel_spec");
      return spec_;
    }
    only(root, "", {"feature_spec", "source_spec", "channel_spec", "metadata"});
    for_each(section(root, "feature_spec"), "/feature_spec", [&](auto... facts) { read_feature(facts...); });
    for_each(section(root, "source_spec"), "/source_spec", [&](auto... facts) { read_source(facts...); });
    for_each(section(root, "channel_spec"), "/channel_spec", [&](auto... facts) { read_channel(facts...); });
    if (const YAML::Node metadata = root["metadata"]; metadata && !metadata.IsNull() && metadata.size() > 0)
      spec_.metadata = YAML::Dump(metadata);
    if (!problems_.any_error()) check_together(root);
    return spec_;
  }

 private:
  void error(const std::string& place, const YAML::Node& node, const std::string& message) {
    const int line = node.IsDefined() ? node.Mark().line : -1;
    problems_.error(line < 0 ? place : cat(place, " (line ", line + 1, ")"), message);
  }

  void only(const YAML::Node& map, const std::string& place, const std::vector<std::string>& known) {
    for (const auto& entry : map) {
      const auto key = entry.first.as<std::string>();
      if (std::find(known.begin(), known.end(), key) == known.end())
        error(place + "/" + key, entry.first,
              cat("unknown entry", did_you_mean(key, known), "; known are ", one_of(known)));
    }
  }

  YAML::Node section(const YAML::Node& root, const std::string& name) {
    const YAML::Node node = root[name];
    if (!node || !node.IsMap() || node.size() == 0) {
      error("/" + name, node ? node : root,
            cat("expected entries \"name: ...\", found ", !node || node.IsNull() ? "nothing" : "something else"));
      return YAML::Node(YAML::NodeType::Map);
    }
    return node;
  }

  template <class Visit>
  void for_each(const YAML::Node& map, const std::string& place, const Visit& visit) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      const auto name = entry.first.as<std::string>();
      if (!seen.insert(name).second)
        error(place + "/" + name, entry.first, "appears twice");
      else
        visit(name, entry.second, place + "/" + name);
    }
  }

  void read_feature(const std::string& name, const YAML::Node& node, const std::string& place) {
    FeatureColumn& feature = spec_.features.emplace_back();
    feature.name = name;
    const YAML::Node type = node.IsMap() ? node["dtype"] : YAML::Node();
    if (!type.IsDefined() || !type.IsScalar())
      return error(place, node, "expected \"dtype\": the type of its values, such as int32 or float32");
    const auto found = feature_type(type.Scalar());
    if (!found)
      return error(place + "/dtype", type,
                   cat("unknown type \"", type.Scalar(),
                       "\"; expected bool, int8 to int64, uint8 to uint64, float16 to float64"));
    feature.type = *found;
    if (const YAML::Node cardinality = node["cardinality"]; cardinality.IsDefined()) {
      int64_t count = 0;
      if (!YAML::convert<int64_t>::decode(cardinality, count) || count < 1)
        return error(place + "/cardinality", cardinality, "expected an integer, at least 1");
      if (static_cast<double>(count - 1) > most_of(feature.type) || !is_whole(feature.type))
        return error(place + "/cardinality", cardinality,
                     cat("ids up to ", count - 1, " do not fit the type ", name_of(feature.type), "; ",
                         name_of(type_for_ids(count)), " would do"));
      feature.cardinality = count;
    }
  }

  std::vector<size_t> read_features(const YAML::Node& list, const std::string& place) {
    std::vector<size_t> features;
    if (!list.IsDefined() || !list.IsSequence() || list.size() == 0) {
      error(place, list, "expected a list of features");
      return features;
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string name = list[i].IsScalar() ? list[i].Scalar() : "";
      const auto found = spec_.find(name);
      if (!found)
        error(cat(place, "/", i), list[i],
              cat("unknown feature \"", name, "\" in feature_spec", did_you_mean(name, names_of(spec_))));
      else if (std::find(features.begin(), features.end(), *found) != features.end())
        error(cat(place, "/", i), list[i], cat("\"", name, "\" is in the list twice"));
      else
        features.push_back(*found);
    }
    return features;
  }

  void read_source(const std::string& name, const YAML::Node& node, const std::string& place) {
    FeatureSource& source = spec_.sources.emplace_back();
    source.name = name;
    if (!node.IsSequence() || node.size() == 0)
      return error(place, node, "expected a list of chunks, each with type, features and files");
    std::vector<bool> taken(spec_.features.size());
    for (size_t i = 0; i < node.size(); ++i) {
      source.chunks.push_back(read_chunk(node[i], cat(place, "/", i)));
      for (const size_t feature : source.chunks.back().features) {
        if (taken[feature])
          error(cat(place, "/", i, "/features"), node[i],
                cat("\"", spec_.features[feature].name, "\" is in an earlier chunk of this mapping"));
        taken[feature] = true;
      }
    }
  }

  FeatureChunk read_chunk(const YAML::Node& node, const std::string& place) {
    FeatureChunk chunk;
    if (!node.IsMap()) {
      error(place, node, "expected a chunk: type, features and files");
      return chunk;
    }
    only(node, place, {"type", "features", "files"});
    const YAML::Node type = node["type"], files = node["files"];
    const std::string word = type.IsDefined() && type.IsScalar() ? type.Scalar() : "";
    if (word == "split_binary")
      chunk.kind = FeatureChunk::Kind::split_binary;
    else if (word != "csv")
      error(place + "/type", type.IsDefined() ? type : node,
            cat("expected csv or split_binary, found ", word.empty() ? "nothing" : "\"" + word + "\""));
    chunk.features = read_features(node["features"], place + "/features");
    if (!files.IsDefined() || !files.IsSequence() || files.size() == 0)
      error(place + "/files", node, "expected a list of files");
    else
      for (const auto& file : files) chunk.files.push_back(spec_.folder / file.as<std::string>());
    return chunk;
  }

  void read_channel(const std::string& name, const YAML::Node& node, const std::string& place) {
    if (node.IsSequence() && node.size() == 0)
      // an empty channel, such as that of dense values in a model without dense values
      return spec_.channels.push_back({name, {}});
    spec_.channels.push_back({name, read_features(node, place)});
  }

  /// Checks that every mapping has the features of each channel.
  void check_together(const YAML::Node& root) {
    for (const FeatureSource& source : spec_.sources)
      for (const FeatureChannel& channel : spec_.channels)
        if (channel.name != kLabelChannel)  // prediction data have no labels; plan_features() checks labels
          for (const size_t feature : channel.features)
            if (std::none_of(source.chunks.begin(), source.chunks.end(), [&](const FeatureChunk& chunk) {
                  return std::find(chunk.features.begin(), chunk.features.end(), feature) != chunk.features.end();
                }))
              error("/source_spec/" + source.name, root["source_spec"][source.name],
                    cat("no chunk holds \"", spec_.features[feature].name, "\", which the channel \"", channel.name,
                        "\" needs"));
  }

  Problems& problems_;
  FeatureSpec spec_;
};

std::vector<std::string> feature_names(const FeatureSpec& spec, const std::vector<size_t>& features) {
  std::vector<std::string> names;
  for (const size_t feature : features) names.push_back(spec.features[feature].name);
  return names;
}

}  // namespace

const FeatureSource& FeatureSpec::source(const std::string& name) const {
  std::vector<std::string> names;
  for (const FeatureSource& source : sources) {
    if (source.name == name) return source;
    names.push_back(source.name);
  }
  throw Error(Kind::config, cat("the feature specification has no mapping \"", name, "\"; there is ", one_of(names)));
}

std::vector<size_t> FeatureSpec::channel(const std::string& name) const {
  for (const FeatureChannel& channel : channels)
    if (channel.name == name) return channel.features;
  return {};
}

std::optional<size_t> FeatureSpec::find(const std::string& name) const {
  for (size_t i = 0; i < features.size(); ++i)
    if (features[i].name == name) return i;
  return {};
}

FeatureSpec parse_feature_spec(std::string_view yaml, const std::string& name, const fs::path& folder) {
  Problems problems;
  FeatureSpec spec;
  try {
    spec = SpecParser(problems).parse(YAML::Load(std::string(yaml)), folder);
  } catch (const YAML::Exception& error) {
    throw Error(Kind::config,
                cat("'", name, "' line ", error.mark.line + 1, ", column ", error.mark.column + 1, ": ", error.msg));
  }
  problems.throw_if_any(name);
  return spec;
}

FeatureSpec read_feature_spec(const fs::path& path) {
  return parse_feature_spec(read_text(path, "feature specification"), path.string(), path.parent_path());
}

std::string to_yaml(const FeatureSpec& spec) {
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "feature_spec" << YAML::Value << YAML::BeginMap;
  for (const FeatureColumn& feature : spec.features) {
    out << YAML::Key << feature.name << YAML::Value << YAML::BeginMap << YAML::Key << "dtype" << YAML::Value
        << name_of(feature.type);
    if (feature.cardinality) out << YAML::Key << "cardinality" << YAML::Value << *feature.cardinality;
    out << YAML::EndMap;
  }
  out << YAML::EndMap << YAML::Key << "source_spec" << YAML::Value << YAML::BeginMap;
  for (const FeatureSource& source : spec.sources) {
    out << YAML::Key << source.name << YAML::Value << YAML::BeginSeq;
    for (const FeatureChunk& chunk : source.chunks) {
      std::vector<std::string> files;
      for (const fs::path& file : chunk.files) {
        const fs::path near = file.lexically_proximate(spec.folder.empty() ? "." : spec.folder);
        files.push_back((near.empty() || *near.begin() == ".." ? fs::absolute(file) : near).string());
      }
      out << YAML::BeginMap << YAML::Key << "type" << YAML::Value
          << (chunk.kind == FeatureChunk::Kind::csv ? "csv" : "split_binary");
      out << YAML::Key << "features" << YAML::Value << feature_names(spec, chunk.features) << YAML::Key << "files"
          << YAML::Value << files << YAML::EndMap;
    }
    out << YAML::EndSeq;
  }
  out << YAML::EndMap << YAML::Key << "channel_spec" << YAML::Value << YAML::BeginMap;
  for (const FeatureChannel& channel : spec.channels)
    out << YAML::Key << channel.name << YAML::Value << feature_names(spec, channel.features);
  out << YAML::EndMap << YAML::Key << "metadata" << YAML::Value;
  if (spec.metadata.empty())
    out << YAML::BeginMap << YAML::EndMap;
  else
    out << YAML::Load(spec.metadata);
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace hctr
