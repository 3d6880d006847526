// Finds the files of a table for --init.
#pragma once

#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"

namespace hctr {

struct TableFiles {
  bool parquet = false;
  std::vector<fs::path> paths;
};
/// `of`: text that follows the source in messages, either " of --eval" or "". Errors: Error(io) if there is no file;
/// Error(usage) for input that can be read only once.
TableFiles table_files(const fs::path& source, const Log&, const char* of = "");

}  // namespace hctr
