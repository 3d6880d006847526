// Text files with one record per line as a sample set. Plain files are cut by arithmetic, and all threads read them.
// Compressed files and files with quotes are read by one thread at a time, which only decompresses or looks for quotes.
// All threads parse.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "formats/data/sample_set.h"
#include "formats/data/source.h"
#include "formats/data/text_grammar.h"
#include "formats/io/source_files.h"
#include "formats/text/row_major.h"

namespace hctr {

using Cells = std::span<const std::string_view>;

/// Converts the cells of a record to a row. Thread-safe.
class RowMaker {
 public:
  virtual ~RowMaker() = default;
  /// The number of cells of every record.
  virtual size_t columns() const = 0;
  /// The values of columns that no record holds, as those of partitions, and the names of these columns.
  virtual Cells added() const { return {}; }
  virtual std::span<const std::string> added_columns() const { return {}; }
  /// Converts `cells`, which has columns() elements and those of added(). Returns the problem, such as "column 'price':
  /// expected …", or an empty text.
  virtual std::string make(Cells cells, const RowMajor::Row& row) const = 0;
  /// Whether records have labels.
  virtual bool has_labels() const { return true; }
  /// The column of weights where it is wanted and missing; each sample counts once.
  virtual std::string missing_weight() const { return ""; }
};

struct TextFormat {
  TextGrammar grammar;
  bool header = false;  ///< the first record of each file holds the column names
  /// Makes the converter of one file from its first record and its partitions. Errors: Error(data) without the file's
  /// name.
  std::function<std::shared_ptr<const RowMaker>(Cells first_record, const std::vector<Partition>&)> maker;
  /// The names of all columns of a file, from its first record.
  std::function<std::vector<std::string>(Cells first_record)> columns;
};

/// Opens one file or the files of a list. Errors: Error(io); Error(data) when the first file is empty or its converter
/// cannot be made.
std::unique_ptr<SampleSet> open_text_set(const DataSection&, const Source&, const TextFormat&, const Log&);

/// Returns the start of each whole record of text[0, size), and the end of the last. Blank lines are not records.
void find_records(const char* text, size_t size, const TextGrammar&, RecordSplitter&, std::vector<uint32_t>& begins);

/// Parses whole records, text[begin, end), into `rows`. A bad record is skipped and added to `bad`, or is an error,
/// depending on the policy. where(offset) describes the record at that byte for messages. Errors: Error(data); also
/// with the skip policy when a quote is never closed.
void parse_text(const char* text, size_t begin, size_t end, const RowMaker&, std::optional<BadRecordPolicy>,
                const std::function<std::string(size_t)>& where, RecordSplitter&, const TextFormat&, RowMajor& rows,
                BadRecords& bad);

}  // namespace hctr
