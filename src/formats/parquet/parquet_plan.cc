#include "formats/parquet/parquet_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/expect.h"
#include "formats/parquet/parquet_options.h"

namespace hctr {
namespace {

using Column = ParquetMetadata::Column;

class Planner {
 public:
  Planner(const DataSection& section, const ParquetMetadata* metadata, const fs::path& file, const Log& log)
      : options_(section.options.get<ParquetOptions>()),
        statistics_(section.statistics),
        metadata_(metadata),
        file_(file),
        log_(log) {}

  /// Sets the columns of labels and dense values. If the section does not name them, they are the columns of "labels"
  /// followed by "conts" in _metadata.json, in order.
  void numbers(ParquetPlan& plan) {
    const auto labels = static_cast<size_t>(plan.shape.label_dim), dense = static_cast<size_t>(plan.shape.dense_dim);
    std::vector<Column> columns;
    if (options_.labels.empty() || (options_.dense.empty() && dense > 0)) {
      const ParquetMetadata& metadata = needed(options_.labels.empty() ? "labels" : "dense values");
      columns = metadata.labels;
      columns.insert(columns.end(), metadata.conts.begin(), metadata.conts.end());
      if (options_.labels.empty() && options_.dense.empty())
        expect(columns.size(), labels + dense, "\"labels\" and \"conts\" name", "labels and dense values");
    }
    if (!options_.labels.empty()) {
      for (const LabelColumn& label : options_.labels) {
        ParquetNumber& number = plan.labels.emplace_back();
        number.rule.column = label.column;
        number.text = true;
        number.label = label;
        number.label.number_format = label.notation().within(options_.number_format).format;
      }
    } else {
      expect(columns.size(), labels, "\"labels\" and \"conts\" name", "labels");
      for (size_t i = 0; i < labels; ++i) plan.labels.push_back({{.column = columns[i].name}, false, columns[i].index});
    }
    if (!options_.dense.empty()) {
      for (DenseRule& rule : dense_rules(options_.dense, statistics_, options_.number_format)) {
        ParquetNumber& number = plan.dense.emplace_back(ParquetNumber{std::move(rule), true, -1});
        const NumberNotation notation = number.rule.notation.value_or(NumberNotation());
        number.label.number_format = notation.format;
        number.label.unit = notation.unit;
      }
    } else if (dense > 0) {
      const size_t first = options_.labels.empty() ? labels : metadata_->labels.size();
      expect(columns.size(), first + dense, "\"labels\" and \"conts\" name", "labels and dense values");
      for (size_t i = first; i < first + dense; ++i)
        plan.dense.push_back({{.column = columns[i].name}, false, columns[i].index});
    }
    for (ParquetNumber& number : plan.dense)
      if (!number.rule.fallback && options_.default_dense)
        number.rule.fallback = static_cast<float>(*options_.default_dense);
  }

  void slots(ParquetPlan& plan) {
    const auto slots = static_cast<size_t>(plan.shape.slots());
    if (!options_.slots.empty()) {
      for (SlotRule& rule : slot_rules(options_.slots, options_.hash_seed, options_.grammar))
        plan.slots.push_back({std::move(rule), -1, 0});
    } else if (slots > 0) {
      const std::vector<Column>& cats = needed("slots").cats;
      expect(cats.size(), slots, "\"cats\" names", "slots");
      if (cats.size() > slots)
        log_.warning("'", metadata_->path.string(), "': \"cats\" names ", cats.size(),
                     " columns, but the Data layer has ", slots, " slots: only the first columns are read");
      for (size_t i = 0; i < slots; ++i)
        plan.slots.push_back({slot_rule(cats[i].name, static_cast<int64_t>(i), options_.hash_seed), cats[i].index, 0});
    }
    for (ParquetSlot& slot : plan.slots)
      if (!slot.rule.fallback) slot.rule.fallback = options_.default_key;
  }

 private:
  const ParquetMetadata& needed(const char* what) const {
    if (metadata_) return *metadata_;
    throw Error(Kind::data, cat("which columns are the ", what, "? There is no ", kParquetMetadata, " next to '",
                                file_.string(), "', and \"parquet\" of the Data layer does not name these columns"));
  }
  void expect(size_t found, size_t wanted, const char* names, const char* what) const {
    if (found < wanted)
      throw Error(Kind::data, cat("'", metadata_->path.string(), "': ", names, " ", found,
                                  " columns, but the Data layer has ", wanted, " ", what));
  }

  const ParquetOptions& options_;
  const std::vector<ColumnStatistics>& statistics_;
  const ParquetMetadata* metadata_;
  const fs::path& file_;
  const Log& log_;
};

}  // namespace

ParquetPlan parquet_plan(const DataSection& section, const ParquetMetadata* metadata, const fs::path& first_file,
                         KeyWidth width, const Log& log) {
  ParquetPlan plan;
  plan.shape = record_shape(section);
  plan.most_key = width == KeyWidth::u32 ? std::numeric_limits<uint32_t>::max() : std::numeric_limits<uint64_t>::max();
  plan.sized = !section.slot_size_array.empty();
  Planner planner(section, metadata, first_file, log);
  planner.numbers(plan);
  planner.slots(plan);
  const auto& options = section.options.get<ParquetOptions>();
  plan.trim = options.trim;
  plan.missing = options.missing;
  std::vector<int64_t> offsets(section.slot_size_array.size());
  std::exclusive_scan(section.slot_size_array.begin(), section.slot_size_array.end(), offsets.begin(), int64_t{0});
  for (size_t s = 0; s < offsets.size() && s < plan.slots.size(); ++s)
    plan.slots[s].offset = offsets[static_cast<size_t>(plan.slots[s].rule.first)];
  return plan;
}

void let_columns_lack(ParquetPlan& plan, const DataSection& section, const Source& source) {
  for (size_t i = 0; i < plan.labels.size(); ++i) {
    plan.labels[i].without_column = label_without_column(section, source, i);
    if (source.labels_optional) plan.labels[i].rule.fallback = plan.labels[i].without_column;
  }
  for (size_t s = 0; s < plan.slots.size() && s < source.slots_optional.size(); ++s)
    plan.slots[s].optional = source.slots_optional[s];
}

std::vector<int64_t> parquet_fields(const ParquetPlan& plan, const ParquetFileInfo& info, const fs::path& file,
                                    const fs::path& metadata) {
  std::vector<int64_t> fields;
  for (size_t c = 0; c < plan.columns(); ++c) {
    const std::string& name = plan.name(c);
    int64_t at = 0;
    while (at < info.field_count && name != info.fields[at].name) ++at;
    if (at == info.field_count && plan.optional(c)) {
      fields.push_back(kNoField);
      continue;
    }
    if (at == info.field_count) {
      std::string all;
      for (int64_t i = 0; i < info.field_count; ++i) all += cat(i == 0 ? "" : ", ", "'", info.fields[i].name, "'");
      throw Error(Kind::data,
                  cat("'", file.string(), "': there is no column '", name, "'; there are ", all.substr(0, 1000)));
    }
    if (plan.index(c) >= 0 && plan.index(c) != at)
      throw Error(Kind::data, cat("'", metadata.string(), "' says that column '", name, "' has the index ",
                                  plan.index(c), ", but in '", file.string(), "' the index is ", at));
    if (const std::string problem = plan.type_problem(c, info.fields[at]); !problem.empty())
      throw Error(Kind::data, cat("'", file.string(), "': column '", name, "' ", problem));
    fields.push_back(at);
  }
  return fields;
}

}  // namespace hctr
