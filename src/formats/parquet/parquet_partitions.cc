#include "formats/parquet/parquet_partitions.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "formats/io/source_files.h"
#include "formats/parquet/parquet_file.h"

namespace hctr {
namespace {

/// A column with the same text in every row; an empty text is null.
class ConstantColumn : public ParquetColumn {
 public:
  ConstantColumn(const std::string& text, int64_t rows) : left_(rows) {
    const auto most = static_cast<size_t>(std::min(rows, kParquetPieceRows));
    ends_.assign(1, 0);
    for (size_t r = 0; r < most; ++r) {
      bytes_ += text;
      ends_.push_back(static_cast<int32_t>(bytes_.size()));
    }
    if (text.empty()) valid_.assign(most / 8 + 1, 0);
  }
  const char* read(ParquetValues& values, void*& owner) override {
    values = {};
    values.rows = std::min(left_, kParquetPieceRows);
    values.valid_rows = valid_.empty() ? nullptr : valid_.data();
    values.values = bytes_.data();
    values.text = ends_.data();
    left_ -= values.rows;
    owner = nullptr;
    return nullptr;
  }

 private:
  int64_t left_;
  std::string bytes_;
  std::vector<int32_t> ends_;
  std::vector<uint8_t> valid_;
};

class PartitionedFile : public ParquetFile {
 public:
  PartitionedFile(std::shared_ptr<ParquetFile> file, std::vector<Partition> partitions)
      : file_(std::move(file)),
        partitions_(std::move(partitions)),
        info_(file_->info()),
        fields_(info_.fields, info_.fields + info_.field_count) {
    for (const Partition& partition : partitions_)
      fields_.push_back({partition.name.c_str(), ParquetType::text, false, "partition"});
    info_.fields = fields_.data();
    info_.field_count = static_cast<int64_t>(fields_.size());
  }
  const ParquetFileInfo& info() const override { return info_; }
  const char* open_column(int64_t group, int64_t field, ParquetForm form, ParquetColumn*& column) override {
    const int64_t own = file_->info().field_count;
    if (field < own) return file_->open_column(group, field, form, column);
    column = new ConstantColumn(partitions_[static_cast<size_t>(field - own)].value, info_.groups[group].rows);
    return nullptr;
  }
  bool may_be_negative(int64_t field) const override {
    return field >= file_->info().field_count || file_->may_be_negative(field);
  }

 private:
  std::shared_ptr<ParquetFile> file_;
  std::vector<Partition> partitions_;
  ParquetFileInfo info_;
  std::vector<ParquetField> fields_;
};

}  // namespace

std::shared_ptr<ParquetFile> with_partitions(std::shared_ptr<ParquetFile> file, const fs::path& path) {
  std::vector<Partition> partitions = partitions_in(path);
  std::erase_if(partitions, [&](const Partition& partition) {
    const ParquetFileInfo& info = file->info();
    return std::any_of(info.fields, info.fields + info.field_count,
                       [&](const ParquetField& field) { return partition.name == field.name; });
  });
  if (partitions.empty()) return file;
  return std::make_shared<PartitionedFile>(std::move(file), std::move(partitions));
}

}  // namespace hctr
