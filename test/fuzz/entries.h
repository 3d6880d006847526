// One entry for each parser of foreign bytes. A fuzzer calls it with bytes of its own making; the unit tests with the
// files of corpus/<name>.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hctr::fuzz {

using Bytes = std::span<const uint8_t>;

// Each returns whatever the bytes are, and crashes where a promise is broken: a memory error, an Error(bug), two ways
// to one end that differ.
void norm_file(Bytes);     // a file's bytes behind one that picks the section
void raw_records(Bytes);   // the same
void csv_text(Bytes);      // a text behind two bytes: the grammar, and where it is cut in two
void criteo_text(Bytes);   // the same
void feature_spec(Bytes);  // a specification
void feature_rows(Bytes);  // a text and a binary file, behind two bytes: types and policy, and where the text ends
void file_list(Bytes);     // a list
void cell_values(Bytes);   // the text of one cell

struct Entry {
  std::string name;
  void (*run)(Bytes);
};
inline std::vector<Entry> entries() {
  return {{"norm_file", norm_file},     {"raw_records", raw_records},   {"csv_text", csv_text},
          {"criteo_text", criteo_text}, {"feature_spec", feature_spec}, {"feature_rows", feature_rows},
          {"file_list", file_list},     {"cell_values", cell_values}};
}

}  // namespace hctr::fuzz
