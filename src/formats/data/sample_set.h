// The reader's interface to a data format: how a file is cut into chunks, and how a chunk becomes samples.
//
// A format is three small classes. Its SampleSet holds facts about the files. A Cutter traverses one file from front to
// back and names consecutive chunks; it is used by one thread at a time, so it should do little. Parsers do the work,
// one for each thread, concurrently. A cutter that must walk the records to find them also reads them; one that cuts by
// arithmetic only names byte ranges, and the parser reads them and finds the records.
//
// Every chunk is parsed once, in one of two ways: parse() takes all of its rows; or count() finds them, and
// parse_rows() then takes those that a RowSelection names. Ranks that share a set use the second: each counts all rows
// and parses its own.
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

/// A position between two records of a file, in terms that its format understands; {} is the start of the file.
struct FilePosition {
  int64_t record = 0;  ///< records before it, where the format counts them
  int64_t offset = 0;  ///< bytes before it (of the content, where the file is compressed); 0: before the first record,
                       ///< behind any header

  bool operator==(const FilePosition&) const = default;
};

/// Where a record's columns lie in files of their own: consecutive rows of one of them.
struct ChunkPart {
  size_t file = 0;                       ///< index among those that hold these columns
  int64_t first = 0;                     ///< the first of the rows: its number, or its line in a text, from 0
  size_t begin = 0, end = 0;             ///< the rows in the buffer, where the cutter read them
  std::shared_ptr<const ByteFile> open;  ///< the file, where the parser reads them
};

/// Consecutive whole records of one file. A thread keeps one and has it filled again and again, so its memory is warm.
struct Chunk {
  // Set by the cutter. If only the parser can find where records begin, it sets begin, records and bytes.
  size_t file = 0;  ///< index in SampleSet::files()
  FilePosition begin;
  int64_t records = 0;                   ///< where the format counts them
  int64_t bytes = 0;                     ///< bytes of the file, from begin.offset on
  std::shared_ptr<void> source;          ///< the parser's input, if the cutter opened it
  std::shared_ptr<const SampleSet> set;  ///< the set of this file alone, in a set that grows
  std::vector<ChunkPart> parts;          ///< where columns lie in several files: the part of each group of columns

  // Found by whichever of the two reads the bytes.
  std::vector<std::byte> buffer;  ///< the bytes; may be longer
  std::vector<uint32_t> begins;   ///< [records + 1]: where in the buffer each record begins, and the last ends
};

/// Which rows of a chunk are parsed: all, or spans of those that Parser::count() found.
class RowSelection {
 public:
  RowSelection() = default;
  /// `spans`: in order, without overlaps; they outlive the selection.
  explicit RowSelection(std::span<const RowSpan> spans) : spans_(spans) {}

  /// Whether rows are selected by their number, so that the chunk was counted.
  bool some() const { return spans_.has_value(); }
  /// Only when some().
  std::span<const RowSpan> spans() const { return *spans_; }
  /// Calls visit(begin, end) for each span; `rows`: all there are.
  template <class Visit>
  void for_each(int64_t rows, Visit&& visit) const {
    if (!spans_) return visit(int64_t{0}, rows);
    for (const RowSpan& span : *spans_) visit(span.begin, span.end);
  }
  /// The row of the chunk that the i-th selected row is.
  int64_t row(int64_t i) const {
    if (!spans_) return i;
    size_t s = 0;
    for (; i >= (*spans_)[s].end - (*spans_)[s].begin; ++s) i -= (*spans_)[s].end - (*spans_)[s].begin;
    return (*spans_)[s].begin + i;
  }
  /// How many rows are selected; `rows`: all there are.
  int64_t count(int64_t rows) const {
    int64_t sum = 0;
    for_each(rows, [&](int64_t begin, int64_t end) { sum += end - begin; });
    return sum;
  }

 private:
  std::optional<std::span<const RowSpan>> spans_;
};

/// Thrown for a chunk that cannot be parsed because an earlier one of its file could not: that one's error says why.
class EarlierChunkFailed : public Error {
 public:
  using Error::Error;
};

class Cutter {
 public:
  virtual ~Cutter() = default;
  /// Fills `chunk` (but for `file`) with the next records, at least one; false at the end of the file.
  /// Errors: Error(data) naming file, record and offset, when the end of a record cannot be found: nothing after it can
  /// be trusted.
  virtual bool next(Chunk& chunk) = 0;
  /// Bytes of the file that were read so far, where Chunk::bytes is not a measure: of compressed files, and where the
  /// parser sets it.
  virtual std::optional<int64_t> consumed() const { return {}; }
};

/// A skipped record, for a file of such records.
struct BadRecord {
  std::string file{};
  int64_t record = -1;  ///< its number in the file, from 1; -1: the format does not count records
  int64_t offset = -1;  ///< bytes before it in the content; -1: not known
  std::string cause{};
};

/// Skipped bad records of a chunk.
struct BadRecords {
  int64_t count = 0;
  std::string first{};                 ///< the problem of the first one: file, record, offset, column, value
  std::vector<int64_t> rows_before{};  ///< [count] of each, in their order: the rows of the chunk in front of it
  std::vector<BadRecord> records{};    ///< [count] where SampleBlock::names_bad asks for them

  void add(int64_t rows, const auto& describe) {
    if (count++ == 0) first = describe();
    rows_before.push_back(rows);
  }
  /// Adds the records of a chunk whose flag is not 0. `describe`: the first of them.
  void add_flagged(std::span<const uint8_t> flags, const auto& describe) {
    int64_t rows = 0;
    for (const uint8_t bad : flags) bad != 0 ? add(rows, describe) : void(++rows);
  }
};

class Parser {
 public:
  virtual ~Parser() = default;
  /// Parses every row of a chunk. Otherwise as parse_rows().
  BadRecords parse(Chunk& chunk, SampleBlock& block) { return parse_rows(chunk, {}, block); }
  /// Finds the rows of a chunk without parsing them and returns their number; parse_rows() of the same chunk must
  /// follow. Only for sets that can be shared.
  virtual int64_t count(Chunk& chunk) { return chunk.records; }
  /// Parses the selected rows of a chunk into `block` (emptied first). The policy decides whether bad records are
  /// skipped and returned, or are an error. Errors: Error(data) naming file, record, offset, column and value.
  virtual BadRecords parse_rows(Chunk& chunk, const RowSelection& rows, SampleBlock& block) = 0;
};

/// The files of one data set. Outlives its cutters and parsers.
class SampleSet {
 public:
  virtual ~SampleSet() = default;
  virtual const std::vector<fs::path>& files() const = 0;
  /// A file by the index that chunks have, for messages. Any thread may ask.
  virtual fs::path file(size_t index) const { return files()[index]; }
  /// Whether files are added while the set is read. Then files() has none of them, and it is read once, in their order.
  virtual bool grows() const { return false; }
  /// Waits until a growing set has this file; false if it ends before, or if `closed` is set and wake() is called.
  virtual bool wait_for_file(size_t index, [[maybe_unused]] const std::atomic<bool>& closed) {
    return index < files().size();
  }
  virtual void wake() {}
  /// Samples in the set, as its headers or the config state; where neither does, an estimate from the sizes of the
  /// files.
  virtual int64_t samples() const = 0;
  /// Whether samples() is an estimate.
  virtual bool samples_estimated() const { return false; }
  /// A cutter from `from` on, which is {} or the `begin` of a chunk of this file. One thread at a time.
  virtual std::unique_ptr<Cutter> open(size_t file, FilePosition from) = 0;
  virtual std::unique_ptr<Parser> parser() const = 0;
  /// Bytes that the keys of rows read so far fit: 4 where the files hold keys of 32 bits, else 8. Any thread may ask.
  virtual int key_bytes() const { return 8; }
  /// Whether parsers can count rows and parse a selection of them: bad records outside of the selection must not change
  /// the numbers of the others.
  virtual bool can_select_rows() const = 0;
  /// Whether counting and parsing single rows all over a chunk costs less than parsing the whole. Only where it can
  /// select rows.
  virtual bool can_select_single_rows() const { return false; }
  /// The rows of every pass, where they are certain before the set is read.
  virtual std::optional<int64_t> exact_samples() const { return {}; }
  /// For reading rows straight into a batch, if each record is one row with one key in each slot and no bad record is
  /// skipped. Otherwise null.
  virtual const RowMap* row_map() const { return nullptr; }

  /// Slots whose keys the types of the set's columns decide.
  virtual std::vector<SlotKeyRule> slot_key_rules() const { return {}; }
  /// Whether the first file has labels; only a Source with optional ones may have none.
  virtual bool has_labels() const { return true; }
  /// Whether parsers pass on the columns of Source::keep.
  virtual bool keeps_columns() const { return false; }

  // For inspection: a description of a file for people: "Parquet, 3 row groups, ..."; empty: only the name of its
  // format is known.
  virtual std::string facts(size_t) const { return {}; }
  /// Bytes that reading a file takes.
  virtual int64_t bytes(size_t file) const { return static_cast<int64_t>(fs::file_size(files()[file])); }
  /// Finds the records of a chunk that was parsed: sets begin, records and begins, so that each can be parsed alone.
  /// False where the format cannot.
  virtual bool find_records(Chunk&) const { return false; }
  /// Whether FilePosition::record counts records; else messages name them by their offset.
  virtual bool counts_records() const { return true; }
};

}  // namespace hctr
