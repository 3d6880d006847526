#include "prepare/preprocess/feature_rows.h"

#include <algorithm>

#include "base/error.h"
#include "base/progress.h"
#include "data/features/feature_values.h"
#include "data/io/byte_file.h"
#include "prepare/text_source.h"

namespace hctr {
namespace {

constexpr int64_t kRows = 65536;  // of a block in for_each_block()

/// A feature of a chunk that somebody wants: where it stands in a row, and where its values go.
struct Field {
  FeatureColumn feature;
  size_t place;   // of a csv chunk: the column; of a binary one: the offset in the row
  size_t column;  // of the block
};

class CsvRows : public ChunkRows {
 public:
  CsvRows(const FeatureChunk& chunk, std::vector<Field> fields)
      : columns_(chunk.features.size()), fields_(std::move(fields)), source_(strings(chunk.files)) {
    for (const fs::path& file : chunk.files)
      open_to_read(file, "file of a feature specification");  // for its message, before any row
  }

  int64_t read(int64_t rows, FeatureBlock& block) override {
    int64_t done = 0;
    while (done < rows) {
      const size_t newline = block_.text.find('\n', at_);
      if (newline == std::string::npos) {
        at_ = 0;
        if (!source_.next(block_)) {
          block_.text.clear();
          break;
        }
        line_ = block_.first_line;
        continue;
      }
      std::string_view line = std::string_view(block_.text).substr(at_, newline - at_);
      at_ = newline + 1;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) {
        take(line, block);
        ++done;
      }
      ++line_;
    }
    return done;
  }
  int64_t bytes() const override { return source_.bytes(); }
  int64_t bytes_done() const override { return block_.bytes_done; }

 private:
  static std::vector<std::string> strings(const std::vector<fs::path>& files) { return {files.begin(), files.end()}; }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(Kind::data, cat("'", block_.file, "' line ", line_, ": ", problem));
  }

  void take(std::string_view line, FeatureBlock& block) {
    split_cells(line, parts_);
    if (parts_.size() != columns_)
      fail(cat("expected ", columns_, " values separated by commas, one for each feature of the chunk, found ",
               parts_.size()));
    for (const Field& field : fields_) {
      FeatureValues& values = block.columns[field.column];
      if (is_whole(field.feature.type))
        values.wholes.push_back(number<int64_t>(field));
      else
        values.reals.push_back(number<double>(field));
    }
  }

  template <class T>
  T number(const Field& field) const {
    T value{};
    if (const std::string problem = read_cell(field.feature, parts_[field.place], value); !problem.empty())
      fail(problem);
    return value;
  }

  size_t columns_;
  std::vector<Field> fields_;
  TextSource source_;
  TextBlock block_;
  size_t at_ = 0;
  int64_t line_ = 1;
  std::vector<std::string_view> parts_;
};

class BinaryRows : public ChunkRows {
 public:
  BinaryRows(const FeatureChunk& chunk, std::vector<Field> fields, size_t row_bytes)
      : fields_(std::move(fields)), row_bytes_(row_bytes) {
    for (const fs::path& path : chunk.files) {
      const ByteFile& file = files_.emplace_back(path);
      if (file.size() % static_cast<int64_t>(row_bytes) != 0)
        throw Error(Kind::data,
                    cat("'", path.string(), "' has ", file.size(), " bytes, which is no whole number of rows of ",
                        row_bytes, " bytes; was it cut off, or is a dtype wrong?"));
      bytes_ += file.size();
    }
  }

  int64_t read(int64_t rows, FeatureBlock& block) override {
    int64_t done = 0;
    while (done < rows && file_ < files_.size()) {
      ByteFile& file = files_[file_];
      const int64_t first = file.position() / static_cast<int64_t>(row_bytes_);
      buffer_.resize(static_cast<size_t>(rows - done) * row_bytes_);
      const size_t got = file.read(buffer_.data(), buffer_.size()) / row_bytes_;
      for (const Field& field : fields_) take(field, first, got, block.columns[field.column]);
      done += static_cast<int64_t>(got);
      bytes_done_ += static_cast<int64_t>(got * row_bytes_);
      if (got < buffer_.size() / row_bytes_) ++file_;
    }
    return done;
  }
  int64_t bytes() const override { return bytes_; }
  int64_t bytes_done() const override { return bytes_done_; }

 private:
  void take(const Field& field, int64_t first, size_t rows, FeatureValues& values) const {
    const FeatureType type = field.feature.type;
    const bool whole = is_whole(type);
    for (size_t row = 0; row < rows; ++row) {
      const std::byte* from = buffer_.data() + row * row_bytes_ + field.place;
      if (whole)
        values.wholes.push_back(whole_at(type, from));
      else
        values.reals.push_back(real_at(type, from));
      if (!field.feature.cardinality) continue;
      if (const int64_t id = values.wholes.back(); id < 0 || id >= *field.feature.cardinality)
        throw Error(Kind::data, cat("'", files_[file_].path().string(), "' row ", first + static_cast<int64_t>(row) + 1,
                                    ": ", feature_misfit(field.feature, static_cast<double>(id))));
    }
  }

  std::vector<Field> fields_;
  size_t row_bytes_, file_ = 0;
  std::vector<ByteFile> files_;
  std::vector<std::byte> buffer_;
  int64_t bytes_ = 0, bytes_done_ = 0;
};

}  // namespace

FeatureRows::FeatureRows(const FeatureSpec& spec, const std::string& mapping, const std::vector<size_t>& wanted)
    : mapping_(mapping), columns_(wanted.size()) {
  size_t found = 0;
  for (const FeatureChunk& chunk : spec.source(mapping).chunks) {
    const bool binary = chunk.kind == FeatureChunk::Kind::split_binary;
    std::vector<Field> fields;
    size_t place = 0;
    for (const size_t feature : chunk.features) {
      const auto column = std::find(wanted.begin(), wanted.end(), feature);
      if (column != wanted.end())
        fields.push_back({spec.features[feature], place, static_cast<size_t>(column - wanted.begin())});
      place += binary ? bytes_of(spec.features[feature].type) : 1;
    }
    found += fields.size();
    if (fields.empty()) continue;
    names_.push_back(chunk.files[0].string());
    if (binary)
      chunks_.push_back(std::make_unique<BinaryRows>(chunk, std::move(fields), place));
    else
      chunks_.push_back(std::make_unique<CsvRows>(chunk, std::move(fields)));
  }
  HCTR_EXPECT(found == wanted.size(), "mapping ", mapping, " lacks ", wanted.size() - found, " of the features wanted");
}

bool FeatureRows::next(FeatureBlock& block, int64_t rows) {
  block.columns.resize(columns_);
  for (FeatureValues& values : block.columns) {
    values.wholes.clear();
    values.reals.clear();
  }
  block.rows = 0;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    const int64_t got = chunks_[i]->read(rows, block);
    if (i > 0 && got != block.rows) {
      const bool shorter = got < block.rows;
      throw Error(Kind::data, cat("the chunks of mapping \"", mapping_, "\" differ in length: the one of '",
                                  names_[shorter ? i : 0], "' ends after ", done_ + std::min(got, block.rows),
                                  " rows, the one of '", names_[shorter ? 0 : i], "' has more"));
    }
    block.rows = got;
  }
  done_ += block.rows;
  return block.rows > 0;
}

int64_t FeatureRows::for_each_block(const std::string& what, const std::function<void(const FeatureBlock&)>& visit) {
  Progress progress(what, "bytes", bytes());
  for (FeatureBlock block; next(block, kRows);
       progress.update(bytes_done(), with_unit_prefix(static_cast<double>(done_)) + " rows"))
    visit(block);
  progress.finish();
  return done_;
}

int64_t FeatureRows::bytes() const {
  int64_t sum = 0;
  for (const auto& chunk : chunks_) {
    const int64_t bytes = chunk->bytes();
    if (bytes == 0) return 0;
    sum += bytes;
  }
  return sum;
}

int64_t FeatureRows::bytes_done() const {
  int64_t sum = 0;
  for (const auto& chunk : chunks_) sum += chunk->bytes_done();
  return sum;
}

}  // namespace hctr
