// What the reader knows of a data format: how a file is cut into chunks, and how a chunk becomes samples.
//
// A format is three small classes. Its SampleSet holds what is known of the files; a Cutter goes through one file from
// front to back and is used by one thread at a time, so it should do little; Parsers do the work, one per thread, side
// by side. Whether the Cutter reads a chunk's bytes (where records must be walked to be found) or only names them (and
// the Parser reads) is up to the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.h"
#include "data/row_map.h"
#include "data/sample_block.h"
#include "data/share.h"

namespace hctr {

class ByteFile;

/// A place between two records of a file, in terms that its format understands; {} is the file's start.
struct Place {
  int64_t record = 0;  ///< records before it, where the format counts them
  int64_t offset = 0;  ///< bytes before it (of the content, where the file is compressed); 0: before the first record,
                       ///< behind any header

  bool operator==(const Place&) const = default;
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
  size_t file = 0;  ///< index in SampleSet::files()
  Place begin;
  int64_t records = 0;            ///< where the format counts them
  int64_t bytes = 0;              ///< of the file, from begin.offset on
  std::vector<std::byte> buffer;  ///< these bytes, where the cutter read them; may be longer
  std::shared_ptr<void> reading;  ///< what the parser reads from, where the cutter opened it
  std::vector<uint32_t> begins;   ///< [records + 1], where the cutter found them: where in the buffer each record
                                  ///< begins, and the last ends
  std::vector<ChunkPart>
      parts;                    ///< where columns lie apart: for each group of them, where its part of these records is
  bool shared = false;          ///< only `wanted` is to be parsed
  std::vector<RowSpan> wanted;  ///< rows of the chunk as Parser::count() counts them, in order

  /// Calls visit(begin, end) for each stretch of rows that is to be parsed; `rows`: all there are.
  template <class Visit>
  void for_each_wanted(int64_t rows, Visit&& visit) const {
    if (!shared) return visit(int64_t{0}, rows);
    for (const RowSpan& span : wanted) visit(span.begin, span.end);
  }
  /// Which row of the chunk the i-th of those is.
  int64_t row_of_wanted(int64_t i) const {
    if (!shared) return i;
    size_t span = 0;
    for (; i >= wanted[span].end - wanted[span].begin; ++span) i -= wanted[span].end - wanted[span].begin;
    return wanted[span].begin + i;
  }
  int64_t count_wanted(int64_t rows) const {
    int64_t sum = 0;
    for_each_wanted(rows, [&](int64_t first, int64_t last) { sum += last - first; });
    return sum;
  }
};

class Cutter {
 public:
  virtual ~Cutter() = default;
  /// Fills `chunk` (but for `file`) with the next records, at least one; false at the end of the file.
  /// Errors: Error(data) naming file, record and offset, when the end of a record cannot be told: nothing behind it is
  /// trusted.
  virtual bool next(Chunk& chunk) = 0;
  /// Bytes of the file that were read so far, where chunks do not tell: they hold the content of a packed one.
  virtual std::optional<int64_t> consumed() const { return {}; }
};

/// What became of records that are no samples.
struct BadRecords {
  int64_t count = 0;
  std::string first{};  ///< what is wrong with the first of them: file, record, offset, column, value

  void add(const auto& describe) {
    if (count++ == 0) first = describe();
  }
};

class Parser {
 public:
  virtual ~Parser() = default;
  /// Rows of the chunk, found without parsing them; parse() must follow, of the same chunk. Only for sets that can be
  /// shared.
  virtual int64_t count(Chunk& chunk) { return chunk.records; }
  /// Parses a chunk, or what is wanted of it, into `block` (emptied first). Bad records are left out and returned, or
  /// are an error, as the policy has it. Errors: Error(data) naming file, record, offset, column and value.
  virtual BadRecords parse(Chunk& chunk, SampleBlock& block) = 0;
};

/// The files of one data set. Outlives its cutters and parsers.
class SampleSet {
 public:
  virtual ~SampleSet() = default;
  virtual const std::vector<fs::path>& files() const = 0;
  /// Samples in the set, as its headers or the config promise; where nothing does, an estimate from the sizes of the
  /// files.
  virtual int64_t samples() const = 0;
  /// From `from` on, which is {} or the `begin` of a chunk of this file. One thread at a time.
  virtual std::unique_ptr<Cutter> open(size_t file, Place from) = 0;
  virtual std::unique_ptr<Parser> parser() const = 0;
  /// Whether parsers can count rows and parse some of them only: what is bad in the others must not change their
  /// number.
  virtual bool can_be_shared() const = 0;
  /// Where each record is one row with one key in each slot, and no bad one is left out: for reading rows straight into
  /// their places. Else null.
  virtual const RowMap* rows() const { return nullptr; }
};

}  // namespace hctr
