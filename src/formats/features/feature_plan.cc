#include "formats/features/feature_plan.h"

#include <algorithm>
#include <numeric>

#include "core/base/expect.h"
#include "formats/features/feature_section.h"
#include "formats/io/byte_file.h"

namespace hctr {
namespace {

/// Adds the fields of a sample that feature `feature` sets.
void add_fields(const FeatureSpec& spec, const FeatureUse& use, const std::vector<int64_t>& sizes, size_t feature,
                size_t place, std::vector<FeatureField>& fields) {
  const FeatureColumn& column = spec.features[feature];
  for (const auto& [to, list] : {std::pair{FeatureField::To::label, &use.labels},
                                 {FeatureField::To::dense, &use.dense},
                                 {FeatureField::To::slot, &use.slots}})
    for (size_t i = 0; i < list->size(); ++i) {
      if ((*list)[i] != feature) continue;
      FeatureField& field = fields.emplace_back();
      field.feature = column;
      field.place = place;
      field.to = to;
      field.index = static_cast<int64_t>(i);
      if (to != FeatureField::To::slot) continue;
      if (!sizes.empty())
        field.more = std::accumulate(sizes.begin(), sizes.begin() + static_cast<ptrdiff_t>(i), int64_t{0});
      if (column.cardinality)
        field.limit = *column.cardinality;
      else if (!sizes.empty() && sizes[i] > 0)
        field.limit = sizes[i];
      else
        field.limit -= field.more;
      if (column.type == FeatureType::boolean) field.limit = std::min<int64_t>(field.limit, 2);
    }
}

void measure(FeatureGroup& group) {
  const auto width = static_cast<int64_t>(group.width);
  for (const fs::path& path : group.files) {
    const ByteFile file(path);
    if (!group.binary()) continue;
    if (file.size() % width != 0)
      throw Error(Kind::data,
                  cat("'", path.string(), "' has ", file.size(), " bytes, which is not a whole number of rows of ",
                      width, " bytes; was the file truncated, or is a dtype wrong?"));
    group.rows.push_back(file.size() / width);
  }
}

/// Adds the mapping's chunks to the plan. add_fields(feature, place, fields) adds the fields of one feature.
template <class AddFields>
void add_groups(const FeatureSpec& spec, FeaturePlan& plan, const AddFields& add_fields) {
  const FeatureGroup* first_binary = nullptr;
  const std::vector<FeatureChunk>& chunks = spec.source(plan.mapping).chunks;
  plan.groups.reserve(chunks.size());
  for (const FeatureChunk& chunk : chunks) {
    FeatureGroup group{.kind = chunk.kind, .files = chunk.files, .rows = {}, .fields = {}};
    for (const size_t feature : chunk.features) {
      add_fields(feature, group.width, group.fields);
      group.width += group.binary() ? bytes_of(spec.features[feature].type) : 1;
    }
    if (group.fields.empty()) continue;
    measure(group);
    plan.groups.push_back(std::move(group));
    const FeatureGroup& added = plan.groups.back();
    if (!added.binary()) continue;
    const int64_t rows = std::accumulate(added.rows.begin(), added.rows.end(), int64_t{0});
    if (first_binary && rows != *plan.rows)
      throw Error(Kind::data, cat("the chunks of mapping \"", plan.mapping, "\" differ in length: the chunk of '",
                                  first_binary->files[0].string(), "' has ", *plan.rows, " rows, the chunk of '",
                                  added.files[0].string(), "' ", rows));
    first_binary = &added;
    plan.rows = rows;
  }
}

/// Adds the labels that are in no chunk of the mapping.
void add_missing_labels(const FeatureSpec& spec, const FeatureUse& use, const DataSection& section,
                        const Source& source, FeaturePlan& plan) {
  for (size_t i = 0; i < use.labels.size(); ++i) {
    const auto& chunks = spec.source(plan.mapping).chunks;
    const auto holds = [&](const FeatureChunk& chunk) {
      return std::find(chunk.features.begin(), chunk.features.end(), use.labels[i]) != chunk.features.end();
    };
    if (std::any_of(chunks.begin(), chunks.end(), holds)) continue;
    const std::string& name = spec.features[use.labels[i]].name;
    const auto value = label_without_column(section, source, i);
    if (!value)
      throw Error(Kind::data, cat("no chunk of mapping \"", plan.mapping, "\" of '", section.feature_spec,
                                  "' holds the label \"", name, "\"; only prediction can do without labels"));
    plan.missing_labels.push_back({name, static_cast<int64_t>(i), *value});
  }
}

}  // namespace

FeaturePlan plan_features(const DataSection& section, const Source& source) {
  const FeatureSpec spec = read_feature_spec(section.feature_spec);
  Problems problems;
  const FeatureUse use = use_features(spec, section, "/layers/0", problems);
  problems.throw_if_any(section.feature_spec);
  FeaturePlan plan{.mapping = source.path,
                   .label_dim = section.label.label_dim,
                   .dense_dim = section.dense.dense_dim,
                   .slots = section.slots(),
                   .groups = {},
                   .rows = {}};
  add_groups(spec, plan, [&](size_t feature, size_t place, std::vector<FeatureField>& fields) {
    add_fields(spec, use, section.slot_size_array, feature, place, fields);
  });
  add_missing_labels(spec, use, section, source, plan);
  return plan;
}

FeaturePlan plan_columns(const FeatureSpec& spec, const std::string& mapping, const std::vector<size_t>& wanted) {
  FeaturePlan plan{.mapping = mapping, .groups = {}, .rows = {}};
  add_groups(spec, plan, [&](size_t feature, size_t place, std::vector<FeatureField>& fields) {
    const auto found = std::find(wanted.begin(), wanted.end(), feature);
    if (found == wanted.end()) return;
    FeatureField& field = fields.emplace_back();
    field.feature = spec.features[feature];
    field.place = place;
    field.to = FeatureField::To::column;
    field.index = found - wanted.begin();
  });
  return plan;
}

}  // namespace hctr
