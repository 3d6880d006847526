// Converts the rows of a mapping's files to samples, column by column, so that each inner loop converts values of one
// type.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/data/sample_set.h"
#include "formats/features/feature_cutter.h"

namespace hctr {

class FeatureParser : public Parser {
 public:
  /// `plan` must outlive the parser.
  FeatureParser(const FeaturePlan& plan, std::optional<BadRecordPolicy> policy) : plan_(plan), policy_(policy) {}

  /// Parses a chunk. A row is bad in four cases: a value does not fit its feature's type; an id is negative or not
  /// below its limit; a number is not finite; a line has the wrong number of cells.
  BadRecords parse_rows(Chunk& chunk, const RowSelection& rows, SampleBlock& block) override;

 private:
  template <class Describe>
  void mark(int64_t row, const char* unit, Describe&& describe);
  void parse_binary(const FeatureGroup&, const ChunkPart&, const RowSelection&, SampleBlock&);
  void parse_csv(const FeatureGroup&, const ChunkPart&, const Chunk&, const RowSelection&, SampleBlock&);
  std::string parse_line(const FeatureGroup&, std::string_view line, int64_t row, int64_t rows, SampleBlock&);
  void name_bad(const FeatureField&, const ChunkPart&, const RowSelection&, int64_t begin, int64_t end, size_t width);
  void leave_out_bad(int64_t rows, SampleBlock&);

  const FeaturePlan& plan_;
  std::optional<BadRecordPolicy> policy_;
  std::vector<std::byte> bytes_;  // rows of a binary group
  FeatureCells cells_;            // cells of a line
  bool names_bad_ = false;
  std::map<int64_t, BadRecord> named_;  // bad rows by index, if every bad row is to be described
  std::vector<uint8_t> is_bad_;         // [rows]
  int64_t rows_ = 0;                    // number of parsed rows
  int64_t bad_ = 0, first_bad_ = 0;
  std::string problem_;  // description of the first bad row
};

}  // namespace hctr
