// Every reader reports the format of a foreign file, and how to convert the file.
#include "core/base/foreign_content.h"

#include <gtest/gtest.h>

#include "formats/io/byte_stream.h"
#include "formats/text/criteo_set.h"
#include "formats/text/csv_set.h"
#include "prepare/init/text_layout.h"
#include "prepare/init/text_pass.h"
#include "prepare/text_source.h"
#include "unit/formats/data/packed_files.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

using namespace std::string_literals;

std::string tar_of(const std::string& content) {
  std::string header(512, '\0');
  header.replace(0, 5, "a.csv");
  header.replace(257, 8, "ustar  \0"s);
  return header + content + std::string(1024, '\0');
}

std::string wide(const std::string& text, bool little) {
  std::string both;
  for (const char c : text) both += little ? std::string{c, '\0'} : std::string{'\0', c};
  return both;
}

const std::string kRows = "y,a\n1,2\n0,3\n1,4\n";

TEST(ForeignContent, EveryKindIsNamedWithARemedy) {
  const std::pair<std::string, const char*> kinds[] = {
      {"BZh91AY&SY\x12\x34", "it is packed with bzip2, which is not supported; unpack the file: bunzip2"},
      {"\xFD\x37zXZ\0\0\4"s, "it is packed with xz, which is not supported; unpack the file: unxz"},
      {"\x04\x22\x4D\x18\x64"s, "packed with lz4"},
      {"7z\xBC\xAF\x27\x1C\0\4"s, "packed with 7-Zip"},
      {"PK\x03\x04\x14"s, "it is a spreadsheet or another zip file; save the table as CSV, or unpack the zip file"},
      {"PAR1\x15"s, "it is a Parquet file; set \"format\": \"Parquet\""},
      {tar_of(kRows), "it is a tar archive; unpack the archive: tar xf"},
      {"\xFF\xFE" + wide(kRows, true), "it is UTF-16; save the file as UTF-8"},
      {wide(kRows, true), "it is UTF-16"},
      {wide(kRows, false), "it is UTF-16"},
      {std::string(16, '\0') + "\1\2\3\4", "it is binary data"},
      {"<!DOCTYPE HTML>\n<html>", "an HTML page"},
      {"{\"y\": 1, \"a\": 2}\n{\"y\": 0, \"a\": 3}\n", "it is JSON"},
      {"[{\"y\": 1},\n{\"y\": 0}]\n", "it is JSON"},
      {"\xFF\xFE\0\0y\0\0\0"s, "it is UTF-32"},
      {"sep=;\ny;a\n1;2\n", "its first line 'sep=;' sets Excel's delimiter and is not a row"},
      {"\xEF\xBB\xBFSEP=,\r\ny,a\r\n", "sets Excel's delimiter"},
      {"y,a\r1,2\r0,3\r", "its lines end with a single carriage return"}};
  for (const auto& [start, what] : kinds) EXPECT_NE(why_no_rows(start).find(what), std::string::npos) << what;
}

TEST(ForeignContent, TextsThatBeginAlikeAreTexts) {
  for (const std::string& text : {kRows, "BZh9,1\n2,3\n"s, "\xEF\xBB\xBF" + kRows, "PK,a\n1,2\n"s, "y,a\r\n1,2\r\n"s,
                                  "one line"s, "one line\r"s, ""s, "ORC,a\n1,2\n"s, "sep,a\n1,2\n"s,
                                  "sep=what is it,a\n"s, "{\"\"a\"\"},1\n"s, "{\"a\": 1}\t0\n"s, "ab\0cd,1\n"s})
    EXPECT_EQ(why_no_rows(text), "") << text;
}

TEST(ForeignContent, EveryReaderOfTextsNamesFileAndKind) {
  const Folder folder;
  const std::string path = folder / "a";
  DataSection csv = section_of(1, 1, {}), criteo = section_of(1, 13, {input_of("x", 26, 1, 26)});
  csv.format = kCsvFormat;
  csv.options.edit<CsvOptions>().labels = {"y"};
  csv.options.edit<CsvOptions>().dense = {{{"a"}, {}, {}, {}, {}}};
  criteo.format = kCriteoFormat;
  criteo.options.edit<CriteoTextOptions>() = {};
  const auto expect_named = [&](const std::string& kind) {
    EXPECT_SAYS(message_of([&] { expect_reads(csv, path, {}); }), kind);
    EXPECT_SAYS(message_of([&] { expect_reads(csv, path, {}); }), path);
    EXPECT_SAYS(message_of([&] { expect_reads(criteo, path, {}); }), kind);
    EXPECT_SAYS(message_of([&] { first_record_of(path, {}); }), kind);
    EXPECT_SAYS(message_of([&] { first_record_of(path, {}); }), path);
    EXPECT_SAYS(message_of([&] { guess_layout(start_of_text(path), "y"); }), kind);
  };
  for (const bool packed : {false, true}) {  // packed: a .tar.gz file with another extension
    const auto write = [&](const std::string& text) { packed ? write_gzip(path, text) : write_text(path, text); };
    write(tar_of(kRows));
    expect_named("a tar archive");
    write("y,a\r1,2\r0,3\r");
    expect_named("a single carriage return");
    write("\xFF\xFE" + wide(kRows, true));
    expect_named("UTF-16");
    write("BZh91AY&SY\x12\x34");
    expect_named("packed with bzip2, which is not supported; unpack the file: bunzip2");
    write("PK\x03\x04\x14 and so on");
    expect_named("zip file");
  }
}

}  // namespace
}  // namespace hctr::data_test
