// Text files of one record a line as a set of samples. Plain files are cut by arithmetic and read by all threads.
// Compressed files and those with quotes are read by one thread at a time, which only decompresses or looks for quotes.
// All threads parse.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "data/sample_set.h"
#include "data/source.h"
#include "data/text/row_major.h"
#include "data/text_grammar.h"

namespace hctr {

using Cells = std::span<const std::string_view>;

/// Turns the cells of a record into a row. Thread-safe.
class RowMaker {
 public:
  virtual ~RowMaker() = default;
  /// Cells of every record.
  virtual size_t columns() const = 0;
  /// `cells`: as many as columns(). Returns what is wrong: "column
  /// 'price': expected …"; empty when nothing is.
  virtual std::string make(Cells cells, const RowMajor::Row& row) const = 0;
};

struct TextFormat {
  TextGrammar grammar;
  bool header = false;  ///< the first record of each file holds the names of the columns
  /// For one file, from its first record. Errors: Error(data) without the file's name.
  std::function<std::shared_ptr<const RowMaker>(Cells first_record)> maker;
};

/// One file or the files of a list. Errors: Error(io); Error(data) when the first file is empty or its maker has
/// something against it.
std::unique_ptr<SampleSet> open_text_set(const DataSection&, const Source&, const TextFormat&, const Log&);

/// Where the whole records of text[0, size) begin, and the last ends; blank lines are none.
void find_records(const char* text, size_t size, TextGrammar, RecordSplitter&, std::vector<uint32_t>& begins);

/// Parses whole records, text[begin, end), into `rows`. Bad ones are left out and
/// added to `bad`, or an error, as the policy has it; where(offset) names the record at that byte. Errors: Error(data);
/// always when a quote is never closed.
void parse_text(const char* text, size_t begin, size_t end, const RowMaker&, std::optional<BadRecordPolicy>,
                const std::function<std::string(size_t)>& where, RecordSplitter&, RowMajor& rows, BadRecords& bad);

}  // namespace hctr
