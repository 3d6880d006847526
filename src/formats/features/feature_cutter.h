// Cuts a mapping of a feature specification into chunks. A chunk contains the same rows of all columns, from several
// files. The cutter locates rows of binary files by arithmetic, and the parser reads them. The cutter reads and counts
// the rows of text files.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expect.h"
#include "formats/data/sample_set.h"
#include "formats/data/text_grammar.h"
#include "formats/features/feature_plan.h"
#include "formats/io/byte_stream.h"

namespace hctr {

/// Reads ahead in one CSV file and returns its rows. Blank lines are not rows.
class CsvLines {
 public:
  explicit CsvLines(const fs::path&);

  /// Reads ahead and returns how many of the next `rows` rows the file has. Errors: those of ByteStream; Error(data)
  /// for a line of more than a megabyte.
  int64_t ready(int64_t rows);
  /// Returns the text of the next `rows` rows, including preceding blank lines. Call ready(rows) first; it must return
  /// `rows`. The text is valid until the next call of ready().
  std::string_view take(int64_t rows);
  /// Number of lines before the next row, not counting blank lines directly before the row.
  int64_t line() const { return line_; }
  /// Bytes of the file read so far.
  int64_t consumed() const { return consumed_; }

 private:
  bool read_on();
  void look_at_start();

  struct End {  // the end of a row
    size_t at;
    int64_t lines;  // number of lines up to the end
  };
  fs::path path_;
  std::unique_ptr<ByteStream> stream_;
  std::string text_;
  std::vector<End> ends_;
  size_t taken_ = 0;             // number of entries of ends_ already returned
  size_t begin_ = 0, seen_ = 0;  // offsets in text_: begin_: next row; seen_: end of the part searched for line ends
  int64_t line_ = 0, lines_ = 0, consumed_ = 0;
};

class FeatureCutter : public Cutter {
 public:
  /// Reads rows [from, most), or all rows from `from` on if `most` is empty. Errors: Error(data) if there are fewer
  /// rows.
  FeatureCutter(const FeaturePlan&, int64_t from, std::optional<int64_t> most);

  /// Cuts the next chunk, which contains the same rows of every group. The rows of a group are in one file. Errors:
  /// those of CsvLines; Error(data) if groups have different numbers of rows.
  bool next(Chunk& chunk) override;
  /// Bytes read so far, over all files.
  std::optional<int64_t> consumed() const override;

 private:
  struct Track {  // the position in one group of columns
    size_t file = 0;
    int64_t row = 0;                       // binary group: row index in the file
    std::shared_ptr<const ByteFile> open;  // the current file of a binary group
    std::unique_ptr<CsvLines> lines;       // the lines of a CSV group
    int64_t before = 0;                    // bytes of finished files
  };
  /// Number of rows up to the end of the current file; for a CSV file at most `rows`. 0 at the end of the group.
  int64_t ready(size_t group, int64_t rows);
  int64_t consumed(size_t group) const;  // bytes read of the open file
  void finish(const std::vector<int64_t>& ready) const;

  const FeaturePlan& plan_;
  std::vector<Track> tracks_;
  std::vector<int64_t> ready_;
  int64_t row_, chunk_rows_;
  std::optional<int64_t> most_;
};

/// Calls visit(line, line number from 1) for each row of a CSV group in a chunk, until visit returns false.
template <class Visit>
void for_each_csv_row(const Chunk& chunk, const ChunkPart& part, const Visit& visit) {
  std::string_view text(reinterpret_cast<const char*>(chunk.buffer.data()) + part.begin, part.end - part.begin);
  for (int64_t number = part.first + 1; !text.empty(); ++number) {
    const size_t newline = text.find('\n');
    const std::string_view line = without_returns(text.substr(0, newline));
    text.remove_prefix(newline + 1);
    if (!line.empty() && !visit(line, number)) return;
  }
}

/// Splits a row of a CSV group into cells. Sets `problem` if the number of cells differs from the group's width.
class FeatureCells {
 public:
  std::span<const std::string_view> split(const FeatureGroup& group, std::string_view line, std::string& problem) {
    splitter_.split(line.data(), line.data() + line.size());
    problem.clear();
    if (splitter_.cells().size() != group.width)
      problem = cat("expected ", group.width, " values separated by commas, one for each feature of the chunk, found ",
                    splitter_.cells().size());
    return splitter_.cells();
  }

 private:
  RecordSplitter splitter_{{.delimiter = ',', .quote = 0}};
};

}  // namespace hctr
