#include "support/norm_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <sstream>

#include "support/run_program.h"

namespace hctr::test {

std::filesystem::path listed_file(const std::filesystem::path& list, size_t number) {
  std::istringstream lines(read_file(list));
  std::string line;
  for (size_t i = 0; i < number + 2; ++i) std::getline(lines, line);  // the first line is the file count
  return list.parent_path() / line;
}

void set_norm_float(const std::filesystem::path& file, size_t record, size_t before, float value) {
  std::string bytes = read_file(file);
  // The header is framed like a record: length, bytes, checksum.
  size_t at = 0;
  int32_t length = 0;
  for (size_t r = 0;; ++r) {
    ASSERT_LT(at + sizeof length, bytes.size()) << file << " has no record " << record;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    at += sizeof length;
    if (r == record + 1) break;
    at += static_cast<size_t>(length) + 1;
  }
  char* const payload = bytes.data() + at;
  std::memcpy(payload + before * sizeof value, &value, sizeof value);
  payload[length] = static_cast<char>(std::accumulate(payload, payload + length, 0));
  write_file(file, bytes);
}

}  // namespace hctr::test
