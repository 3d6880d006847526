#include "formats/text/text_set.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/foreign_content.h"
#include "formats/io/set_files.h"
#include "formats/io/source_files.h"
#include "formats/text/dialect_hint.h"
#include "formats/text/text_cutters.h"

namespace hctr {
namespace {

/// Counts the line ends before byte `offset` of the decompressed content. Reads the file again, so it is only used for
/// messages.
int64_t lines_before(const fs::path& path, int64_t offset) {
  const auto stream = open_stream(path);
  std::vector<std::byte> piece(256 << 10);
  int64_t lines = 0;
  while (offset > 0) {
    const size_t got = stream->read(piece.data(), std::min(piece.size(), static_cast<size_t>(offset)));
    if (got == 0) break;
    lines += std::count(piece.begin(), piece.begin() + static_cast<ptrdiff_t>(got), std::byte{'\n'});
    offset -= static_cast<int64_t>(got);
  }
  return lines;
}

/// Cached properties of one file.
struct TextFile {
  std::shared_ptr<const RowMaker> maker;
  std::vector<size_t> passed_on;  // for each column of Source::keep, its index in the file
  int64_t first_record = 0;       // offset of the first record in the decompressed content
  bool packed = false;
};

class TextSet : public SampleSet {
 public:
  TextSet(const DataSection& section, const Source& source, const TextFormat& format, const Log& log)
      : shape_(record_shape(section)),
        policy_(section.bad_records),
        keep_(source.keep),
        format_(format),
        files_(source.files.empty() ? text_files(source.path, log) : source.files),
        known_(files_.size()) {
    know(0);
    note_missing_weight(known_[0].maker->missing_weight(), files_[0], log);
    estimated_ = source.num_samples <= 0;
    samples_ = estimated_ ? estimate() : source.num_samples;
  }

  const std::vector<fs::path>& files() const override { return files_; }
  int64_t samples() const override { return samples_; }
  bool samples_estimated() const override { return estimated_; }

  std::unique_ptr<Cutter> open(size_t file, FilePosition from) override {
    know(file);
    const int64_t offset = from.offset > 0 ? from.offset : known_[file].first_record;
    if (cut_by_arithmetic(file)) return std::make_unique<RangeCutter>(files_[file], offset);
    return std::make_unique<StreamCutter>(files_[file], format_.grammar, offset);
  }

  std::unique_ptr<Parser> parser() const override;
  bool find_records(Chunk& chunk) const override {
    RecordSplitter splitter(format_.grammar);
    hctr::find_records(reinterpret_cast<const char*>(chunk.buffer.data()), static_cast<size_t>(chunk.bytes),
                       format_.grammar, splitter, chunk.begins);
    chunk.records = static_cast<int64_t>(chunk.begins.size()) - 1;
    chunk.begin.offset += chunk.begins.front();  // skips blank lines at the start of the chunk
    return true;
  }
  bool counts_records() const override { return false; }
  bool can_select_rows() const override { return policy_ != BadRecordPolicy::skip; }
  bool can_select_single_rows() const override { return true; }
  bool has_labels() const override { return known_[0].maker->has_labels(); }
  bool keeps_columns() const override { return true; }

 private:
  class ChunkParser;
  bool cut_by_arithmetic(size_t file) const { return format_.grammar.quote == 0 && !known_[file].packed; }

  /// Reads the first record of a file, once. Parsers read the result without a lock, because a thread parses only
  /// chunks that it has cut itself, and it cuts chunks of a file only after this call.
  void know(size_t file) {
    TextFile& known = known_[file];
    if (known.maker) return;
    const fs::path& path = files_[file];
    known.packed = is_packed(path);
    std::string start(1 << 20, '\0');
    const auto stream = open_stream(path);
    start.resize(stream->read(reinterpret_cast<std::byte*>(start.data()), start.size()));
    if (const std::string why = why_no_rows(start); !why.empty())
      throw Error(Kind::data, cat("'", path.string(), "': ", why));
    const char *const begin = start.data(), *const end = begin + start.size(), *p = begin;
    if (start.starts_with("\xEF\xBB\xBF")) p += 3;  // skips a byte order mark
    known.first_record = p - begin;
    RecordSplitter splitter(format_.grammar);
    for (const char* next; p < end; p = next) {
      next = splitter.split(p, end);
      if (is_blank(splitter.cells())) continue;
      if (format_.header) known.first_record = next - begin;
      break;
    }
    if (p >= end)
      throw Error(Kind::data, cat("'", path.string(), "' is empty",
                                  format_.header ? "; expected the names of the columns in its first line" : ""));
    if (!splitter.problem().empty())
      throw Error(Kind::data, cat("'", path.string(), "' line 1: ", splitter.problem(),
                                  dialect_hint({.text = start.substr(0, 1 << 12)}, format_.grammar)));
    in_context([&] { return cat("reading the first line of '", path.string(), "'"); },
               [&] {
                 known.maker = format_.maker(splitter.cells(), partitions_in(path));
                 std::vector<std::string> columns = format_.columns(splitter.cells());
                 const auto added = known.maker->added_columns();
                 columns.insert(columns.end(), added.begin(), added.end());
                 if (!keep_.empty()) known.passed_on = find_columns(columns);
               });
    if (known.maker->missing_weight() != known_[0].maker->missing_weight()) fail_mixed_weights(files_[0], path);
    if (file == 0) {
      const auto lines = std::max<int64_t>(1, std::count(begin, end, '\n'));
      bytes_per_record_ = static_cast<double>(std::max<int64_t>(1, stream->consumed())) / static_cast<double>(lines);
    }
  }

  /// For each column of Source::keep, its index in a file.
  std::vector<size_t> find_columns(const std::vector<std::string>& columns) const {
    std::vector<size_t> indices;
    for (const std::string& name : keep_) {
      const auto found = std::find(columns.begin(), columns.end(), name);
      std::string all;
      for (const std::string& column : columns) all += cat(all.empty() ? "'" : ", '", column, "'");
      if (found == columns.end())
        throw Error(Kind::data, cat("there is no column '", name, "' to keep; the columns are ", all.substr(0, 1000)));
      indices.push_back(static_cast<size_t>(found - columns.begin()));
    }
    return indices;
  }

  /// Estimates the number of records from the file sizes and the record lengths at the start of the first file.
  int64_t estimate() const {
    double bytes = 0;
    for (const fs::path& file : files_) bytes += static_cast<double>(fs::file_size(file));
    return std::max<int64_t>(1, static_cast<int64_t>(bytes / bytes_per_record_));
  }

  RecordShape shape_;
  std::optional<BadRecordPolicy> policy_;
  std::vector<std::string> keep_;
  TextFormat format_;
  std::vector<fs::path> files_;
  std::vector<TextFile> known_;
  double bytes_per_record_ = 1;
  int64_t samples_ = 0;
  bool estimated_ = false;
};

class TextSet::ChunkParser : public Parser {
 public:
  explicit ChunkParser(const TextSet& set) : set_(set), splitter_(set.format_.grammar), rows_(set.shape_) {}

  int64_t count(Chunk& chunk) override {
    read(chunk);
    const auto* text = reinterpret_cast<const char*>(chunk.buffer.data());
    hctr::find_records(text, static_cast<size_t>(chunk.bytes), set_.format_.grammar, splitter_, chunk.begins);
    return static_cast<int64_t>(chunk.begins.size()) - 1;
  }

  BadRecords parse_rows(Chunk& chunk, const RowSelection& rows, SampleBlock& block) override {
    const fs::path& path = set_.files_[chunk.file];
    if (!rows.some()) read(chunk);  // a partial selection needs no read, because count() has read the chunk
    const auto where = [&](size_t at) {
      const int64_t offset = chunk.begin.offset + static_cast<int64_t>(at);
      if (set_.policy_ == BadRecordPolicy::skip)
        // no line number, because counting lines for many bad records would be slow
        return cat("'", path.string(), "': the record at byte ", offset);
      return cat("'", path.string(), "' line ", lines_before(path, offset) + 1, ", at byte ", offset);
    };
    const auto* text = reinterpret_cast<const char*>(chunk.buffer.data());
    BadRecords bad;
    rows_.start(block, set_.known_[chunk.file].passed_on);
    const TextParsing parsing{set_.format_, *set_.known_[chunk.file].maker, set_.policy_, where};
    const auto parse_part = [&](size_t begin, size_t end) {
      parse_text({text, end}, begin, parsing, splitter_, rows_, bad);
    };
    if (!rows.some())
      parse_part(0, static_cast<size_t>(chunk.bytes));
    else
      for (const RowSpan& span : rows.spans())
        parse_part(chunk.begins[static_cast<size_t>(span.begin)], chunk.begins[static_cast<size_t>(span.end)]);
    rows_.finish();
    for (BadRecord& record : bad.records) {
      record.file = path.string();
      record.offset += chunk.begin.offset;
    }
    return bad;
  }

 private:
  void read(Chunk& chunk) {
    if (!set_.cut_by_arithmetic(chunk.file)) return;
    const fs::path& path = set_.files_[chunk.file];
    const auto size = static_cast<size_t>(chunk.bytes);
    if (!file_ || file_->path() != path) file_.emplace(path);
    if (chunk.buffer.size() < size) chunk.buffer.resize(size);
    file_->read_at(chunk.begin.offset, chunk.buffer.data(), size);
  }

  const TextSet& set_;
  RecordSplitter splitter_;
  RowMajor rows_;
  std::optional<ByteFile> file_;  // the most recently read file
};

std::unique_ptr<Parser> TextSet::parser() const { return std::make_unique<ChunkParser>(*this); }

}  // namespace

std::unique_ptr<SampleSet> open_text_set(const DataSection& section, const Source& source, const TextFormat& format,
                                         const Log& log) {
  return std::make_unique<TextSet>(section, source, format, log);
}

}  // namespace hctr
