// Text files of one record a line as a set of samples: plain ones are cut by arithmetic and read by all threads, packed ones and those with
// quotes by one thread after the other, which unpacks or looks for quotes only; all threads parse.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/format_table.h"
#include "data/row_major.h"
#include "data/text_grammar.h"

namespace hctr {

using Cells = std::span<const std::string_view>;

/// Turns the cells of a record into a row. Used by all threads at once.
class RowMaker {
 public:
  virtual ~RowMaker() = default;
  /// Cells of every record.
  virtual size_t columns() const = 0;
  /// `cells`: as many as columns(). Behind each view kTextPadding bytes may be read. Returns what is wrong: "column 'price': expected …"; empty when
  /// nothing is.
  virtual std::string make(Cells cells, const RowMajor::Row& row) const = 0;
};

struct TextFormat {
  TextGrammar grammar;
  bool header = false;  ///< the first record of each file holds the names of the columns
  /// For one file, from its first record. Errors: Error(data) without the file's name.
  std::function<std::shared_ptr<const RowMaker>(Cells first_record)> maker;
};

/// One file or the files of a list. Errors: Error(io); Error(data) when the first file is empty or its maker has something against it.
std::unique_ptr<SampleSet> open_text_set(const DataClause&, const Source&, const TextFormat&, const Log&);

/// Parses whole records, text[0, size), with kTextPadding bytes behind them, into `block`. Bad ones are left out and returned, or an error, as
/// the policy has it; where(offset) names the record at that byte. Errors: Error(data); always when a quote is never closed.
BadRecords parse_text(const char* text, size_t size, const RowMaker&, std::optional<BadRecordPolicy>,
                      const std::function<std::string(size_t)>& where, RecordSplitter&, RowMajor&, SampleBlock& block);

}  // namespace hctr
