#include "formats/features/feature_set.h"

#include <algorithm>

#include "core/base/expect.h"
#include "formats/features/feature_cutter.h"
#include "formats/features/feature_parser.h"
#include "formats/features/feature_section.h"

namespace hctr {
namespace {

class FeatureSet : public SampleSet {
 public:
  FeatureSet(const DataSection& section, const Source& source, const Log& log)
      : policy_(section.bad_records),
        labels_(section.labels()),
        files_{section.feature_spec},
        plan_(plan_features(section, source)) {
    for (const FeaturePlan::MissingLabel& missing : plan_.missing_labels) {
      if (missing.index == section.labels())
        note_missing_weight(source.labels_optional ? "" : missing.feature, section.feature_spec, log);
      else
        --labels_;
    }
    if (source.num_samples > 0) most_ = source.num_samples;
    if (plan_.rows && most_.value_or(0) > *plan_.rows)
      throw Error(Kind::data,
                  cat("mapping \"", source.path, "\" of '", section.feature_spec, "' holds ", *plan_.rows,
                      " rows, but the Data layer expects ", *most_, " (\"num_samples\" and \"eval_num_samples\")"));
    samples_ = most_ ? *most_ : plan_.rows ? *plan_.rows : estimate();
    if (samples_ == 0)
      throw Error(Kind::data, cat("mapping \"", source.path, "\" of '", section.feature_spec,
                                  "': the data set is empty: its files hold no rows"));
  }

  const std::vector<fs::path>& files() const override { return files_; }
  int64_t samples() const override { return samples_; }
  bool samples_estimated() const override { return !most_ && !plan_.rows; }
  std::unique_ptr<Cutter> open(size_t, FilePosition from) override {
    return std::make_unique<FeatureCutter>(plan_, from.record, most_);
  }
  std::unique_ptr<Parser> parser() const override { return std::make_unique<FeatureParser>(plan_, policy_); }
  bool has_labels() const override { return labels_ > 0; }
  std::string facts(size_t) const override { return cat(kFeatureFormat.name, " '", files_[0].string(), "'"); }
  /// Total size of all files with used columns.
  int64_t bytes(size_t) const override {
    int64_t bytes = 0;
    for (const FeatureGroup& group : plan_.groups)
      for (const fs::path& file : group.files) bytes += static_cast<int64_t>(fs::file_size(file));
    return bytes;
  }
  bool can_select_rows() const override { return policy_ != BadRecordPolicy::skip; }
  bool can_select_single_rows() const override { return true; }
  std::optional<int64_t> exact_samples() const override {
    return samples_estimated() ? std::nullopt : std::optional(samples_);
  }

 private:
  /// Estimates the number of rows of the mapping: the total file size of its first chunk, divided by the mean length of
  /// the lines at the start of the first file.
  int64_t estimate() const {
    const FeatureGroup& group = plan_.groups[0];
    const auto stream = open_stream(group.files[0]);
    std::vector<std::byte> start(1 << 20);
    const size_t got = stream->read(start.data(), start.size());
    const auto lines = std::count(start.begin(), start.begin() + static_cast<ptrdiff_t>(got), std::byte{'\n'});
    double bytes = 0;
    for (const fs::path& file : group.files) bytes += static_cast<double>(fs::file_size(file));
    const double of_a_line = static_cast<double>(std::max<int64_t>(1, stream->consumed())) /
                             static_cast<double>(std::max<int64_t>(1, lines));
    return bytes == 0 ? 0 : std::max<int64_t>(1, static_cast<int64_t>(bytes / of_a_line));
  }

  std::optional<BadRecordPolicy> policy_;
  int64_t labels_;               // number of labels with a column
  std::vector<fs::path> files_;  // only the specification's path, because the mapping is treated as one file
  FeaturePlan plan_;
  std::optional<int64_t> most_;
  int64_t samples_ = 0;
};

}  // namespace

std::unique_ptr<SampleSet> open_feature_set(const DataSection& section, const Source& source, KeyWidth,
                                            const Log& log) {
  return std::make_unique<FeatureSet>(section, source, log);
}

FormatType feature_format() {
  return {.format = kFeatureFormat,
          .source_text = "a mapping of the feature specification",
          .complete = complete_feature_section,
          .check = check_feature_section,
          .open = open_feature_set};
}

}  // namespace hctr
