#include "formats/parquet/parquet_set.h"

#include <algorithm>
#include <map>

#include "core/base/expect.h"
#include "formats/data/section_checks.h"
#include "formats/io/memory_source.h"
#include "formats/io/set_files.h"
#include "formats/parquet/memory_table.h"
#include "formats/parquet/parquet_plan.h"
#include "formats/parquet/parquet_row_group.h"
#include "formats/parquet/parquet_rows.h"
#include "formats/parquet/parquet_slot_types.h"
#include "formats/parquet/parquet_values.h"

namespace hctr {
namespace {

/// A piece of a row group for one parser. If this object is destroyed before the piece is read, later pieces fail
/// instead of waiting for the piece.
struct PieceSource {
  PieceSource(std::shared_ptr<ParquetRowGroup> of, int64_t at) : group(std::move(of)), piece(at) {}
  ~PieceSource() {
    if (!done) group->fail(piece);
  }
  PieceSource(const PieceSource&) = delete;

  std::shared_ptr<ParquetRowGroup> group;
  int64_t piece;
  bool done = false;  // all columns were read
};

class ParquetCutter : public Cutter {
 public:
  /// Errors: Error(data) if `from` is not between two pieces.
  ParquetCutter(std::shared_ptr<ParquetFile> file, fs::path path, std::vector<ParquetRead> columns, FilePosition from)
      : file_(std::move(file)), path_(std::move(path)), columns_(std::move(columns)) {
    const ParquetFileInfo& info = file_->info();
    while (at_ < info.group_count && before_ + info.groups[at_].rows <= from.record) before_ += info.groups[at_++].rows;
    row_ = from.record - before_;
    if (row_ < 0 || row_ % kParquetPieceRows != 0 || (at_ == info.group_count && row_ > 0))
      throw Error(Kind::data, cat("'", path_.string(), "': a reader cannot resume at row ", from.record + 1));
  }

  bool next(Chunk& chunk) override {
    const ParquetFileInfo& info = file_->info();
    while (at_ < info.group_count && row_ == info.groups[at_].rows) {
      before_ += info.groups[at_++].rows;
      row_ = 0;
      group_.reset();
    }
    if (at_ == info.group_count) return false;
    const ParquetGroup& group = info.groups[at_];
    const int64_t piece = row_ / kParquetPieceRows;
    if (!group_) group_ = std::make_shared<ParquetRowGroup>(file_, path_, at_, columns_, piece);
    chunk.begin = {.record = before_ + row_, .offset = 0};
    chunk.records = std::min(kParquetPieceRows, group.rows - row_);
    chunk.bytes = static_cast<int64_t>(static_cast<double>(group.bytes) * static_cast<double>(chunk.records) /
                                       static_cast<double>(group.rows));
    chunk.source = std::make_shared<PieceSource>(group_, piece);
    row_ += chunk.records;
    return true;
  }

 private:
  std::shared_ptr<ParquetFile> file_;
  fs::path path_;
  std::vector<ParquetRead> columns_;
  std::shared_ptr<ParquetRowGroup> group_;
  // at_: index of the row group; before_: number of rows before the row group; row_: next row in it
  int64_t at_ = 0, before_ = 0, row_ = 0;
};

class ParquetParser : public Parser {
 public:
  ParquetParser(const ParquetPlan& plan, std::optional<BadRecordPolicy> policy)
      : plan_(plan), policy_(policy), rows_(plan) {}

  BadRecords parse_rows(Chunk& chunk, const RowSelection& rows, SampleBlock& block) override {
    const auto reading = std::static_pointer_cast<PieceSource>(std::exchange(chunk.source, nullptr));
    HCTR_EXPECT(reading, "a piece of a row group can be parsed only once");
    ParquetRowGroup& group = *reading->group;
    const int64_t count = rows.count(chunk.records);
    rows_.start(count, block);
    if (count == 0) group.skip(reading->piece);
    for (size_t c = 0; count > 0 && c < plan_.columns(); ++c) {
      if (!group.has(c)) {
        rows_.add_missing(c);
        continue;
      }
      const ParquetPiece piece = group.read(c, reading->piece);
      const ParquetField& field = group.field(c);
      HCTR_EXPECT(piece.values.rows == chunk.records, "column '", field.name, "' has ", piece.values.rows, " rows of ",
                  chunk.records);
      // in a shuffled set, many spans have a single row, so gather the rows first
      if (rows.some() && rows.spans().size() > 1)
        if (const auto gathered = gather_rows(field.type, piece.values, rows.spans(), gathered_)) {
          rows_.add(c, field, *gathered);
          continue;
        }
      rows.for_each(chunk.records, [&](int64_t begin, int64_t end) {
        rows_.add(c, field, part_of(field.type, piece.values, begin, end));
      });
    }
    reading->done = true;
    BadRecords bad = rows_.finish([&](int64_t i) {
      const int64_t row = rows.row(i);
      return cat("'", group.path().string(), "': row ", chunk.begin.record + row + 1, " (row group ", group.group() + 1,
                 ", its row ", reading->piece * kParquetPieceRows + row + 1, ")");
    });
    if (bad.count > 0 && policy_ != BadRecordPolicy::skip) throw Error(Kind::data, bad.first);
    for (BadRecord& one : bad.records) {
      one.file = group.path().string();
      one.record = chunk.begin.record + rows.row(one.record) + 1;
    }
    return bad;
  }

 private:
  const ParquetPlan& plan_;
  std::optional<BadRecordPolicy> policy_;
  ParquetRows rows_;
  std::vector<std::byte> gathered_;
};

class ParquetSet : public SampleSet {
 public:
  ParquetSet(const DataSection& section, const Source& source, KeyWidth width, const Log& log)
      : policy_(section.bad_records) {
    const bool in_memory = is_in_memory(source.path);
    if (!in_memory) parquet_plugin();  // reports a missing plug-in before any other error
    files_ = source.files.empty() ? parquet_files(source.path, log) : source.files;
    std::map<fs::path, std::optional<ParquetMetadata>> metadata;
    ParquetSlotTypes types;
    for (const fs::path& path : files_) {
      const fs::path folder = path.parent_path();
      if (!metadata.contains(folder)) metadata[folder] = in_memory ? std::nullopt : read_parquet_metadata(folder);
      const std::optional<ParquetMetadata>& in_folder = metadata[folder];
      if (fields_.empty()) plan_ = parquet_plan(section, in_folder ? &*in_folder : nullptr, path, width, log);
      plan_.kept = source.keep;
      const std::shared_ptr<ParquetFile> file = open_parquet(path);
      if (fields_.empty()) let_columns_lack(plan_, section, source);
      if (in_folder) check_rows(*in_folder, path, file->info().rows);
      fields_.push_back(parquet_fields(plan_, file->info(), path, in_folder ? in_folder->path : fs::path()));
      if (section.options.get<ParquetOptions>().as_text || !plan_.keys_fit_u32(*file, fields_.back())) key_bytes_ = 8;
      types.add(plan_, file->info(), fields_.back(), path);
      samples_ += file->info().rows;
    }
    look_for_labels(section, source, log);
    const std::vector<SlotKeyRule>& known = section.options.get<ParquetOptions>().known_rules;
    slot_key_rules_ = types.decide(plan_, known);
    expect_slot_key_rules(known, "the training data of the model", slot_key_rules_, cat("'", source.path, "'"));
    if (section.options.get<ParquetOptions>().rules_known)
      expect_same_times(known, "the training data of the model", slot_key_rules_, cat("'", source.path, "'"));
    expect_records(samples_, source);
  }

  const std::vector<fs::path>& files() const override { return files_; }
  int64_t samples() const override { return samples_; }
  std::unique_ptr<Cutter> open(size_t file, FilePosition from) override {
    std::vector<ParquetRead> columns;
    for (size_t c = 0; c < plan_.columns(); ++c) columns.push_back({fields_[file][c], plan_.form(c)});
    return std::make_unique<ParquetCutter>(open_parquet(files_[file]), files_[file], std::move(columns), from);
  }
  std::unique_ptr<Parser> parser() const override { return std::make_unique<ParquetParser>(plan_, policy_); }
  int key_bytes() const override { return key_bytes_; }
  bool has_labels() const override { return has_labels_; }
  std::vector<SlotKeyRule> slot_key_rules() const override { return slot_key_rules_; }
  bool keeps_columns() const override { return true; }
  std::string facts(size_t file) const override {
    const std::shared_ptr<ParquetFile> opened = open_parquet(files_[file]);
    const ParquetFileInfo& info = opened->info();
    return cat("Parquet, ", info.group_count, info.group_count == 1 ? " row group, " : " row groups, ",
               info.field_count, " columns, ", info.packed, ", written by ", info.written_by);
  }
  int64_t bytes(size_t file) const override {
    return is_in_memory(files_[file].string()) ? memory_source(files_[file])->bytes() : SampleSet::bytes(file);
  }
  bool can_select_rows() const override { return policy_ != BadRecordPolicy::skip; }
  bool can_select_single_rows() const override { return true; }
  std::optional<int64_t> exact_samples() const override { return samples_; }

 private:
  void look_for_labels(const DataSection& section, const Source& source, const Log& log) {
    const auto labels = static_cast<size_t>(section.labels());
    has_labels_ = std::any_of(fields_[0].begin(), fields_[0].begin() + static_cast<ptrdiff_t>(labels),
                              [](int64_t field) { return field != kNoField; });
    if (!section.sample_weight.given || source.labels_optional) return;
    for (size_t f = 0; f < files_.size(); ++f)
      if ((fields_[f][labels] == kNoField) != (fields_[0][labels] == kNoField))
        fail_mixed_weights(files_[0], files_[f]);
    if (fields_[0][labels] == kNoField) note_missing_weight(plan_.name(labels), files_[0], log);
  }
  static void check_rows(const ParquetMetadata& metadata, const fs::path& path, int64_t rows) {
    const auto stated = metadata.rows.find(path.filename().string());
    if (stated == metadata.rows.end())
      throw Error(Kind::data, cat("'", metadata.path.string(), "': \"file_stats\" does not name '",
                                  path.filename().string(), "'; does _metadata.json belong to other data?"));
    if (stated->second != rows)
      throw Error(Kind::data, cat("'", metadata.path.string(), "' says that '", path.filename().string(), "' has ",
                                  stated->second, " rows; it has ", rows));
  }

  std::optional<BadRecordPolicy> policy_;
  std::vector<fs::path> files_;
  ParquetPlan plan_;
  std::vector<std::vector<int64_t>> fields_;  // [files] field index of each column of the plan
  std::vector<SlotKeyRule> slot_key_rules_;
  int64_t samples_ = 0;
  bool has_labels_ = true;
  int key_bytes_ = 4;
};

/// Widths are derived only from the column lists in the section; omitted lists are in _metadata.json. A slot is assumed
/// to have one key, because only the files show whether its column contains lists.
StatedWidths parquet_widths(const DataSection& section) {
  const auto& options = section.options.get<ParquetOptions>();
  StatedWidths widths;
  if (!options.labels.empty()) widths.label_dim = static_cast<int64_t>(options.labels.size());
  if (!options.dense.empty()) widths.dense_dim = columns_of(options.dense);
  if (!options.slots.empty()) widths.nnz = nnz_of(options.slots);
  return widths;
}

void check_parquet_section(const DataSection& section, const std::string& pointer, Problems& problems) {
  const auto& options = section.options.get<ParquetOptions>();
  const auto compare = [&](const char* field, int64_t stated, int64_t columns, const char* list) {
    if (columns > 0 && stated != columns)
      problems.error(pointer + field, cat("is ", stated, ", but ", list, " of \"parquet\" names ", columns,
                                          columns == 1 ? " column" : " columns"));
  };
  compare("/label/label_dim", section.labels(),
          static_cast<int64_t>(options.labels.size()) - section.sample_weight.given, "\"labels\"");
  compare("/dense/dense_dim", section.dense.dense_dim, columns_of(options.dense), "\"dense\"");
  if (const int64_t columns = columns_of(options.slots); columns > 0 && columns != section.slots())
    problems.error(
        pointer + "/sparse",
        cat("has ", section.slots(), " slots in total, but \"slots\" of \"parquet\" names ", columns, " columns"));
  check_slot_sizes(section, pointer, problems);
}

}  // namespace

std::unique_ptr<SampleSet> open_parquet_set(const DataSection& section, const Source& source, KeyWidth width,
                                            const Log& log) {
  return std::make_unique<ParquetSet>(section, source, width, log);
}

FormatType parquet_format() {
  return {.format = kParquetFormat,
          .source_text = "the path of a data file, of a file list or of a folder",
          .files = parquet_files,
          .object = format_object("parquet", parquet_options_schema(),
                                  "for Parquet data: the roles of columns and how nulls are replaced"),
          .columns = stated_columns<ParquetOptions>,
          .widths = parquet_widths,
          .check = check_parquet_section,
          .open = open_parquet_set};
}

}  // namespace hctr
