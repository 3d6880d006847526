#include "plugins/parquet/arrow_file.h"

#include <arrow/array/concatenate.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/statistics.h>

#include <algorithm>
#include <deque>

#include "plugins/parquet/arrow_calls.h"
#include "plugins/parquet/arrow_values.h"
#include "plugins/parquet/block_pool.h"

namespace hctr {
namespace {

constexpr int64_t kStreamBytes = 256 << 10;  // bytes read at a time from a column

/// Gets the batches of one column in one row group. Older Arrow versions return the reader through an argument.
template <class Reader>
arrow::Status batches_of(Reader& reader, int group, int leaf, std::shared_ptr<arrow::RecordBatchReader>& batches) {
  const std::vector<int> groups = {group}, leaves = {leaf};
  if constexpr (requires { reader.GetRecordBatchReader(groups, leaves).ValueOrDie(); }) {
    ARROW_ASSIGN_OR_RAISE(batches, reader.GetRecordBatchReader(groups, leaves));
    return arrow::Status::OK();
  } else {
    return reader.GetRecordBatchReader(groups, leaves, &batches);
  }
}

class ArrowColumn : public ParquetColumn {
 public:
  ArrowColumn(std::shared_ptr<arrow::RecordBatchReader> batches, ParquetForm form, int64_t rows, int64_t piece)
      : batches_(std::move(batches)), form_(form), rows_(rows), piece_(piece) {}

  const char* read(ParquetValues& values, void*& owner) override {
    return told([&] {
      ARROW_ASSIGN_OR_RAISE(const std::shared_ptr<arrow::Array> array, next(std::min(piece_, rows_)));
      rows_ -= array->length();
      auto kept = std::make_unique<ValuesOwner>();
      ARROW_RETURN_NOT_OK(describe(array, form_, values, *kept));
      owner = kept.release();
      return arrow::Status::OK();
    });
  }

 private:
  /// Reads the next `rows` rows. Arrow may return these rows in several batches.
  arrow::Result<std::shared_ptr<arrow::Array>> next(int64_t rows) {
    arrow::ArrayVector parts;
    for (int64_t have = 0; have < rows;) {
      if (!left_ || left_->length() == 0) {  // a batch may be empty
        std::shared_ptr<arrow::RecordBatch> batch;
        ARROW_RETURN_NOT_OK(batches_->ReadNext(&batch));
        if (!batch)
          return arrow::Status::Invalid("the column ends ", rows_ - have,
                                        " rows before the row group "
                                        "begins");
        left_ = batch->column(0);
        continue;
      }
      const int64_t take = std::min(rows - have, left_->length());
      parts.push_back(left_->Slice(0, take));
      // keep no reference to a batch whose rows are all in `parts`
      left_ = take < left_->length() ? left_->Slice(take) : nullptr;
      have += take;
    }
    if (parts.size() == 1) return parts[0];
    return arrow::Concatenate(parts);
  }

  std::shared_ptr<arrow::RecordBatchReader> batches_;
  std::shared_ptr<arrow::Array> left_;
  ParquetForm form_;
  int64_t rows_, piece_;  // rows_: remaining rows of the row group
};

class ArrowFile : public ParquetFile {
 public:
  arrow::Status open(const char* path, int64_t piece_rows) {
    ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path));
    arrow::MemoryPool* const pool = block_pool();
    parquet::ReaderProperties bytes(pool);
    bytes.enable_buffered_stream();  // do not load a whole column chunk
    bytes.set_buffer_size(kStreamBytes);
    bytes.set_page_checksum_verification(true);  // verifies page checksums, if the file has any
    parquet::ArrowReaderProperties values;
    values.set_batch_size(piece_rows);
    values.set_use_threads(false);
    values.set_pre_buffer(false);
    piece_rows_ = piece_rows;
    parquet::arrow::FileReaderBuilder builder;
    ARROW_RETURN_NOT_OK(builder.Open(std::move(file), bytes));
    ARROW_RETURN_NOT_OK(builder.memory_pool(pool)->properties(values)->Build(&reader_));
    return describe_file();
  }

  const ParquetFileInfo& info() const override { return info_; }

  const char* open_column(int64_t group, int64_t field, ParquetForm form, ParquetColumn*& column) override {
    return told([&] {
      // Several threads may call batches_of() concurrently: Arrow itself makes concurrent calls to prefetch row groups.
      std::shared_ptr<arrow::RecordBatchReader> batches;
      ARROW_RETURN_NOT_OK(batches_of(*reader_, static_cast<int>(group), leaves_[static_cast<size_t>(field)], batches));
      column = new ArrowColumn(std::move(batches), form, groups_[static_cast<size_t>(group)].rows, piece_rows_);
      return arrow::Status::OK();
    });
  }

  bool may_be_negative(int64_t field) const override {
    const std::shared_ptr<parquet::FileMetaData> metadata = reader_->parquet_reader()->metadata();
    for (int g = 0; g < metadata->num_row_groups(); ++g) {
      const auto chunk = metadata->RowGroup(g)->ColumnChunk(leaves_[static_cast<size_t>(field)]);
      if (chunk->type() != parquet::Type::INT32 || !chunk->is_stats_set()) return true;
      const auto statistics = std::static_pointer_cast<parquet::Int32Statistics>(chunk->statistics());
      if (!statistics) return true;
      const bool none = statistics->HasNullCount() && statistics->null_count() == chunk->num_values();
      if (!none && (!statistics->HasMinMax() || statistics->min() < 0)) return true;
    }
    return false;
  }

 private:
  static void add_leaves(const parquet::arrow::SchemaField& field, std::vector<int>& leaves) {
    if (field.is_leaf()) leaves.push_back(field.column_index);
    for (const auto& child : field.children) add_leaves(child, leaves);
  }
  const char* keep(std::string text) { return texts_.emplace_back(std::move(text)).c_str(); }

  arrow::Status describe_file() {
    const std::shared_ptr<parquet::FileMetaData> metadata = reader_->parquet_reader()->metadata();
    for (const parquet::arrow::SchemaField& field : reader_->manifest().schema_fields) {
      std::vector<int> leaves;
      add_leaves(field, leaves);
      ParquetField known{keep(field.field->name()), ParquetType::other, false, keep(field.field->type()->ToString())};
      if (leaves.size() == 1) known.type = type_of(*field.field->type(), known.list);
      fields_.push_back(known);
      leaves_.push_back(leaves.empty() ? 0 : leaves[0]);
    }
    for (int g = 0; g < metadata->num_row_groups(); ++g) {
      const auto group = metadata->RowGroup(g);
      int64_t bytes = 0;
      for (int c = 0; c < group->num_columns(); ++c) bytes += group->ColumnChunk(c)->total_compressed_size();
      groups_.push_back({group->num_rows(), bytes});
      if (group->num_rows() < 0) return arrow::Status::Invalid("row group ", g, " has ", group->num_rows(), " rows");
    }
    info_ = {.rows = 0,
             .field_count = static_cast<int64_t>(fields_.size()),
             .group_count = static_cast<int64_t>(groups_.size()),
             .fields = fields_.data(),
             .groups = groups_.data(),
             .written_by = keep(metadata->created_by())};
    for (const ParquetGroup& group : groups_) info_.rows += group.rows;
    if (info_.rows != metadata->num_rows())
      return arrow::Status::Invalid("the row groups have ", info_.rows, " rows, but the footer states ",
                                    metadata->num_rows());
    if (!groups_.empty() && metadata->num_columns() > 0)
      info_.packed = keep(arrow::util::Codec::GetCodecAsString(metadata->RowGroup(0)->ColumnChunk(0)->compression()));
    return arrow::Status::OK();
  }

  std::unique_ptr<parquet::arrow::FileReader> reader_;
  int64_t piece_rows_ = 0;
  ParquetFileInfo info_;
  std::vector<ParquetField> fields_;
  std::vector<int> leaves_;  // [field] index of the field's column in the file
  std::vector<ParquetGroup> groups_;
  std::deque<std::string> texts_;
};

}  // namespace

const char* open_arrow_file(const char* path, int64_t piece_rows, ParquetFile** file) {
  return told([&] {
    auto opened = std::make_unique<ArrowFile>();
    ARROW_RETURN_NOT_OK(opened->open(path, piece_rows));
    *file = opened.release();
    return arrow::Status::OK();
  });
}

}  // namespace hctr
