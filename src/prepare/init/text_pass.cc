#include "prepare/init/text_pass.h"

#include <algorithm>
#include <utility>

#include "core/base/expect.h"
#include "core/base/progress.h"
#include "formats/data/text_values.h"
#include "formats/io/byte_stream.h"
#include "formats/text/dialect_hint.h"
#include "formats/text/text_cutters.h"
#include "prepare/init/added_cells.h"

namespace hctr {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// The bytes of a record without its line end.
std::string_view bare_record(const char* begin, const char* end) {
  if (end > begin && end[-1] == '\n') --end;
  return without_returns({begin, static_cast<size_t>(end - begin)});
}

/// Calls visit(bytes, cells, problem, line) for each non-blank record of a file.
template <class Visit>
void for_each_record(const fs::path& path, const TextGrammar& grammar, const std::function<void(int64_t)>& done,
                     const Visit& visit) {
  StreamCutter cutter(path, grammar, 0);
  RecordSplitter splitter(grammar);
  int64_t lines = 1;
  bool first = true;
  for (Chunk chunk; cutter.next(chunk); first = false) {
    const char* p = reinterpret_cast<const char*>(chunk.buffer.data());
    const char *const begin = p, *const end = p + chunk.bytes;
    if (first && std::string_view(p, static_cast<size_t>(chunk.bytes)).starts_with(kByteOrderMark))
      p += kByteOrderMark.size();
    while (p < end) {
      const char* next = splitter.split(p, end);
      const std::string_view record = bare_record(p, next);
      const auto line = [&, p] { return lines + std::count(begin, p, '\n'); };
      if (splitter.unclosed())
        throw Error(Kind::data, cat("'", path.string(), "' line ", line(), ": ", splitter.problem()));
      if (!is_blank(splitter.cells())) visit(record, splitter.cells(), splitter.problem(), line);
      p = next;
    }
    lines += std::count(begin, end, '\n');
    done(cutter.consumed().value_or(0));
  }
}

size_t column_index(const std::vector<std::string>& columns, const std::string& name) {
  return static_cast<size_t>(std::find(columns.begin(), columns.end(), name) - columns.begin());
}

/// [column] whether it is a feature, that is, not the label and not named in --leave-out.
std::vector<char> feature_columns(const std::vector<std::string>& columns, const InitOptions& options) {
  std::vector<char> features;
  for (const std::string& column : columns)
    features.push_back(column != options.label && std::find(options.leave_out.begin(), options.leave_out.end(),
                                                            column) == options.leave_out.end());
  return features;
}

uint64_t hash_of_features(std::span<const std::string_view> cells, const std::vector<char>& features) {
  uint64_t hash = kHoldOutSeed;
  for (size_t i = 0; i < cells.size(); ++i)
    if (features[i]) hash = hash_with(hash, i, cells[i]);
  return hash;
}

/// The hold-out rule for a table, after examining the start of its first file.
HoldOut hold_out_of(const std::string& start, const TextLayout& layout, const std::vector<char>& features,
                    AddedCells added) {
  HoldOut hold_out;
  bool header = layout.header;
  RecordSplitter splitter(layout.grammar);
  for (const char *p = start.data(), *const end = p + start.size(); p < end;) {
    p = splitter.split(p, end);
    if (!is_blank(splitter.cells()) && splitter.cells().size() == layout.cells() && !std::exchange(header, false))
      hold_out.look_at(hash_of_features(added.behind(splitter.cells()), features));
  }
  return hold_out;
}

/// Describes why a record is bad: its quotes or its number of cells.
std::string problem_of(std::string_view record, std::span<const std::string_view> cells, const std::string& problem,
                       const TextLayout& layout) {
  const size_t expected = layout.cells();
  return cat(problem.empty() ? cat("expected ", expected, " cells, found ", cells.size()) : problem,
             dialect_hint({.text = record, .expected = expected, .found = cells.size(), .header = layout.header},
                          layout.grammar));
}

void write_record(AtomicFile* file, std::string_view record) {
  if (!file) return;
  file->write(record);
  file->write("\n");
}

TextLayout layout_of_eval(const fs::path& path, const std::string& label) {
  TextLayout layout = in_context([&] { return cat("reading '", path.string(), "' of --eval"); },
                                 [&] { return guess_layout(start_of_text(path), label); });
  add_partitions(path, false, layout);
  return layout;
}

void expect_same_layout(const fs::path& path, const TextLayout& own, const TextLayout& layout) {
  if (own.header == layout.header && own.delimiter == layout.delimiter) return;
  throw Error(
      Kind::data,
      cat("'", path.string(),
          "' of --eval has another layout than the training rows: both need the same separator, and either both or "
          "neither must have a header"));
}

}  // namespace

std::string start_of_text(const fs::path& path) {
  constexpr size_t most = 1 << 20;
  std::string start(most, '\0');
  start.resize(open_stream(path)->read(reinterpret_cast<std::byte*>(start.data()), most));
  if (start.size() == most) start.resize(start.rfind('\n') == start.npos ? most : start.rfind('\n') + 1);
  return start;
}

LabelFacts first_labels(const std::string& start, const TextLayout& layout, const std::string& label,
                        const std::optional<std::string>& positive) {
  const size_t column = column_index(layout.columns, label);
  LabelFacts facts;
  bool header = layout.header;
  RecordSplitter splitter(layout.grammar);
  for (const char *p = start.data(), *const end = p + start.size(); p < end;) {
    p = splitter.split(p, end);
    if (is_blank(splitter.cells()) || splitter.cells().size() != layout.cells() || std::exchange(header, false))
      continue;
    const std::string_view text = without_blanks(splitter.cells()[column]);
    if (!is_missing_label(text, positive)) facts.add(text);
  }
  return facts;
}

namespace {

/// Reads the training rows of a table, which may be in several files with equal columns.
class TrainingRows {
 public:
  TrainingRows(const std::vector<fs::path>& files, const TextLayout& layout, const InitOptions& options,
               const SplitFiles& split)
      : first_(files[0]),
        layout_(layout),
        options_(options),
        split_(split),
        features_(feature_columns(layout.columns, options)) {
    pass_.columns = layout.columns;
    pass_.facts.resize(layout.columns.size());
    pass_.label_column = column_index(layout.columns, options.label);
    if (split.eval) hold_out_ = hold_out_of(start_of_text(first_), layout, features_, {first_, layout});
    pass_.held_out_by_number = hold_out_.by_number();
  }

  void read(const fs::path& file, const std::function<void(int64_t)>& done) {
    bool header = layout_.header;
    AddedCells added(file, layout_);
    for_each_record(file, layout_.grammar, done,
                    [&](std::string_view record, std::span<const std::string_view> cells, const std::string& problem,
                        const auto& line) {
                      if (std::exchange(header, false)) {
                        expect_header(cells, file, line);
                        if (file == first_) write_header(record, added);
                      } else if (!problem.empty() || cells.size() != layout_.cells()) {
                        if (pass_.bad_rows++ == 0)
                          pass_.first_bad = cat("'", file.string(), "' line ", line(), ": ",
                                                problem_of(record, cells, problem, layout_));
                      } else {
                        add_row(record, added.behind(cells), added);
                      }
                    });
  }
  TablePass finish() { return std::move(pass_); }

 private:
  /// Errors: Error(data).
  template <class Line>
  void expect_header(std::span<const std::string_view> cells, const fs::path& file, const Line& line) const {
    const auto added = static_cast<ptrdiff_t>(layout_.added.size());
    if (std::equal(cells.begin(), cells.end(), layout_.columns.begin(), layout_.columns.end() - added)) return;
    throw Error(Kind::data, cat("'", file.string(), "' line ", line(),
                                ": its columns differ from the columns "
                                "of '",
                                first_.string(), "'"));
  }
  void write_header(std::string_view record, const AddedCells& added) const {
    write_record(split_.train, added.names_behind(record));
    write_record(split_.eval, added.names_behind(record));
  }
  void write(AtomicFile* to, std::string_view record, const AddedCells& added) const {
    if (to && !layout_.added.empty())
      write_record(to, added.written_behind(record));
    else
      write_record(to, record);
  }

  /// `cells`: the cells of the record, followed by the added cells.
  void add_row(std::string_view record, std::span<const std::string_view> cells, const AddedCells& added) {
    const std::string_view text = without_blanks(cells[pass_.label_column]);
    pass_.facts[pass_.label_column].padded += text.size() != cells[pass_.label_column].size();
    if (is_missing_label(text, options_.positive)) {
      ++pass_.without_label;
      if (!text.empty()) pass_.label_marks.emplace(text);
      return;
    }
    if (split_.eval && hold_out_.held_out(hash_of_features(cells, features_))) {
      ++pass_.eval_rows;
      pass_.held_out_labels.add(text);
      for (size_t i = 0; i < cells.size(); ++i)
        if (i != pass_.label_column) pass_.facts[i].check(cells[i]);
      return write(split_.eval, record, added);
    }
    ++pass_.train_rows;
    pass_.labels.add(text);
    write(split_.train, record, added);
    for (size_t i = 0; i < cells.size(); ++i)
      if (i != pass_.label_column) pass_.facts[i].add(cells[i]);
  }

  const fs::path& first_;
  const TextLayout& layout_;
  const InitOptions& options_;
  const SplitFiles& split_;
  std::vector<char> features_;
  HoldOut hold_out_;
  TablePass pass_;
};

}  // namespace

TablePass read_text_table(const std::vector<fs::path>& files, const TextLayout& layout, const InitOptions& options,
                          const SplitFiles& split) {
  TrainingRows rows(files, layout, options, split);
  int64_t bytes = 0, before = 0;
  for (const fs::path& file : files) bytes += stream_bytes(file);
  Progress progress(options.progress, "Looking at the rows", "bytes", bytes);
  for (const fs::path& file : files) {
    rows.read(file, [&](int64_t done) { progress.update(before + done); });
    before += stream_bytes(file);
  }
  progress.finish();
  return rows.finish();
}

void read_eval_text(const fs::path& path, const TextLayout& layout, const InitOptions& options, TablePass& pass) {
  const TextLayout own = layout_of_eval(path, options.label);
  expect_same_layout(path, own, layout);
  std::vector<size_t> places;  // [column of this file] index of the column in `pass`
  for (const std::string& column : own.columns) places.push_back(column_index(pass.columns, column));
  const size_t label = column_index(own.columns, options.label);
  int64_t& padded = pass.facts[pass.label_column].padded;
  padded += own.grammar.trim;
  TextGrammar grammar = layout.grammar;
  grammar.trim = grammar.trim || own.grammar.trim;
  const bool number_labels = pass.labels.numbers == pass.labels.rows;
  bool header = own.header;
  AddedCells added(path, own);
  Progress progress(options.progress, "Looking at the evaluation rows", "bytes", stream_bytes(path));
  const auto check_row = [&](std::string_view record, std::span<const std::string_view> cells,
                             const std::string& problem, const auto& line) {
    if (std::exchange(header, false)) return;
    std::string wrong = problem;
    if (!wrong.empty() || cells.size() != own.cells()) wrong = problem_of(record, cells, problem, own);
    if (wrong.empty()) cells = added.behind(cells);
    const std::string_view text = wrong.empty() ? without_blanks(cells[label]) : std::string_view();
    const bool missing = wrong.empty() && is_missing_label(text, options.positive);
    double number = 0;
    if (wrong.empty() && !missing && number_labels && !read_number(text, number))
      wrong = cat("the label is '", text.substr(0, 40), "', not a number");
    if (!wrong.empty()) {
      if (pass.eval_bad_rows++ == 0) pass.first_bad_eval = cat("'", path.string(), "' line ", line(), ": ", wrong);
      return;
    }
    padded += text.size() != cells[label].size();
    if (missing) {
      ++pass.eval_without_label;
      if (!text.empty()) pass.label_marks.emplace(text);
      return;
    }
    for (size_t i = 0; i < cells.size(); ++i)
      if (i != label && places[i] < pass.facts.size()) pass.facts[places[i]].check(cells[i]);
  };
  for_each_record(path, grammar, [&](int64_t done) { progress.update(done); }, check_row);
  progress.finish();
}

void check_eval_text(const fs::path& path, const TextLayout& layout, const std::vector<std::string>& used,
                     const LabelChoice& choice, const LabelFacts& labels) {
  const TextLayout own = layout_of_eval(path, choice.column);
  for (const std::string& column : used)
    if (std::find(own.columns.begin(), own.columns.end(), column) == own.columns.end())
      throw Error(Kind::data,
                  cat("'", path.string(), "' of --eval lacks the column '", column, "' of the training rows"));
  expect_same_layout(path, own, layout);
  if (!choice.text || labels.counts.size() > LabelFacts::kMostLabels) return;
  std::string known;
  for (const auto& [text, rows] : labels.counts) known += cat(known.empty() ? "'" : ", '", text.substr(0, 40), "'");
  for (const auto& [text, rows] : first_labels(start_of_text(path), own, choice.column, choice.text).counts)
    if (!labels.counts.contains(text))
      throw Error(Kind::data, cat("'", path.string(), "' of --eval: label '", choice.column, "' has the value '",
                                  text.substr(0, 40), "', which no training row has; training rows have ", known,
                                  "; use the same words in both files"));
}

}  // namespace hctr
