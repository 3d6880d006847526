// Saves a table's vocabularies and statistics to files, so that later rows can be encoded in the same way.
#pragma once

#include <string>
#include <vector>

#include "prepare/preprocess/preprocess.h"

namespace hctr {

/// The file of vocabularies, next to preprocess.json. Layout: "HCTRVOC2"; the number of slots; the vocabulary of each
/// slot; the CRC-32 of all preceding bytes. A vocabulary has four counts (kept codes, distinct values, missing values,
/// occurrences of dropped values), then the kept codes in the order of their ids, from id 2. All numbers are 64-bit
/// little-endian. "HCTRVOC1" is the same without the checksum.
inline constexpr const char* kVocabularyFile = "vocabulary.bin";

/// A hash of everything that determines the encoding (columns, crosses, hashing, scaling, ids of values), as 16
/// hexadecimal digits.
std::string numbering_of(const PreprocessOptions&, const FittedColumns&);

/// The "columns" object of preprocess.json.
Json describe_columns(const PreprocessOptions&, const FittedColumns&);
/// Errors: Error(io).
void write_vocabularies(const fs::path&, const FittedColumns&);

/// A saved encoding.
struct SavedColumns {
  bool criteo = false;
  TextRoles roles;                                           ///< roles of the columns of a CSV file
  std::vector<std::pair<std::string, std::string>> crosses;  ///< names of paired categories
  int passes = 2;
  int64_t range = 0, modulo = 0, min_count = 1;
  DenseOptions dense;
  FittedColumns fitted;
  std::string numbering;
};

/// Reads preprocess.json and the vocabulary file next to it. Warns if an older version wrote a file without a checksum.
/// Errors: Error(io); Error(data) if "columns" is missing, if a file is damaged, or if the two files do not belong
/// together.
SavedColumns read_columns(const fs::path& preprocess_json, const Log& = Log::silent());
/// Applies the encoding to other rows. For a CSV file, the options' table must already have the saved roles. Errors:
/// Error(bug) if the table lacks a category of a saved cross.
void apply_columns(SavedColumns, PreprocessOptions&);

}  // namespace hctr
