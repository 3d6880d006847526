#include <arrow/io/interfaces.h>
#include <arrow/record_batch.h>
#include <arrow/util/thread_pool.h>
#include <parquet/arrow/writer.h>

#include "plugins/parquet/arrow_calls.h"
#include "plugins/parquet/arrow_file.h"
#include "plugins/parquet/arrow_values.h"

namespace hctr {
namespace {

/// Passes bytes to the program, which writes the file and renames it into place when complete.
class SinkStream : public arrow::io::OutputStream {
 public:
  explicit SinkStream(ParquetSink sink) : sink_(sink) {}
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<int64_t> Tell() const override { return bytes_; }
  arrow::Status Write(const void* bytes, int64_t count) override {
    if (!sink_.write(sink_.self, bytes, count)) return arrow::Status::IOError("the file cannot be written");
    bytes_ += count;
    return arrow::Status::OK();
  }

 private:
  ParquetSink sink_;
  int64_t bytes_ = 0;
  bool closed_ = false;
};

class ArrowWriter : public ParquetWriter {
 public:
  arrow::Status open(const ParquetField* fields, int64_t count, int64_t threads, ParquetSink sink) {
    arrow::FieldVector columns;
    for (int64_t i = 0; i < count; ++i) {
      names_.emplace_back(fields[i].name);
      fields_.push_back(fields[i]);
      columns.push_back(arrow::field(names_.back(), arrow_type(fields[i]), fields[i].nullable));
    }
    schema_ = arrow::schema(columns);
    parquet::WriterProperties::Builder properties;
    properties.memory_pool(arrow::system_memory_pool());
    properties.compression(parquet::Compression::SNAPPY);
    properties.enable_page_checksum();
    for (int64_t i = 0; i < count; ++i)
      if (fields[i].type == ParquetType::f32) properties.disable_dictionary(names_[static_cast<size_t>(i)]);
    properties.max_row_group_length(std::numeric_limits<int32_t>::max());  // the caller decides about row groups
    parquet::ArrowWriterProperties::Builder columns_of;
    if (threads > 1) {
      ARROW_ASSIGN_OR_RAISE(pool_, arrow::internal::ThreadPool::Make(static_cast<int>(threads)));
      columns_of.set_use_threads(true)->set_executor(pool_.get());
    }
    ARROW_ASSIGN_OR_RAISE(writer_, parquet::arrow::FileWriter::Open(*schema_, arrow::system_memory_pool(),
                                                                    std::make_shared<SinkStream>(sink),
                                                                    properties.build(), columns_of.build()));
    return arrow::Status::OK();
  }

  const char* write(const ParquetValues* columns, int64_t rows) override {
    return told([&] {
      arrow::ArrayVector arrays;
      for (size_t i = 0; i < fields_.size(); ++i) arrays.push_back(arrow_array(fields_[i], columns[i]));
      // only in a buffered row group, several threads can encode the columns
      ARROW_RETURN_NOT_OK(writer_->NewBufferedRowGroup());
      return writer_->WriteRecordBatch(*arrow::RecordBatch::Make(schema_, rows, arrays));
    });
  }

  const char* finish() override {
    return told([&] { return writer_->Close(); });
  }

 private:
  std::vector<std::string> names_;
  std::vector<ParquetField> fields_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::internal::ThreadPool> pool_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
};

}  // namespace

const char* create_arrow_writer(const ParquetField* fields, int64_t count, int64_t threads, ParquetSink sink,
                                ParquetWriter** writer) {
  return told([&] {
    auto made = std::make_unique<ArrowWriter>();
    ARROW_RETURN_NOT_OK(made->open(fields, count, threads, sink));
    *writer = made.release();
    return arrow::Status::OK();
  });
}

}  // namespace hctr
