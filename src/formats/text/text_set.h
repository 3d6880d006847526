// Text files with one record per line as a SampleSet. Plain files without quoting are cut by arithmetic and read by all
// threads. Other files (compressed, or with quoting) are read by one thread at a time, which only decompresses and
// finds record ends. All threads parse.
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

/// Converts the cells of a record to a row of a block. Thread-safe.
class RowMaker {
 public:
  virtual ~RowMaker() = default;
  /// Number of cells per record.
  virtual size_t columns() const = 0;
  /// Values of columns that are not in the records, such as partitions.
  virtual Cells added() const { return {}; }
  /// The names of the columns of added().
  virtual std::span<const std::string> added_columns() const { return {}; }
  /// Converts `cells`: the columns() cells of the record, then the cells of added(). Returns the problem, such as
  /// "column 'price': expected …"; empty if the record is valid.
  virtual std::string make(Cells cells, const RowMajor::Row& row) const = 0;
  /// Whether records have labels.
  virtual bool has_labels() const { return true; }
  /// The name of the weight column if it is configured but missing, so that every weight is 1; else empty.
  virtual std::string missing_weight() const { return ""; }
};

struct TextFormat {
  TextGrammar grammar;
  bool header = false;  ///< the first record of each file contains the column names
  /// Creates the RowMaker of one file from its first record and its partitions. Errors: Error(data) without the file
  /// name.
  std::function<std::shared_ptr<const RowMaker>(Cells first_record, const std::vector<Partition>&)> maker;
  /// The column names of a file, from its first record.
  std::function<std::vector<std::string>(Cells first_record)> columns;
};

/// Opens one file or the files of a list. Errors: Error(io); Error(data) if the first file is empty or `maker` fails.
std::unique_ptr<SampleSet> open_text_set(const DataSection&, const Source&, const TextFormat&, const Log&);

/// Sets `begins` to the start of each record in text[0, size), and the end of the last. Blank lines are not records.
void find_records(const char* text, size_t size, const TextGrammar&, RecordSplitter&, std::vector<uint32_t>& begins);

/// How the records of a file are parsed.
struct TextParsing {
  const TextFormat& format;
  const RowMaker& maker;
  std::optional<BadRecordPolicy> policy;     ///< whether a bad record is skipped, or is an error
  std::function<std::string(size_t)> where;  ///< describes the record at an offset for messages
};
/// Parses the complete records of a text from offset `begin` on into `rows`, and adds skipped records to `bad`. Errors:
/// Error(data). If the policy skips bad records, this error occurs only for a quote that is not closed.
void parse_text(std::string_view text, size_t begin, const TextParsing&, RecordSplitter&, RowMajor& rows,
                BadRecords& bad);

}  // namespace hctr
