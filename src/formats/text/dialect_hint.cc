#include "formats/text/dialect_hint.h"

namespace hctr {
namespace {

std::string_view without_line_end(std::string_view record) {
  while (record.ends_with('\n') || record.ends_with('\r')) record.remove_suffix(1);
  return record;
}

}  // namespace

bool has_backslash_escapes(std::string_view record, const TextGrammar& grammar) {
  record = without_line_end(record);
  for (size_t at = record.find('\\'); at != record.npos; at = record.find('\\', at + 2)) {
    if (at + 1 == record.size()) return true;
    const char next = record[at + 1];
    if (next == '"' || next == grammar.delimiter || next == '\n' || (grammar.quote != 0 && next == grammar.quote))
      return true;
  }
  return false;
}

const char* backslash_words() {
  return "; a backslash escapes a quote, delimiter or line end, as in files of Spark, Hive and MySQL, which is not "
         "supported: put such cells in quotes, and double the quotes inside (in Spark: option(\"escape\", '\"'))";
}

bool looks_like_comment(std::string_view record) {
  return record.starts_with('#') || record.starts_with("//") || record.starts_with('%') || record.starts_with("--");
}

std::string dialect_hint(const RefusedRecord& record, const TextGrammar& grammar) {
  if (has_backslash_escapes(record.text, grammar)) return backslash_words();
  if (record.found < record.expected && looks_like_comment(record.text))
    return "; the line looks like a comment, which is not supported: remove such lines";
  if (record.header && record.found == record.expected + 1)
    return "; a cell that contains a delimiter needs quotes; if every row has one value more than the header, the "
           "file has row names of R: write the file with row.names = FALSE";
  return {};
}

}  // namespace hctr
