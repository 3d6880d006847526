#include "prepare/write/record_writer.h"

#include "core/base/expect.h"
#include "core/base/input_files.h"
#include "formats/io/file_list.h"
#include "formats/parquet/parquet_metadata.h"

namespace hctr {
namespace {

class NormRecords : public RecordWriter {
 public:
  NormRecords(const fs::path& folder, const std::string& stem, const NormStyle& style, int64_t records_per_file)
      : list_(folder / (stem + ".txt")),
        set_(style, records_per_file, [folder, stem](int64_t n) { return folder / cat(stem, ".", n, ".data"); }) {}
  void add(const EncodedRecords& records) override { set_.add(records, 0, records.count()); }
  int64_t finish() override {
    const std::vector<fs::path> files = set_.finish();
    if (!files.empty()) write_file_list(list_, files, true);
    return static_cast<int64_t>(files.size());
  }

 private:
  fs::path list_;
  NormSetWriter set_;
};

class RawRecords : public RecordWriter {
 public:
  explicit RawRecords(fs::path file) : path_(std::move(file)) {}
  void add(const EncodedRecords& records) override {
    if (records.count() == 0) return;
    if (!file_) file_.emplace(path_);
    file_->write(records.bytes.data(), records.bytes.size());
  }
  int64_t finish() override {
    if (!file_) return 0;
    file_->commit();
    return 1;
  }

 private:
  fs::path path_;
  std::optional<AtomicFile> file_;
};

class ParquetRecords : public RecordWriter {
 public:
  ParquetRecords(const fs::path& folder, const ParquetStyle& style, int64_t records_per_file)
      : records_per_file_(records_per_file),
        set_(folder, folder / kParquetList, style, [](int64_t n) { return cat("part_", n, ".parquet"); }) {}
  void add(const EncodedRecords& from) override {
    for (int64_t first = 0; first < from.count();) {
      if (set_.records() % records_per_file_ == 0) set_.next_file();
      const int64_t take = std::min(from.count() - first, records_per_file_ - set_.records());
      const size_t begin = first == 0 ? 0 : from.ends[static_cast<size_t>(first - 1)],
                   end = from.ends[static_cast<size_t>(first + take - 1)];
      set_.append(std::span(from.bytes).subspan(begin, end - begin), take);
      first += take;
    }
  }
  int64_t finish() override { return static_cast<int64_t>(set_.finish().size()); }

 private:
  int64_t records_per_file_;
  ParquetSetWriter set_;
};

}  // namespace

std::unique_ptr<RecordWriter> norm_record_writer(const fs::path& folder, const std::string& stem,
                                                 const NormStyle& style, int64_t records_per_file) {
  return std::make_unique<NormRecords>(folder, stem, style, records_per_file);
}

std::unique_ptr<RecordWriter> parquet_record_writer(const fs::path& folder, const ParquetStyle& style,
                                                    int64_t records_per_file) {
  return std::make_unique<ParquetRecords>(folder, style, records_per_file);
}

std::unique_ptr<RecordWriter> raw_record_writer(const fs::path& folder, const std::string& stem) {
  return std::make_unique<RawRecords>(folder / (stem + ".bin"));
}

void expect_records_replace_no_input(const fs::path& folder, const std::string& stem,
                                     const std::vector<fs::path>& inputs) {
  expect_no_input_in(folder, "--out: its file", inputs, [&](const std::string& name) {
    return name == stem + ".txt" || name == stem + ".bin" || is_numbered(name, stem + ".", ".data");
  });
  expect_no_input_in(folder / stem, "--out: its file", inputs, [](const std::string& name) {
    return name == kParquetList || name == kParquetMetadata || is_numbered(name, "part_", ".parquet");
  });
}

void remove_older_results(const std::vector<fs::path>& results, bool force) {
  for (const fs::path& result : results)
    if (fs::exists(result) && !force)
      throw Error(Kind::usage, cat("'", result.string(),
                                   "' already exists; --force overwrites the file and its "
                                   "data files"));
  for (const fs::path& result : results) {
    std::error_code error;
    fs::remove(result, error);
    if (error) throw Error(Kind::io, cat("cannot remove '", result.string(), "': ", error.message()));
  }
}

}  // namespace hctr
