#include "formats/text/criteo_set.h"

#include <algorithm>
#include <array>

#include "core/base/expect.h"
#include "formats/io/set_files.h"

namespace hctr {
namespace {

constexpr size_t kLogColumns = 1 + kCriteoIntegers + kCriteoCategories;

/// Column names in Criteo's description of the logs: label, I1 to I13, C1 to C26.
std::vector<std::string> log_columns(bool has_labels) {
  std::vector<std::string> names;
  if (has_labels) names.emplace_back("label");
  for (int i = 1; i <= kCriteoIntegers; ++i) names.push_back(cat("I", i));
  for (int i = 1; i <= kCriteoCategories; ++i) names.push_back(cat("C", i));
  return names;
}

class CriteoRowMaker : public RowMaker {
 public:
  CriteoRowMaker(const CriteoStyle& style, bool has_labels)
      : style_(style), wide_keys_(static_cast<int32_t>(style.wide_keys())), has_labels_(has_labels) {}
  size_t columns() const override { return has_labels_ ? kLogColumns : kLogColumns - 1; }
  bool has_labels() const override { return has_labels_; }

  std::string make(Cells cells, const RowMajor::Row& row) const override {
    std::array<std::string_view, kLogColumns> with_label;
    if (!has_labels_) {
      with_label[0] = "0";
      std::copy(cells.begin(), cells.end(), with_label.begin() + 1);
      cells = with_label;
    }
    CriteoRow values;
    if (std::string problem = parse_criteo_cells(cells, values); !problem.empty()) return problem;
    if (!has_labels_) values.label = kNoLabel;
    *row.label = values.label;
    if (style_.has_dense())
      for (size_t i = 0; i < kCriteoIntegers; ++i) row.dense[i] = dense_value(values.integers[i]);
    thread_local std::vector<Feature> features;
    criteo_features(style_, values, features);
    append_criteo_keys(style_, features, *row.keys);
    if (wide_keys_ > 0) *row.nnz = wide_keys_;
    std::fill_n(row.nnz + (wide_keys_ > 0), style_.deep_slots(), 1);
    return "";
  }

 private:
  CriteoStyle style_;
  int32_t wide_keys_;
  bool has_labels_;
};

}  // namespace

const std::vector<std::pair<std::string, Wide>>& EnumWords<Wide>::table() {
  static const std::vector<std::pair<std::string, Wide>> words = {
      {"none", Wide::none}, {"all", Wide::all}, {"cross", Wide::cross}};
  return words;
}

const std::vector<std::pair<std::string, Integers>>& EnumWords<Integers>::table() {
  static const std::vector<std::pair<std::string, Integers>> words = {
      {"dense", Integers::dense}, {"buckets", Integers::buckets}, {"both", Integers::both}};
  return words;
}

namespace {

Schema<CriteoTextOptions> criteo_schema() {
  return Schema<CriteoTextOptions>("criteo")
      .opt("wide", &CriteoTextOptions::wide,
           "an additional first slot: the keys of all 39 features, or the 2 keys of the pairs C1 x C2 and C3 x C4; "
           "default: none")
      .opt("integers", &CriteoTextOptions::integers,
           "how I1 to I13 are used: as dense values, as 13 slots of buckets after the slots of C1 to C26, or both")
      .opt("buckets", &CriteoTextOptions::buckets,
           "number of keys of each column, at least 3; 0: one key for every value", at_least(0))
      .opt("key_bits", &CriteoTextOptions::key_bits, "bits of a key: 64, or 32 for files with 32-bit keys",
           between(32, 64))
      .together([](CriteoTextOptions& options, const std::string& pointer, Problems& problems) {
        if (options.key_bits != 32 && options.key_bits != 64)
          problems.error(pointer + "/key_bits", cat("expected 32 or 64, found ", options.key_bits));
        try {
          check_criteo_style(criteo_style(options));
        } catch (const Error& error) {
          problems.error(pointer + "/buckets", error.what());
        }
      });
}

StatedWidths criteo_widths(const DataSection& section) {
  const CriteoStyle style = criteo_style(section.options.get<CriteoTextOptions>());
  std::vector<int64_t> nnz(static_cast<size_t>(style.deep_slots()), 1);
  if (style.wide_keys() > 0) nnz.insert(nnz.begin(), style.wide_keys());
  return {1, style.dense_dim(), std::move(nnz)};
}

void check_criteo_section(const DataSection& section, const std::string& pointer, Problems& problems) {
  const CriteoStyle style = criteo_style(section.options.get<CriteoTextOptions>());
  const int64_t slots = style.deep_slots() + (style.wide_keys() > 0);
  if (section.sample_weight.given)
    problems.error(pointer + "/sample_weight", "Criteo data has no column of weights");
  else if (section.label.label_dim != 1)
    problems.error(pointer + "/label/label_dim", cat("Criteo data has 1 label, not ", section.label.label_dim));
  if (section.dense.dense_dim != style.dense_dim())
    problems.error(pointer + "/dense/dense_dim", cat("Criteo data with these options has ", style.dense_dim(),
                                                     " dense values, not ", section.dense.dense_dim));
  if (section.slots() != slots)
    problems.error(pointer + "/sparse",
                   cat("has ", section.slots(), " slots in total; Criteo data with these options has ", slots));
  else if (style.wide_keys() > 0 &&
           std::min(section.sparse[0].max_keys(), section.sparse[0].limits().max_nnz) < style.wide_keys())
    problems.error(pointer + "/sparse/0", cat("its first slot has ", style.wide_keys(),
                                              " keys (\"wide\" of "
                                              "\"criteo\"); the limits allow "
                                              "fewer"));
}

std::unique_ptr<SampleSet> open_criteo_set(const DataSection& section, const Source& source, KeyWidth, const Log& log) {
  return open_text_set(section, source, criteo_text_format(section, source.labels_optional), log);
}

}  // namespace

FormatType criteo_format() {
  return {.format = kCriteoFormat,
          .source_text = "the path of a text file, of a file list or of a folder",
          .files = text_files,
          .lines_of_text = true,
          .object = format_object("criteo", criteo_schema(),
                                  "for Criteo data: how columns become slots and dense "
                                  "values"),
          .widths = criteo_widths,
          .check = check_criteo_section,
          .open = open_criteo_set};
}

CriteoStyle criteo_style(const CriteoTextOptions& options) {
  return {.wide = options.wide,
          .integers = options.integers,
          .buckets = options.buckets,
          .key_bytes = static_cast<int>(options.key_bits / 8)};
}

TextFormat criteo_text_format(const DataSection& section, bool labels_optional) {
  const CriteoStyle style = criteo_style(section.options.get<CriteoTextOptions>());
  const auto has_labels = [labels_optional](Cells first) {
    return !labels_optional || first.size() != kLogColumns - 1;
  };
  return {kCriteoGrammar, false,
          [style, has_labels](Cells first, const std::vector<Partition>&) {
            return std::make_shared<const CriteoRowMaker>(style, has_labels(first));
          },
          [has_labels](Cells first) { return log_columns(has_labels(first)); }};
}

}  // namespace hctr
