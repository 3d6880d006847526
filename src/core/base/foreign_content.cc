#include "core/base/foreign_content.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/expect.h"

namespace hctr {
namespace {

using namespace std::string_view_literals;

struct Known {
  std::string_view start, name, remedy;
};

constexpr Known kPackings[] = {{"BZh"sv, "bzip2", "bunzip2"},          {"\xFD\x37zXZ\0"sv, "xz", "unxz"},
                               {"\x04\x22\x4D\x18"sv, "lz4", "unlz4"}, {"7z\xBC\xAF\x27\x1C"sv, "7-Zip", "7z x"},
                               {"Rar!\x1A\x07"sv, "RAR", "unrar x"},   {"\x1F\x9D"sv, "compress", "uncompress"},
                               {"LZIP\x01"sv, "lzip", "lzip -d"}};

constexpr Known kOthers[] = {
    {"PK\x03\x04"sv, "a spreadsheet or another zip file", "save the table as CSV, or unpack the zip file"},
    {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv, "a document of Excel or Office", "save the table as CSV"},
    {"PAR1"sv, "a Parquet file", "set \"format\": \"Parquet\""},
    {"Obj\x01"sv, "an Avro file", "write the rows as CSV or Parquet"},
    {"ORC\x08"sv, "an ORC file", "write the rows as CSV or Parquet"},
    {"\x89HDF\r\n"sv, "an HDF5 file", "write the rows as CSV or Parquet"},
    {"\x93NUMPY"sv, "an array of NumPy", "write the rows as CSV or Parquet"},
    {"SQLite format 3\0"sv, "a database of SQLite", "write the rows as CSV"},
    {"%PDF-"sv, "a PDF", "write the rows as CSV"}};

/// Whether `text` begins with `lower`, ignoring case.
bool begins_with(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) {
           return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
         });
}

bool is_tar(std::string_view start) { return start.size() > 262 && start.substr(257).starts_with("ustar"); }

/// Counts zero bytes at even and at odd positions of the first 64 bytes.
std::pair<size_t, size_t> zeros(std::string_view start) {
  std::pair<size_t, size_t> count;
  for (size_t i = 0; i < std::min<size_t>(start.size(), 64); ++i)
    if (start[i] == '\0') ++(i % 2 ? count.second : count.first);
  return count;
}

std::string sentence(std::string_view what, std::string_view remedy) { return cat("it is ", what, "; ", remedy); }

}  // namespace

std::string foreign_packing(std::string_view start) {
  // A bzip2 file begins with "BZh", a digit and a block's magic number. Text can begin with "BZh" alone.
  if (start.starts_with("BZh") && !start.substr(std::min<size_t>(4, start.size())).starts_with("1AY&SY")) return {};
  for (const Known& known : kPackings)
    if (start.starts_with(known.start))
      return cat("is packed with ", known.name, ", which is not supported; unpack the file: ", known.remedy);
  return {};
}

std::string why_no_rows(std::string_view start) {
  if (const std::string packing = foreign_packing(start); !packing.empty()) return "it " + packing;
  for (const Known& known : kOthers)
    if (start.starts_with(known.start)) return sentence(known.name, known.remedy);
  if (is_tar(start)) return sentence("a tar archive", "unpack the archive: tar xf");
  if (start.starts_with("\xFF\xFE\0\0"sv) || start.starts_with("\0\0\xFE\xFF"sv))
    return sentence("UTF-32", "save the file as UTF-8");
  const auto [even, odd] = zeros(start);
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF") || (even + odd >= 4 && (even == 0 || odd == 0)))
    return sentence("UTF-16", "save the file as UTF-8");
  if (even + odd >= 8) return sentence("binary data", "name a text file of rows");
  if (start.starts_with("\xEF\xBB\xBF")) start.remove_prefix(3);
  const std::string_view line = start.substr(0, std::min(start.find_first_of("\r\n"), start.size()));
  if (begins_with(line, "<!doctype html") || begins_with(line, "<html"))
    return sentence("an HTML page, perhaps an error page of the server", "download it again");
  if ((line.starts_with("{\"") || line.starts_with("[{\"")) &&
      (line.ends_with('}') || line.ends_with("},") || line.ends_with("}]")))
    return sentence("JSON", "write the rows as CSV or Parquet");
  if (begins_with(line, "sep=") && line.size() <= 6)
    return cat("its first line '", line,
               "' sets Excel's delimiter and is not a row; remove the line: tail -n +2 "
               "OLD > NEW");
  if (start.find('\n') == start.npos && start.find('\r') < start.size() - 1)
    return "its lines end with a single carriage return (old Macintosh), which is not supported; write line feeds: "
           "tr '\\r' '\\n' < OLD > NEW";
  return {};
}

}  // namespace hctr
