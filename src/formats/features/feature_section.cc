#include "formats/features/feature_section.h"

#include <algorithm>

#include "core/base/expect.h"
#include "formats/data/section_checks.h"
#include "formats/features/feature_set.h"

namespace hctr {
namespace {

std::string listed(const FeatureSpec& spec, const std::vector<size_t>& features) {
  std::string names;
  for (const size_t feature : features) names += cat(names.empty() ? "" : ", ", spec.features[feature].name);
  return names;
}

bool has_channel(const FeatureSpec& spec, const std::string& name) {
  return std::any_of(spec.channels.begin(), spec.channels.end(),
                     [&](const FeatureChannel& channel) { return channel.name == name; });
}

/// Returns the features of channel `top` if it exists, else of channel `usual`. Reports a problem if their number is
/// not `wanted`.
std::vector<size_t> channel_of(const FeatureSpec& spec, const std::string& top, const char* usual, int64_t wanted,
                               const std::string& pointer, Problems& problems) {
  const std::string name = has_channel(spec, top) ? top : usual;
  const std::vector<size_t> features = spec.channel(name);
  if (static_cast<int64_t>(features.size()) == wanted) return features;
  std::vector<std::string> channels;
  for (const FeatureChannel& channel : spec.channels) channels.push_back(channel.name);
  problems.error(pointer, has_channel(spec, name)
                              ? cat("is ", wanted, ", but the channel \"", name, "\" of the feature specification has ",
                                    features.size(), features.size() == 1 ? " feature" : " features",
                                    features.empty() ? "" : ": ", listed(spec, features))
                              : cat("is ", wanted, ", but the feature specification has no channel \"", top,
                                    "\" (the name of the input) nor \"", usual, "\"; it has ", one_of(channels)));
  return {};
}

void check_mapping(const FeatureSpec& spec, const std::string& mapping, const std::string& pointer,
                   Problems& problems) {
  std::vector<std::string> names;
  for (const FeatureSource& source : spec.sources) names.push_back(source.name);
  if (std::find(names.begin(), names.end(), mapping) == names.end())
    problems.error(pointer,
                   cat("the feature specification has no mapping \"", mapping, "\"; there is ", one_of(names)));
}

void check_ids(const FeatureSpec& spec, const std::vector<size_t>& features, const std::string& pointer,
               Problems& problems) {
  for (const size_t feature : features)
    if (!is_whole(spec.features[feature].type))
      problems.error(pointer, cat("the feature \"", spec.features[feature].name, "\" has the type ",
                                  name_of(spec.features[feature].type), "; ids are integers"));
}

/// Sets each size that the section omits to the number of features in the channel that the input reads.
void complete_feature_widths(DataSection& section, const FeatureSpec& spec) {
  const auto size = [&](const std::string& top, const char* usual) {
    return static_cast<int64_t>(spec.channel(has_channel(spec, top) ? top : usual).size());
  };
  if (!section.label.label_dim.given())
    if (const int64_t labels = size(section.label.top, kLabelChannel); labels > 0) section.label.label_dim = labels;
  if (!section.dense.dense_dim.given()) section.dense.dense_dim = size(section.dense.top, kNumericalChannel);
  int64_t shared = static_cast<int64_t>(spec.channel(kCategoricalChannel).size()), open = 0;
  for (SparseInput& input : section.sparse)
    if (!has_channel(spec, input.top)) {
      shared -= input.slot_num;
      open += !input.slot_num.given();
    } else if (!input.slot_num.given()) {
      input.slot_num = size(input.top, "");
    }
  for (SparseInput& input : section.sparse) {
    if (!input.slot_num.given() && open == 1 && shared > 0) input.slot_num = shared;
    if (!input.nnz_per_slot && !input.max_feature_num_per_sample && !input.max_nnz)
      input.nnz_per_slot = PerSlot{{1}};  // each feature has one key
  }
}

// Maximum ids per slot. Equal to the limit of slot_size_array, so that sums of sizes stay far below 2^63.
constexpr int64_t kMostIds = 1LL << 48;

/// Sets an omitted slot_size_array to the cardinalities of the features. Checks a given slot_size_array against the
/// cardinalities.
void complete_sizes(DataSection& section, const FeatureSpec& spec, const FeatureUse& use, const std::string& pointer,
                    Problems& problems) {
  std::vector<int64_t> sizes;
  std::vector<size_t> unknown;
  for (const size_t slot : use.slots) {
    if (const int64_t ids = spec.features[slot].cardinality.value_or(0); ids > kMostIds)
      return problems.error(
          cat(pointer, "/", sizes.size()),
          cat("the feature \"", spec.features[slot].name, "\" has a cardinality of ", ids, ", but a slot has at most ",
              kMostIds, " ids; correct or remove the cardinality in the feature specification"));
    sizes.push_back(spec.features[slot].cardinality.value_or(0));
    if (!spec.features[slot].cardinality) unknown.push_back(slot);
  }
  if (section.slot_size_array.empty()) {
    if (unknown.empty())
      section.slot_size_array = sizes;
    else if (sizes.size() > 1)
      problems.warn(pointer, cat("is not set, and the feature specification has no cardinality of ",
                                 listed(spec, unknown), ": keys are then the ids, so features share keys"));
    return;
  }
  for (size_t s = 0; s < std::min(sizes.size(), section.slot_size_array.size()); ++s)
    if (section.slot_size_array[s] < sizes[s])
      problems.error(cat(pointer, "/", s),
                     cat("is ", section.slot_size_array[s], ", but the feature \"", spec.features[use.slots[s]].name,
                         "\" has ids below its cardinality of ", sizes[s]));
}

}  // namespace

FeatureUse use_features(const FeatureSpec& spec, const DataSection& section, const std::string& pointer,
                        Problems& problems) {
  FeatureUse use;
  use.labels = channel_of(spec, section.label.top, kLabelChannel, section.label.label_dim, pointer + "/label/label_dim",
                          problems);
  use.dense = channel_of(spec, section.dense.top, kNumericalChannel, section.dense.dense_dim,
                         pointer + "/dense/dense_dim", problems);
  const std::vector<size_t> shared = spec.channel(kCategoricalChannel);
  int64_t taken = 0;
  bool shares = false;
  for (size_t i = 0; i < section.sparse.size(); ++i) {
    const SparseInput& input = section.sparse[i];
    const std::string place = cat(pointer, "/sparse/", i);
    std::vector<size_t> features;
    if (has_channel(spec, input.top)) {
      features = channel_of(spec, input.top, "", input.slot_num, place + "/slot_num", problems);
    } else {
      shares = true;
      for (int64_t s = 0; s < input.slot_num; ++s, ++taken)
        if (taken < static_cast<int64_t>(shared.size())) features.push_back(shared[static_cast<size_t>(taken)]);
    }
    check_ids(spec, features, place, problems);
    use.slots.insert(use.slots.end(), features.begin(), features.end());
  }
  if (shares && taken != static_cast<int64_t>(shared.size()))
    problems.error(pointer + "/sparse", cat("the inputs without a channel of the same name have ", taken,
                                            " slots in total, but the channel \"", kCategoricalChannel,
                                            "\" of the feature specification has ", shared.size(), " features",
                                            shared.empty() ? "" : ": ", listed(spec, shared)));
  return use;
}

void complete_feature_section(DataSection& section, const std::string& pointer, Problems& problems) {
  if (section.feature_spec.empty()) return;
  if (section.format != DataFormat{} && section.format != kFeatureFormat)
    return problems.error(pointer + "/format", cat("a feature specification defines how samples are stored; remove ",
                                                   to_json(section.format).text(), " or \"feature_spec\""));
  section.format = kFeatureFormat;
  if (section.source.empty()) section.source = "train";
  if (!fs::exists(section.feature_spec))
    return problems.note(pointer + "/feature_spec", cat("there is no file '", section.feature_spec,
                                                        "' yet; the layer is not checked against "
                                                        "the specification"));
  try {
    const FeatureSpec spec = read_feature_spec(section.feature_spec);
    for (const FeatureSource& source : spec.sources)
      if (section.eval_source.empty() && source.name == "test") section.eval_source = "test";
    for (const auto& [field, mapping] : {std::pair{"/source", &section.source}, {"/eval_source", &section.eval_source}})
      if (!mapping->empty()) check_mapping(spec, *mapping, pointer + field, problems);
    const size_t before = problems.errors().size();
    complete_feature_widths(section, spec);
    const FeatureUse use = use_features(spec, section, pointer, problems);
    if (problems.errors().size() == before) complete_sizes(section, spec, use, pointer + "/slot_size_array", problems);
  } catch (const Error& error) {
    problems.error(pointer + "/feature_spec", error.what());
  }
}

void check_feature_section(const DataSection& section, const std::string& pointer, Problems& problems) {
  if (section.feature_spec.empty())
    return problems.error(pointer,
                          "the format FeatureSpec needs \"feature_spec\": the path of a feature specification");
  check_slot_sizes(section, pointer, problems);
  for (size_t i = 0; i < section.sparse.size(); ++i)
    if (const SparseInput& input = section.sparse[i]; input.max_keys() < input.slot_num)
      problems.error(cat(pointer, "/sparse/", i),
                     cat("each feature puts one key into its slot, so a sample has ", input.slot_num,
                         " keys; the input's limits allow only ", input.max_keys()));
}

}  // namespace hctr
