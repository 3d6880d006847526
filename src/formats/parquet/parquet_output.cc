#include "formats/parquet/parquet_output.h"

#include "core/base/expect.h"
#include "formats/parquet/parquet_file.h"

namespace hctr {

ParquetOutput::ParquetOutput(AtomicFile& file, const std::vector<ParquetField>& fields, int64_t threads) : file_(file) {
  const ParquetSink sink{this, [](void* self, const void* bytes, int64_t count) {
                           return static_cast<ParquetOutput*>(self)->put(bytes, count);
                         }};
  ParquetWriter* made = nullptr;
  expect_done(parquet_plugin().create(fields.data(), static_cast<int64_t>(fields.size()), threads, sink, &made));
  writer_.reset(made);
}

void ParquetOutput::write(const std::vector<ParquetValues>& columns, int64_t rows) {
  expect_done(writer_->write(columns.data(), rows));
}

void ParquetOutput::finish() { expect_done(writer_->finish()); }

/// Called by Arrow. Exceptions must not propagate through Arrow, so they are stored.
bool ParquetOutput::put(const void* bytes, int64_t count) try {
  file_.write(bytes, static_cast<size_t>(count));
  return true;
} catch (...) {
  failure_ = std::current_exception();
  return false;
}

void ParquetOutput::expect_done(const char* problem) {
  if (failure_) std::rethrow_exception(failure_);
  if (problem) throw Error(Kind::io, cat("cannot write '", file_.path().string(), "': ", problem));
}

}  // namespace hctr
