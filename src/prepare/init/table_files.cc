#include "prepare/init/table_files.h"

#include "core/base/expect.h"
#include "formats/io/set_files.h"
#include "formats/io/source_files.h"

namespace hctr {
namespace {

void expect_to_be_read_again(const fs::path& path, const char* of) {
  if (!source_exists(path))
    throw Error(Kind::io, cat("cannot open '", path.string(), "'", of, ": there is no such file"));
  if (fs::exists(path) && !fs::is_directory(path) && !fs::is_regular_file(path))
    throw Error(Kind::usage, cat("'", path.string(), "'", of,
                                 " is a pipe or a device, but --init reads the rows several times: name a file"));
}

}  // namespace

TableFiles table_files(const fs::path& source, const Log& log, const char* of) {
  expect_to_be_read_again(source, of);
  TableFiles files;
  files.parquet = is_parquet(raw_files(source, Log::silent(), true)[0]);
  files.paths = files.parquet ? parquet_files(source, log) : text_files(source, log);
  for (const fs::path& file : files.paths) expect_to_be_read_again(file, of);
  return files;
}

}  // namespace hctr
