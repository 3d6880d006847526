// The `Data` layer of a config: where the samples are and what one sample holds.
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

/// A data format by its name in a config, which has a row in formats/format_table.cc.
struct DataFormat {
  std::string_view name = "Norm";
  bool operator==(const DataFormat&) const = default;
};
/// Knows the words of every row of the table.
Misfit read_value(const Json& value, const Range&, DataFormat& out);
inline Json to_json(DataFormat format) { return std::string(format.name); }
template <>
struct TypeWord<DataFormat> {
  static std::string text() { return "word"; }
};

/// One number for every slot, or one per slot.
struct PerSlot {
  std::vector<int64_t> values;
};
Misfit read_value(const Json& value, const Range&, PerSlot& out);
Json to_json(const PerSlot&);
template <>
struct TypeWord<PerSlot> {
  static std::string text() { return "integer or array of integer"; }
};

/// How many evaluation batches stay in the device's memory: a number, or true for all.
struct CachedBatches {
  int64_t most = 0;
};
Misfit read_value(const Json& value, const Range&, CachedBatches& out);
Json to_json(const CachedBatches&);
template <>
struct TypeWord<CachedBatches> {
  static std::string text() { return "integer, or true or false"; }
};

/// The object of that name of the format RawAsync: of its fields only `shuffle` has a meaning here.
struct AsyncParam {
  bool shuffle = false;
};
Misfit read_value(const Json& value, const Range&, AsyncParam& out);
Json to_json(const AsyncParam&);
template <>
struct TypeWord<AsyncParam> {
  static std::string text() { return "object"; }
};

/// A number of labels, dense values or slots. If omitted, it follows from the columns of the format; parsing sets it.
class Width {
 public:
  Width() = default;
  Width(int64_t value) : value_(value) {}
  operator int64_t() const { return value_.value_or(0); }
  bool given() const { return value_.has_value(); }

 private:
  friend Misfit read_value(const Json& value, const Range&, Width& out);
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

/// A column that says how much each sample counts. It is stored as one more label, the last.
struct SampleWeightPart {
  std::string top;
  std::string column;  ///< empty where columns have no names
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
  std::optional<SparseType> type;  ///< a hint of v2; the embedding that reads this input decides
  Width slot_num;
  std::optional<int64_t> max_feature_num_per_sample, max_nnz;  ///< limits as in the config: limits() resolves them
  std::optional<PerSlot> nnz_per_slot;           ///< v3.1 spelling of the two above, which decides where it is given
  std::optional<int64_t> keep_first, keep_last;  ///< number of kept keys in slots with more
  int64_t is_fixed_length = 0;

  /// The limits on keys, whichever fields give them. Errors: Error(bug) when none does; parsing reports that.
  RecordShape::Input limits() const;
  /// Most keys that one sample may have in all slots together.
  int64_t max_keys() const { return limits().max_keys; }
  /// Most keys that a batch gets of slot `s`, and of all slots of a sample together.
  int64_t kept_nnz(int64_t s) const { return kept_of(limits().most_of(s)); }
  int64_t kept_keys() const { return std::min(kept_places(), max_keys()); }
  /// The sum of kept_nnz over the slots, and the largest of them.
  int64_t kept_places() const;
  int64_t longest_kept() const { return kept_of(limits().max_nnz); }

 private:
  int64_t kept_of(int64_t nnz) const { return std::min({nnz, keep_first.value_or(nnz), keep_last.value_or(nnz)}); }
};

struct DataSection {
  std::string name;
  DataFormat format;
  std::string source, eval_source;  ///< files; mappings of feature_spec where given
  std::string feature_spec;         ///< empty: `format` says how samples are stored
  std::optional<Check> check;       ///< expected property of the files
  LabelPart label;                  ///< once the section is read, label_dim counts the weight of `sample_weight` too
  SampleWeightPart sample_weight;
  DensePart dense;
  std::vector<SparseInput> sparse;
  int64_t num_samples = 0, eval_num_samples = 0;
  std::vector<int64_t> slot_size_array;
  bool float_label_dense = false;
  std::optional<int64_t> num_workers;
  int64_t shuffle = 0;
  double negative_sampling = 1;                ///< the share of the training samples with label 0 that is kept
  std::optional<BadRecordPolicy> bad_records;  ///< none: the format decides
  std::optional<int64_t> max_bad_records;
  CachedBatches cache_eval_data;
  std::optional<AsyncParam> async_param;
  bool follow = false;                       ///< files are read once, as they are added to `source`
  std::optional<double> follow_idle;         ///< minutes without a new file after which the data end
  FormatOptions options;                     ///< the objects for one format alone
  std::vector<ColumnStatistics> statistics;  ///< no field: learned from dense columns before the data is opened
  std::vector<fs::path> first_files;         ///< no field: with `follow`, the files that exist when a run starts

  int64_t slots() const;
  /// Labels of a sample, without its weight.
  int64_t labels() const { return label.label_dim - sample_weight.given; }
};

/// The shape of the records of the section's data.
RecordShape record_shape(const DataSection&);

/// Capacities of a batch of `samples` rows (per rank), and what it keeps of longer slots. Errors: Error(config) when
/// one sparse input of the batch could hold more keys than 32-bit offsets can count.
BatchShape batch_shape(const DataSection&, int64_t samples);

}  // namespace hctr
