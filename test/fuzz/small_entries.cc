// Fuzz entries for file lists and for the values of single cells.
#include <cstdio>

#include "formats/data/text_values.h"
#include "formats/io/file_list.h"
#include "fuzz/entry_tools.h"

namespace hctr::fuzz {

void file_list(Bytes bytes) {
  const MemoryFile file(bytes);
  tolerate([&] {
    const auto files = read_file_list(file.path(), Log::silent());
    expect(!files.empty());
  });
}

void cell_values(Bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  double number = 0;
  int64_t integer = 0;
  uint64_t hex = 0;
  if (read_number(text, number)) {  // strtod must return the same number as the fast parser
    char* end = nullptr;
    const std::string ended = text + "\n";
    expect(std::strtod(ended.c_str(), &end) == number);
  }
  if (read_integer(text, integer)) {
    expect(std::strtoll(text.c_str(), nullptr, 10) == integer);
    double same = 0;
    expect(read_number(text, same) && same == static_cast<double>(integer));
  }
  const bool is_hex = read_hex(text, hex);
  if (text.size() == 8)
    expect((eight_hex_digits(text.data()) >= 0) == is_hex &&
           (!is_hex || eight_hex_digits(text.data()) == static_cast<int64_t>(hex)));
  expect(text_hash(text, 1) == text_hash(std::string(text), 1));
}

}  // namespace hctr::fuzz
