#include "prepare/write/parquet_writer.h"

#include <optional>

#include "core/base/expect.h"
#include "formats/data/norm_record.h"
#include "formats/io/file_list.h"
#include "formats/parquet/parquet_file.h"
#include "formats/parquet/parquet_output.h"

namespace hctr {

struct ParquetFileWriter::State {
  /// Collected rows of one slot.
  struct SlotColumn {
    std::vector<uint32_t> narrow;
    std::vector<int64_t> wide;
    std::vector<int32_t> list;  // [rows + 1] offsets, for list columns
  };

  State(fs::path path, const ParquetStyle& of)
      : style(of), file(std::move(path)), numbers(style.labels.size() + style.dense.size()), slots(style.slots.size()) {
    HCTR_EXPECT(style.record.check == Check::none && style.lists.size() == slots.size(),
                "Parquet needs a style without check sums and with one list flag per slot, found ", style.lists.size(),
                " of ", slots.size(), " slots");
    for (const auto* names : {&style.labels, &style.dense})
      for (const std::string& name : *names) fields.push_back({name.c_str(), ParquetType::f32, false, ""});
    for (size_t s = 0; s < slots.size(); ++s)
      fields.push_back({style.slots[s].c_str(), style.record.key_bytes == 4 ? ParquetType::u32 : ParquetType::i64,
                        style.lists[s], ""});
    output.emplace(file, fields, style.threads);
    clear();
  }

  void clear() {
    rows = 0;
    for (auto& column : numbers) column.clear();
    for (SlotColumn& slot : slots) {
      slot.narrow.clear();
      slot.wide.clear();
      slot.list.assign(1, 0);
    }
  }

  const std::byte* append_record(const std::byte* at) {
    for (auto& column : numbers) {
      column.push_back(load<float>(at));
      at += 4;
    }
    for (size_t s = 0; s < slots.size(); ++s) {
      const auto nnz = load<int32_t>(at);
      at += 4;
      HCTR_EXPECT(nnz == 1 || style.lists[s], "column '", style.slots[s], "' is not a list, and a row has ", nnz,
                  " keys");
      for (int32_t k = 0; k < nnz; ++k, at += style.record.key_bytes) {
        if (style.record.key_bytes == 4)
          slots[s].narrow.push_back(load<uint32_t>(at));
        else
          slots[s].wide.push_back(load<int64_t>(at));
      }
      if (style.lists[s]) slots[s].list.push_back(slots[s].list.back() + nnz);
    }
    ++rows;
    return at;
  }

  void write_group() {
    if (rows == 0) return;
    std::vector<ParquetValues> columns;
    for (const auto& column : numbers) columns.emplace_back(ParquetValues{.rows = rows, .values = column.data()});
    for (size_t s = 0; s < slots.size(); ++s) {
      const void* keys =
          style.record.key_bytes == 4 ? static_cast<const void*>(slots[s].narrow.data()) : slots[s].wide.data();
      columns.emplace_back(
          ParquetValues{.rows = rows, .list = style.lists[s] ? slots[s].list.data() : nullptr, .values = keys});
    }
    output->write(columns, rows);
    written += rows;
    clear();
  }

  ParquetStyle style;
  AtomicFile file;
  std::vector<ParquetField> fields;
  std::vector<std::vector<float>> numbers;
  std::vector<SlotColumn> slots;
  int64_t rows = 0, written = 0;  // `rows`: collected and not written yet
  std::optional<ParquetOutput> output;
};

ParquetFileWriter::ParquetFileWriter(fs::path path, const ParquetStyle& style)
    : state_(std::make_unique<State>(std::move(path), style)) {}
ParquetFileWriter::~ParquetFileWriter() = default;

void ParquetFileWriter::append(std::span<const std::byte> bytes, int64_t records) {
  const std::byte* at = bytes.data();
  for (int64_t i = 0; i < records; ++i) {
    at = state_->append_record(at);
    if (state_->rows == kParquetGroupRows) state_->write_group();
  }
  HCTR_EXPECT(at == bytes.data() + bytes.size(), "records of ", at - bytes.data(), " bytes in ", bytes.size());
}

int64_t ParquetFileWriter::records() const { return state_->written + state_->rows; }
const fs::path& ParquetFileWriter::path() const { return state_->file.path(); }

void ParquetFileWriter::commit() {
  state_->write_group();
  state_->output->finish();
  state_->file.commit();
}

ParquetSetWriter::ParquetSetWriter(fs::path folder, fs::path list, ParquetStyle style,
                                   std::function<std::string(int64_t)> name)
    : folder_(std::move(folder)), list_(std::move(list)), style_(std::move(style)), name_(std::move(name)) {
  parquet_plugin();  // if the plug-in is missing, fails here, before older results are removed
  metadata_.path = folder_ / kParquetMetadata;
  for (const fs::path& old : {list_, metadata_.path}) {
    std::error_code error;
    fs::remove(old, error);
    if (error) throw Error(Kind::io, cat("cannot remove '", old.string(), "': ", error.message()));
  }
  int64_t index = 0;
  for (const auto& [names, columns] : {std::pair{&style_.labels, &metadata_.labels},
                                       {&style_.dense, &metadata_.conts},
                                       {&style_.slots, &metadata_.cats}})
    for (const std::string& column : *names) columns->push_back({column, index++});
}

void ParquetSetWriter::next_file() {
  finish_file();
  open_ = std::make_unique<ParquetFileWriter>(folder_ / name_(static_cast<int64_t>(files_.size())), style_);
}

void ParquetSetWriter::finish_file() {
  if (!open_) return;
  open_->commit();
  files_.push_back(open_->path());
  metadata_.rows[open_->path().filename().string()] = open_->records();
  open_.reset();
}

std::vector<fs::path> ParquetSetWriter::finish() {
  finish_file();
  if (files_.empty()) return files_;
  write_parquet_metadata(metadata_);
  write_file_list(list_, files_, true);
  return files_;
}

}  // namespace hctr
