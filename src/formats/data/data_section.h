// The `Data` layer of a config: the source of the samples and the contents of a sample.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "core/base/files.h"
#include "formats/data/batch_layout.h"
#include "formats/data/column_statistics.h"
#include "formats/data/format_options.h"
#include "formats/data/number_notation.h"
#include "formats/data/record_shape.h"

namespace hctr {

enum class Check { none, sum };
enum class BadRecordPolicy { error, skip };
enum class SparseType { distributed_slot, localized_slot };

template <>
struct EnumWords<Check> {
  static const std::vector<std::pair<std::string, Check>>& table();
};
template <>
struct EnumWords<BadRecordPolicy> {
  static const std::vector<std::pair<std::string, BadRecordPolicy>>& table();
};
template <>
struct EnumWords<SparseType> {
  static const std::vector<std::pair<std::string, SparseType>>& table();
};

/// A data format by its name in a config. catalog/format_table.cc has an entry for each format.
struct DataFormat {
  std::string_view name = "Norm";
  bool operator==(const DataFormat&) const = default;
};
/// Accepts the names and aliases of all formats in the table.
Misfit read_value(const Json& value, const Range&, DataFormat& out);
inline Json to_json(DataFormat format) { return std::string(format.name); }
template <>
struct TypeWord<DataFormat> {
  static std::string text() { return "word"; }
};

/// One integer for all slots, or one per slot.
struct PerSlot {
  std::vector<int64_t> values;
};
Misfit read_value(const Json& value, const Range&, PerSlot& out);
Json to_json(const PerSlot&);
template <>
struct TypeWord<PerSlot> {
  static std::string text() { return "integer or array of integer"; }
};

/// Number of evaluation batches cached in device memory: an integer, or true for all.
struct CachedBatches {
  int64_t most = 0;
};
Misfit read_value(const Json& value, const Range&, CachedBatches& out);
Json to_json(const CachedBatches&);
template <>
struct TypeWord<CachedBatches> {
  static std::string text() { return "integer, or true or false"; }
};

/// The "async_param" object of HugeCTR's format RawAsync. Only its field `shuffle` has an effect.
struct AsyncParam {
  bool shuffle = false;
};
Misfit read_value(const Json& value, const Range&, AsyncParam& out);
Json to_json(const AsyncParam&);
template <>
struct TypeWord<AsyncParam> {
  static std::string text() { return "object"; }
};

/// A number of labels, dense values or slots. If the config omits it, parsing derives the number from the format's
/// columns.
class Width {
 public:
  Width() = default;
  Width(int64_t value) : value_(value) {}
  operator int64_t() const { return value_.value_or(0); }
  bool given() const { return value_.has_value(); }

 private:
  std::optional<int64_t> value_;
};
Misfit read_value(const Json& value, const Range&, Width& out);
Json to_json(const Width&);
template <>
struct TypeWord<Width> {
  static std::string text() { return TypeWord<int64_t>::text(); }
};

struct LabelPart {
  std::string top;
  Width label_dim;
};

/// The column with the weight of each sample in the loss. The weight is stored as an additional last label.
struct SampleWeightPart {
  std::string top;
  std::string column;  ///< empty if columns have no names
  std::optional<NumberFormat> number_format{};
  std::string unit{};
  bool given = false;
};

struct DensePart {
  std::string top;
  Width dense_dim;
};

struct SparseInput {
  std::string top;
  std::optional<SparseType> type;  ///< a HugeCTR v2 hint without effect: the embedding layer sets the placement
  Width slot_num;
  std::optional<int64_t> max_feature_num_per_sample, max_nnz;  ///< limits in the config; limits() resolves them
  std::optional<PerSlot> nnz_per_slot;                         ///< replaces both limits (HugeCTR v3.1)
  std::optional<int64_t> keep_first, keep_last;                ///< longer bags are truncated to this many keys
  int64_t is_fixed_length = 0;

  /// The effective limits on keys. Errors: Error(bug) if no field sets a limit. Parsing rejects such sections.
  RecordShape::Input limits() const;
  /// Maximum keys of a sample over all slots.
  int64_t max_keys() const { return limits().max_keys; }
  /// Maximum keys of slot `s` after truncation.
  int64_t kept_nnz(int64_t s) const { return kept_of(limits().most_of(s)); }
  /// Maximum keys of a sample over all slots, after truncation.
  int64_t kept_keys() const { return std::min(kept_places(), max_keys()); }
  /// The sum of kept_nnz(s) over all slots s.
  int64_t kept_places() const;
  /// The maximum of kept_nnz(s) over all slots s.
  int64_t longest_kept() const { return kept_of(limits().max_nnz); }

 private:
  int64_t kept_of(int64_t nnz) const { return std::min({nnz, keep_first.value_or(nnz), keep_last.value_or(nnz)}); }
};

struct DataSection {
  std::string name;
  DataFormat format;
  std::string source, eval_source;  ///< paths; with feature_spec, names of mappings
  std::string feature_spec;         ///< specification file; empty: `format` says how samples are stored
  std::optional<Check> check;       ///< checksum expected in the files
  LabelPart label;                  ///< after parsing, label_dim includes the sample weight
  SampleWeightPart sample_weight;
  DensePart dense;
  std::vector<SparseInput> sparse;
  int64_t num_samples = 0, eval_num_samples = 0;
  std::vector<int64_t> slot_size_array;
  bool float_label_dense = false;
  std::optional<int64_t> num_workers;
  int64_t shuffle = 0;
  double negative_sampling = 1;                ///< fraction of the negatives (label 0) that training keeps
  std::optional<BadRecordPolicy> bad_records;  ///< empty: depends on the format
  std::optional<int64_t> max_bad_records;
  CachedBatches cache_eval_data;
  std::optional<AsyncParam> async_param;
  bool follow = false;                ///< files may be added to `source` during the run; each is read once
  std::optional<double> follow_idle;  ///< training ends after this many minutes without a new file
  FormatOptions options;              ///< options specific to one format
  /// not in the config: learned from dense columns before the data are opened
  std::vector<ColumnStatistics> statistics;
  /// not in the config: with `follow`, the files that exist at the start of a run
  std::vector<fs::path> first_files;

  int64_t slots() const;
  /// Labels per sample, without the sample weight.
  int64_t labels() const { return label.label_dim - sample_weight.given; }
};

/// The record shape of the section's data.
RecordShape record_shape(const DataSection&);

/// Returns the shape of a batch with `samples` rows per rank: its capacities, and how bags are truncated.
/// Errors: Error(config) if a batch of one sparse input could exceed the range of 32-bit offsets.
BatchShape batch_shape(const DataSection&, int64_t samples);

}  // namespace hctr
