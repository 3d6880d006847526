// The reader's interface to a data format: cuts files into chunks and parses chunks into samples.
//
// A format implements three classes. A SampleSet describes the files. A Cutter traverses one file from start to end and
// returns consecutive chunks; a single thread calls it, so a cutter should do little work. Parsers run concurrently,
// one per thread, and do most of the work. If record boundaries are found only by walking the records, the cutter reads
// the bytes. If record boundaries can be computed, the cutter only returns byte ranges, and the parser reads the bytes.
//
// Every chunk is parsed once. parse() parses all rows. Alternatively, count() finds the rows and parse_rows() parses
// the rows of a RowSelection. Ranks that share a set call count() and parse_rows(): each rank counts all rows, but
// parses only its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "formats/data/rank_slice.h"
#include "formats/data/row_map.h"
#include "formats/data/sample_block.h"
#include "formats/data/slot_key_rules.h"

namespace hctr {

class ByteFile;
class SampleSet;

/// A position between two records of a file, as defined by the format. {} is the start of the file.
struct FilePosition {
  int64_t record = 0;  ///< number of preceding records, if the format counts records
  int64_t offset = 0;  ///< byte offset in the decompressed file; 0: the first record, after any header

  bool operator==(const FilePosition&) const = default;
};

/// Consecutive rows of one column file, for formats that store the columns of a record in several files.
struct ChunkPart {
  size_t file = 0;                       ///< file index within its group of columns
  int64_t first = 0;                     ///< index of the first row in the file; for text, number of lines before it
  size_t begin = 0, end = 0;             ///< byte range of the rows in Chunk::buffer, if the cutter read them
  std::shared_ptr<const ByteFile> open;  ///< the file, if the parser reads the rows
};

/// Consecutive whole records of one file. Each thread reuses one Chunk, so its memory stays in the cache.
struct Chunk {
  // Set by the cutter. If only the parser can find record boundaries, the parser sets begin, records and bytes.
  size_t file = 0;  ///< index in SampleSet::files()
  FilePosition begin;
  int64_t records = 0;                   ///< number of records, if the format counts them
  int64_t bytes = 0;                     ///< number of bytes from begin.offset to the end of the chunk
  std::shared_ptr<void> source;          ///< the parser's input, if the cutter opened it
  std::shared_ptr<const SampleSet> set;  ///< in a growing set: a SampleSet that contains only this file
  std::vector<ChunkPart> parts;          ///< if columns are in several files: one part per group of columns

  // Set by the cutter or the parser, whichever reads the bytes.
  std::vector<std::byte> buffer;  ///< starts with the chunk's bytes; may be longer than the chunk
  std::vector<uint32_t> begins;   ///< [records + 1] offset of each record in `buffer`, and the end of the last
};

/// The rows of a chunk to parse: all rows, or spans of the rows that Parser::count() found.
class RowSelection {
 public:
  RowSelection() = default;
  /// `spans`: ascending and disjoint; must outlive the selection.
  explicit RowSelection(std::span<const RowSpan> spans) : spans_(spans) {}

  /// Whether the selection has spans. If false, all rows are selected.
  bool some() const { return spans_.has_value(); }
  /// The selected rows. Requires some().
  std::span<const RowSpan> spans() const { return *spans_; }
  /// Calls visit(begin, end) for each selected span. `rows`: the chunk's total rows.
  template <class Visit>
  void for_each(int64_t rows, Visit&& visit) const {
    if (!spans_) return visit(int64_t{0}, rows);
    for (const RowSpan& span : *spans_) visit(span.begin, span.end);
  }
  /// The i-th selected row's index in the chunk.
  int64_t row(int64_t i) const {
    if (!spans_) return i;
    size_t s = 0;
    for (; i >= (*spans_)[s].end - (*spans_)[s].begin; ++s) i -= (*spans_)[s].end - (*spans_)[s].begin;
    return (*spans_)[s].begin + i;
  }
  /// Number of selected rows. `rows`: the chunk's total rows.
  int64_t count(int64_t rows) const {
    int64_t sum = 0;
    for_each(rows, [&](int64_t begin, int64_t end) { sum += end - begin; });
    return sum;
  }

 private:
  std::optional<std::span<const RowSpan>> spans_;
};

/// Thrown for a chunk that depends on an earlier chunk, if parsing the earlier chunk failed. The cause is in the error
/// of the earlier chunk.
class EarlierChunkFailed : public Error {
 public:
  using Error::Error;
};

class Cutter {
 public:
  virtual ~Cutter() = default;
  /// Fills all members of `chunk` except `file` with the next records, at least one. Returns false at the end of the
  /// file. Errors: Error(data) naming file, record and offset if the end of a record cannot be found; the rest of the
  /// file is then unusable.
  virtual bool next(Chunk& chunk) = 0;
  /// Bytes of the file read so far; empty if Chunk::bytes can be summed instead. The sum is wrong for compressed files
  /// and for chunks whose parser sets `bytes`.
  virtual std::optional<int64_t> consumed() const { return {}; }
};

/// A skipped bad record, for the file of bad records.
struct BadRecord {
  std::string file{};
  int64_t record = -1;  ///< record number in the file, from 1; -1: not counted
  int64_t offset = -1;  ///< byte offset in the decompressed file; -1: unknown
  std::string cause{};
};

/// The skipped bad records of a chunk.
struct BadRecords {
  int64_t count = 0;
  std::string first{};                 ///< describes the first bad record: file, record, offset, column, value
  std::vector<int64_t> rows_before{};  ///< [count] number of good rows in the chunk before each bad record
  std::vector<BadRecord> records{};    ///< [count] if SampleBlock::names_bad, else empty

  void add(int64_t rows, const auto& describe) {
    if (count++ == 0) first = describe();
    rows_before.push_back(rows);
  }
  /// Adds the records with a nonzero flag. `describe`: returns the description of a record; called for the first record
  /// only.
  void add_flagged(std::span<const uint8_t> flags, const auto& describe) {
    int64_t rows = 0;
    for (const uint8_t bad : flags) bad != 0 ? add(rows, describe) : void(++rows);
  }
};

class Parser {
 public:
  virtual ~Parser() = default;
  /// Parses all rows of a chunk; see parse_rows().
  BadRecords parse(Chunk& chunk, SampleBlock& block) { return parse_rows(chunk, {}, block); }
  /// Finds the rows of a chunk without parsing them and returns their number. The caller must then call parse_rows()
  /// with the same chunk. Requires can_select_rows().
  virtual int64_t count(Chunk& chunk) { return chunk.records; }
  /// Clears `block` and parses the selected rows into it. The set's BadRecordPolicy decides whether bad records are
  /// skipped and returned, or are an error. Errors: Error(data) naming file, record, offset, column and value.
  virtual BadRecords parse_rows(Chunk& chunk, const RowSelection& rows, SampleBlock& block) = 0;
};

/// The files of one data set. A SampleSet must outlive its cutters and parsers.
class SampleSet {
 public:
  virtual ~SampleSet() = default;
  virtual const std::vector<fs::path>& files() const = 0;
  /// The path of the file with index Chunk::file, for messages. Thread-safe.
  virtual fs::path file(size_t index) const { return files()[index]; }
  /// Whether files are added while the set is read. files() of a growing set is empty, and the set is read only once,
  /// in the order of arrival.
  virtual bool grows() const { return false; }
  /// Blocks until a growing set has a file with this index. Returns false if the set ends without this file, or if
  /// `closed` is set and wake() is called.
  virtual bool wait_for_file(size_t index, [[maybe_unused]] const std::atomic<bool>& closed) {
    return index < files().size();
  }
  virtual void wake() {}
  /// Number of samples according to file headers or the config; otherwise an estimate from the file sizes.
  virtual int64_t samples() const = 0;
  /// Whether samples() is an estimate.
  virtual bool samples_estimated() const { return false; }
  /// A cutter that starts at `from`, which is {} or the `begin` of a chunk of this file. Called by one thread at a
  /// time.
  virtual std::unique_ptr<Cutter> open(size_t file, FilePosition from) = 0;
  virtual std::unique_ptr<Parser> parser() const = 0;
  /// Bytes per key that suffice for all rows read so far: 4 if the files have 32-bit keys, else 8. Thread-safe.
  virtual int key_bytes() const { return 8; }
  /// Whether parsers support count() and parse_rows() of a selection. A bad record outside the selection must not
  /// change the numbering of other rows.
  virtual bool can_select_rows() const = 0;
  /// Whether counting a chunk and parsing scattered single rows costs less than parsing the whole chunk. Requires
  /// can_select_rows().
  virtual bool can_select_single_rows() const { return false; }
  /// Number of rows per pass, if known exactly before reading.
  virtual std::optional<int64_t> exact_samples() const { return {}; }
  /// The interface for parsing rows directly into a batch; null if unsupported. Requires that each record is one row
  /// with one key per slot, and that bad records are errors.
  virtual const RowMap* row_map() const { return nullptr; }

  /// The key rules of those slots whose rule depends on the type of their column.
  virtual std::vector<SlotKeyRule> slot_key_rules() const { return {}; }
  /// Whether the first file has labels. Always true unless Source::labels_optional.
  virtual bool has_labels() const { return true; }
  /// Whether parsers fill SampleBlock::kept with the columns of Source::keep.
  virtual bool keeps_columns() const { return false; }

  // For inspection: a description of a file such as "Parquet, 3 row groups, ..."; empty if there is nothing to add to
  // the format's name.
  virtual std::string facts(size_t) const { return {}; }
  /// Number of bytes to read from a file.
  virtual int64_t bytes(size_t file) const { return static_cast<int64_t>(fs::file_size(files()[file])); }
  /// Finds the records of a parsed chunk: sets begin, records and begins so that each record can be parsed separately.
  /// Returns false if the format does not support this.
  virtual bool find_records(Chunk&) const { return false; }
  /// Whether FilePosition::record counts records. If false, messages identify records by offset.
  virtual bool counts_records() const { return true; }
};

}  // namespace hctr
