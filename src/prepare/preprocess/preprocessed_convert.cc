#include "prepare/preprocess/preprocessed_convert.h"

#include <charconv>
#include <limits>
#include <set>
#include <vector>

#include "core/base/expect.h"
#include "core/base/file_lock.h"
#include "core/base/input_files.h"
#include "formats/io/file_list.h"
#include "prepare/text_work.h"
#include "prepare/write/norm_set_writer.h"
#include "prepare/write/record_writer.h"

namespace hctr {
namespace {

constexpr int64_t kDense = 13, kCategories = 26;

struct Block {
  TextBlock block;
};
struct Converted {
  EncodedRecords records;
  std::vector<int64_t> keys;  // keys of all records, for key sets
};

NormStyle style_of(const PreprocessedOptions& options) {
  return {.label_dim = 1,
          .dense_dim = kDense,
          .slots = kCategories + (options.wide_keys > 0 ? 1 : 0),
          .check = options.check,
          .key_bytes = options.key_bytes};
}

void split(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) return;
    line.remove_prefix(begin);
    fields.push_back(line.substr(0, line.find_first_of(" \t")));
    line.remove_prefix(fields.back().size());
  }
}

template <class T>
T parsed(std::string_view field, const char* what, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || !(value >= least && value <= most))
    throw Error(Kind::data, cat("expected ", what, ", found '", field.substr(0, 40), "'"));
  return value;
}

Converted convert_block(const TextBlock& block, const PreprocessedOptions& options) {
  Converted done;
  const NormStyle style = style_of(options);
  const auto expected = static_cast<size_t>(1 + kDense + options.wide_keys + kCategories);
  constexpr double largest = std::numeric_limits<float>::max();
  const int64_t largest_key =
      options.key_bytes == 4 ? int64_t{std::numeric_limits<uint32_t>::max()} : std::numeric_limits<int64_t>::max();
  const char* key_word = options.key_bytes == 4 ? "a key of 32 bits" : "a key of 64 bits";
  std::vector<std::string_view> fields;
  std::vector<float> numbers;
  std::vector<int64_t> keys;
  std::vector<int32_t> nnz(static_cast<size_t>(style.slots), 1);
  if (options.wide_keys > 0) nnz[0] = static_cast<int32_t>(options.wide_keys);
  for_each_line(block, [&](std::string_view line, int64_t line_number) {
    split(line, fields);
    size_t at = 0;
    const auto where = [&] { return cat("reading '", block.file, "' line ", line_number, ", field ", at + 1); };
    in_context(where, [&] {
      if (fields.size() != expected)
        throw Error(Kind::data, cat("expected ", expected, " fields (label, ", kDense, " dense values, ",
                                    options.wide_keys > 0 ? cat(options.wide_keys, " wide keys, ") : "", kCategories,
                                    " keys), found ", fields.size()));
      numbers.clear();
      keys.clear();
      for (; at < 1 + kDense; ++at)
        numbers.push_back(static_cast<float>(parsed(fields[at], "a number", -largest, largest)));
      for (; at < expected; ++at) keys.push_back(parsed(fields[at], key_word, int64_t{0}, largest_key));
    });
    append_norm_record(style, std::span(numbers).first(1), std::span(numbers).subspan(1), nnz, keys,
                       done.records.bytes);
    done.records.ends.push_back(done.records.bytes.size());
    if (options.keyset) done.keys.insert(done.keys.end(), keys.begin(), keys.end());
  });
  return done;
}

/// The path of a list, `<stem>.<n><ending>`, or of its key set.
fs::path numbered(const fs::path& list, int64_t n, bool only_one, const std::string& ending) {
  return list.parent_path() / (list.stem().string() + (only_one ? "" : cat(".", n)) + ending);
}

/// Collects the distinct keys of one list at a time.
class KeySets {
 public:
  explicit KeySets(const PreprocessedOptions& options)
      : options_(options),
        keys_per_row_(options.wide_keys + kCategories),
        rows_per_list_(options.files_per_list > 0 ? options.files_per_list * options.rows_per_file
                                                  : std::numeric_limits<int64_t>::max()) {}

  void add(const std::vector<int64_t>& keys) {
    for (size_t i = 0; i < keys.size(); i += static_cast<size_t>(keys_per_row_)) {
      if (rows_ == rows_per_list_) write();
      keys_.insert(keys.begin() + static_cast<ptrdiff_t>(i), keys.begin() + static_cast<ptrdiff_t>(i) + keys_per_row_);
      ++rows_;
    }
  }
  void write() {
    if (rows_ == 0) return;
    AtomicFile file(numbered(options_.list, list_++, options_.files_per_list == 0, ".keyset"));
    for (const int64_t key : keys_)
      // the machine is little-endian: the low bytes come first
      file.write(&key, static_cast<size_t>(options_.key_bytes));
    file.commit();
    keys_.clear();
    rows_ = 0;
  }

 private:
  const PreprocessedOptions& options_;
  int64_t keys_per_row_, rows_per_list_, rows_ = 0, list_ = 0;
  std::set<int64_t> keys_;
};

/// The lists and key sets of an earlier run that this run would overwrite: numbers 0, 1, ... up to the first missing
/// one.
std::vector<fs::path> old_lists(const PreprocessedOptions& options) {
  const bool only_one = options.files_per_list == 0;
  std::vector<fs::path> old;
  for (int64_t n = 0; n == 0 || (!only_one && fs::exists(old[old.size() - 2])); ++n)
    for (const std::string& ending : {options.list.extension().string(), std::string(".keyset")})
      old.push_back(numbered(options.list, n, only_one, ending));
  return old;
}

int64_t write_lists(const PreprocessedOptions& options, const std::vector<fs::path>& files) {
  const auto per_list = options.files_per_list > 0 ? static_cast<size_t>(options.files_per_list) : files.size();
  int64_t lists = 0;
  for (size_t first = 0; first < files.size(); first += per_list) {
    const std::vector<fs::path> part(files.begin() + static_cast<ptrdiff_t>(first),
                                     files.begin() + static_cast<ptrdiff_t>(std::min(first + per_list, files.size())));
    write_file_list(numbered(options.list, lists++, options.files_per_list == 0, options.list.extension().string()),
                    part, false);
  }
  return lists;
}

}  // namespace

PreprocessedSummary convert_preprocessed(const PreprocessedOptions& options, const Log& log) {
  if (options.list.extension().empty())
    throw Error(Kind::usage,
                cat("the name of the file list, '", options.list.string(), "', needs an ending such as .txt"));
  if (options.wide_keys < 0 || options.wide_keys > 1 << 20 || options.files_per_list < 0)
    throw Error(Kind::usage, "the number of wide keys and the number of files per list must be at least 0");
  TextSource source({options.input});
  source.expect_readable();  // reports errors before older lists are removed
  const FileLock list_lock(options.list, "the file list"), data_lock(options.prefix + ".", "the prefix");
  const std::vector<fs::path> old = old_lists(options);
  for (const fs::path& list : old) expect_no_input(list, "the file list", {options.input});
  const fs::path prefix(options.prefix);
  expect_no_input_in(
      prefix.has_parent_path() ? prefix.parent_path() : ".", "the data file of the prefix", {options.input},
      [start = prefix.filename().string()](const std::string& name) { return is_numbered(name, start, ".data"); });
  remove_older_results(old, true);
  NormSetWriter set(style_of(options), options.rows_per_file,
                    [prefix = options.prefix](int64_t n) { return fs::path(cat(prefix, n, ".data")); });
  KeySets key_sets(options);
  for_each_block<Block, Converted>(
      source, options.threads, options.progress, "converting",
      [&](Block& item) { return convert_block(item.block, options); },
      [&](Converted& done) {
        set.add(done.records, 0, done.records.count());
        key_sets.add(done.keys);
      });
  PreprocessedSummary summary{.rows = set.records()};
  if (summary.rows == 0) throw Error(Kind::data, cat("'", options.input, "' holds no rows"));
  if (options.keyset) key_sets.write();
  const std::vector<fs::path> files = set.finish();
  summary.files = static_cast<int64_t>(files.size());
  summary.lists = write_lists(options, files);
  log.info(summary.rows, " rows in ", summary.files, " files");
  return summary;
}

}  // namespace hctr
