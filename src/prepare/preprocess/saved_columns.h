// Files with a table's vocabularies and statistics, by which later rows are encoded too.
#pragma once

#include <string>
#include <vector>

#include "prepare/preprocess/preprocess.h"

namespace hctr {

/// The file of vocabularies, next to preprocess.json: "HCTRVOC2", the number of slots, then of each the number of kept
/// codes, of distinct values, of missing ones and of occurrences of dropped ones, then the codes by id from 2 on; at
/// the end the CRC-32 of all before it. All of 64 bits, little-endian. "HCTRVOC1" is the same without the checksum.
inline constexpr const char* kVocabularyFile = "vocabulary.bin";

/// 16 hexadecimal digits that differ between encodings: of columns, crosses, hashing, scaling and the ids of values.
std::string numbering_of(const PreprocessOptions&, const FittedColumns&);

/// The object "columns" of preprocess.json.
Json describe_columns(const PreprocessOptions&, const FittedColumns&);
/// Errors: Error(io).
void write_vocabularies(const fs::path&, const FittedColumns&);

/// An encoding that was saved.
struct SavedColumns {
  bool criteo = false;
  TextRoles roles;                                           ///< roles of the columns of a CSV
  std::vector<std::pair<std::string, std::string>> crosses;  ///< pairs of categories
  int passes = 2;
  int64_t range = 0, modulo = 0, min_count = 1;
  DenseOptions dense;
  FittedColumns fitted;
  std::string numbering;
};

/// From preprocess.json and the file of vocabularies next to it. Warns of files that an older version wrote without a
/// checksum. Errors: Error(io); Error(data) for a file without "columns", for one that is damaged, and where the two do
/// not belong together.
SavedColumns read_columns(const fs::path& preprocess_json, const Log& = Log::silent());
/// Applies the encoding to other rows. The table of a CSV has its roles already. Errors: Error(bug) otherwise.
void apply_columns(SavedColumns, PreprocessOptions&);

}  // namespace hctr
