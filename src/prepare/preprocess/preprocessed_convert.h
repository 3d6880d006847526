// Converts text files from HugeCTR 2.x's preprocessing. The output is Norm files in the layout of HugeCTR's
// criteo2hugectr.
#pragma once

#include <string>

#include "core/base/files.h"
#include "core/base/log.h"
#include "formats/data/data_section.h"

namespace hctr {

/// A line has the label, 13 dense values, `wide_keys` keys of the wide slot and 26 category keys, separated by blanks.
struct PreprocessedOptions {
  std::string input;   ///< plain or gzip; "-": standard input
  std::string prefix;  ///< data files are <prefix><n>.data
  fs::path list;
  int64_t wide_keys = 0;       ///< number of keys in slot 0; 0: no wide slot
  int64_t files_per_list = 0;  ///< 0: all files are in `list`; otherwise the lists are <stem of list>.<n><ending>
  int64_t rows_per_file = 40960;
  int key_bytes = 4;
  Check check = Check::sum;
  bool keyset = false;  ///< whether to write <stem>.keyset for each list: its distinct keys in ascending order
  int threads = 1;
  ShowProgress progress{};  ///< shows the progress; null: not shown
};

struct PreprocessedSummary {
  int64_t rows = 0, files = 0, lists = 0;
};

/// Converts the text. Key sets need memory for the distinct keys of a list. Errors: Error(data) with file, line, field
/// and value.
PreprocessedSummary convert_preprocessed(const PreprocessedOptions&, const Log&);

}  // namespace hctr
