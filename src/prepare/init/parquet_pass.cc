#include "prepare/init/parquet_pass.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <memory>
#include <set>
#include <utility>

#include "core/base/expect.h"
#include "core/base/progress.h"
#include "core/base/random.h"
#include "formats/data/text_values.h"
#include "formats/parquet/parquet_file.h"
#include "formats/parquet/parquet_values.h"
#include "prepare/init/parquet_split.h"
#include "prepare/init/text_layout.h"

namespace hctr {
namespace {

/// An item as text. A fraction has the fewest digits that restore it. A whole float is written like an integer.
std::string_view text_of(const ParquetField& field, const ParquetValues& values, int64_t item, char (&memory)[24]) {
  const std::string_view digits = digits_at(field.type, values, item, memory);
  if (!digits.empty() || !is_float(field.type)) return digits;
  char* const begin = memory;
  const double number = number_at(field.type, values, item);
  const auto written = field.type == ParquetType::f64
                           ? std::to_chars(begin, begin + sizeof memory, number)
                           : std::to_chars(begin, begin + sizeof memory, static_cast<float>(number));
  return {begin, static_cast<size_t>(written.ptr - begin)};
}

/// Calls visit(item) for each non-null item of a row.
template <class Visit>
void for_each_item(const ParquetField& field, const ParquetValues& values, int64_t row, const Visit& visit) {
  if (!has_value(field.type, values, row)) return;
  if (!field.list) return visit(row);
  for (int32_t i = values.list[row]; i < values.list[row + 1]; ++i)
    if (has_item(field.type, values, i)) visit(i);
}

/// An open file and its columns to read, in the order that the columns have in the first file.
struct ReadFile {
  std::shared_ptr<ParquetFile> file;
  std::vector<int64_t> fields;       // indices of the fields to read
  std::vector<ParquetForm> forms{};  // [field] the form in which the field is read
};

std::vector<ParquetField> fields_of(const ParquetFile& file) {
  return {file.info().fields, file.info().fields + file.info().field_count};
}

/// Whether all values of a decimal column without fraction digits fit into 64 bits.
bool fit_64_bits(ParquetFile& file, int64_t field) {
  for (int64_t g = 0; g < file.info().group_count; ++g) {
    ParquetColumn* opened = nullptr;
    // ignored: the reader of the file reports the error
    if (file.open_column(g, field, ParquetForm::integer, opened)) return true;
    const std::unique_ptr<ParquetColumn> column(opened);
    for (int64_t left = file.info().groups[g].rows; left > 0;) {
      ParquetValues values;
      void* owner = nullptr;
      if (column->read(values, owner)) return false;
      if (owner) parquet_plugin().drop(owner);
      if (values.rows == 0) break;
      left -= values.rows;
    }
  }
  return true;
}

/// Reads the columns of a row group in pieces. One call reads a piece of each column, for the same rows.
class GroupReader {
 public:
  GroupReader(const ReadFile& file, int64_t group, std::string name) : name_(std::move(name)) {
    for (size_t c = 0; c < file.fields.size(); ++c) {
      ParquetColumn* column = nullptr;
      const ParquetField& known = file.file->info().fields[file.fields[c]];
      expect_done(file.file->open_column(group, file.fields[c], file.forms[c], column), known.name);
      columns_.emplace_back(column);
      columns_of_.emplace_back(known.name);
    }
    owners_.resize(columns_.size());
    values_.resize(columns_.size());
  }
  ~GroupReader() { drop(); }
  GroupReader(const GroupReader&) = delete;

  const std::vector<ParquetValues>& next() {
    drop();
    for (size_t c = 0; c < columns_.size(); ++c) {
      expect_done(columns_[c]->read(values_[c], owners_[c]), columns_of_[c].c_str());
      if (values_[c].rows != values_[0].rows)
        throw Error(Kind::data, cat("'", name_, "': columns of different lengths in one row group"));
    }
    return values_;
  }

 private:
  void expect_done(const char* problem, const char* column) const {
    if (problem) throw Error(Kind::data, cat("cannot read column '", column, "' of '", name_, "': ", problem));
  }
  void drop() {
    for (void*& owner : owners_)
      if (void* const mine = std::exchange(owner, nullptr)) parquet_plugin().drop(mine);
  }

  std::string name_;
  std::vector<std::string> columns_of_;  // names of the columns
  std::vector<std::unique_ptr<ParquetColumn>> columns_;
  std::vector<void*> owners_;
  std::vector<ParquetValues> values_;
};

class ParquetTableReader {
 public:
  ParquetTableReader(const std::vector<fs::path>& files, const InitOptions& options, const SplitFiles& split)
      : files_(files), options_(options) {
    const std::vector<ParquetField> all = fields_of_all();
    find_wide_decimals(all);
    for (const ParquetField& stored : all) {
      const ParquetField field = as_read(stored);
      pass_.columns.emplace_back(field.name);
      ColumnFacts& facts = pass_.facts.emplace_back();
      facts.fractions = is_float(field.type);
      facts.whole_below = whole_below(field.type);
      facts.instants = stored.type == ParquetType::date || stored.type == ParquetType::timestamp;
      if (field.type == ParquetType::other) {
        facts.unread_type = field.said;
        continue;
      }
      read_.push_back(pass_.columns.size() - 1);
      fields_.push_back(field);
    }
    expect_label(options.label, pass_.columns, false);
    pass_.label_column = static_cast<size_t>(std::find(pass_.columns.begin(), pass_.columns.end(), options.label) -
                                             pass_.columns.begin());
    const char* const said_of_label = all[pass_.label_column].said;
    const auto label = std::find(read_.begin(), read_.end(), pass_.label_column);
    label_ = static_cast<size_t>(label - read_.begin());
    if (label == read_.end() || fields_[label_].list)
      throw Error(Kind::usage, cat("--label ", options.label, ": the column holds ", said_of_label,
                                   ", but a label is one number or text per row"));
    for (size_t c = 0; c < fields_.size(); ++c)
      features_.push_back(c != label_ && std::find(options.leave_out.begin(), options.leave_out.end(),
                                                   fields_[c].name) == options.leave_out.end());
    for (size_t c = 0; c < fields_.size(); ++c)
      if (is_float(fields_[c].type) &&
          std::find(options.leave_out.begin(), options.leave_out.end(), fields_[c].name) == options.leave_out.end())
        floats_.push_back(c);
    if (split.train) train_.emplace(*split.train, fields_);
    if (split.eval) eval_.emplace(*split.eval, fields_);
  }

  TablePass read() {
    int64_t rows = 0, done = 0;
    for (const fs::path& path : files_) rows += open(path).file->info().rows;
    if (eval_) look_at_start();
    pass_.held_out_by_number = hold_out_.by_number();
    Progress progress(options_.progress, "Looking at the rows", "rows", rows);
    for (size_t f = 0; f < files_.size(); ++f) {
      int64_t before = 0;  // rows of this file so far
      const ReadFile opened = open(files_[f]);
      for (int64_t g = 0; g < opened.file->info().group_count; ++g) {
        GroupReader group(opened, g, files_[f].string());
        for (int64_t left = opened.file->info().groups[g].rows; left > 0;) {
          const std::vector<ParquetValues>& values = group.next();
          if (values[0].rows == 0)
            throw Error(Kind::data, cat("'", files_[f].string(), "' has fewer rows than its footer says"));
          for (int64_t r = 0; r < values[0].rows; ++r)
            if (const std::optional<std::string> wrong = infinity_in(values, r))
              add_bad_row(cat("'", files_[f].string(), "': row ", before + r + 1, ": ", *wrong));
            else
              add_row(values, r);
          before += values[0].rows;
          left -= values[0].rows;
          progress.update(done += values[0].rows);
        }
      }
    }
    progress.finish();
    if (train_) train_->finish();
    if (eval_) eval_->finish();
    return std::move(pass_);
  }

 private:
  /// The form in which a column is read and written to the split files. Times and decimals are read as numbers.
  /// Decimals without fraction digits are read as integers, or as texts if they exceed 64 bits.
  ParquetForm form_of(const ParquetField& field) const {
    if (field.type != ParquetType::whole_decimal) return ParquetForm::number;
    return wide_.contains(field.name) ? ParquetForm::value : ParquetForm::integer;
  }
  ParquetField as_read(const ParquetField& field) const { return read_as(field, form_of(field)); }

  void find_wide_decimals(const std::vector<ParquetField>& all) {
    for (const ParquetField& field : all) {
      if (field.type != ParquetType::whole_decimal) continue;
      for (const fs::path& path : files_) {
        const std::shared_ptr<ParquetFile> file = open_parquet(path);
        const std::vector<ParquetField> fields = fields_of(*file);
        for (size_t f = 0; f < fields.size() && !wide_.contains(field.name); ++f)
          if (std::string_view(fields[f].name) == field.name && fields[f].type == ParquetType::whole_decimal &&
              !fit_64_bits(*file, static_cast<int64_t>(f)))
            wide_.insert(field.name);
      }
    }
  }

  /// The fields of the first file. The type of a field that has no values in the first file comes from the first file
  /// in which it has values.
  std::vector<ParquetField> fields_of_all() {
    std::vector<ParquetField> all;
    for (const fs::path& path : files_) {
      const bool first = all.empty();
      if (!first && std::none_of(all.begin(), all.end(), [](const auto& f) { return f.type == ParquetType::null; }))
        break;
      const std::shared_ptr<ParquetFile> file = open_parquet(path);
      for (ParquetField field : fields_of(*file)) {
        field.name = texts_.emplace_back(field.name).c_str();
        field.said = texts_.emplace_back(field.said).c_str();
        if (first) {
          all.push_back(field);
          continue;
        }
        for (ParquetField& known : all)
          if (known.type == ParquetType::null && std::string_view(known.name) == field.name) known = field;
      }
    }
    return all;
  }

  ReadFile open(const fs::path& path) const {
    ReadFile opened{open_parquet(path), {}, {}};
    const std::vector<ParquetField> fields = fields_of(*opened.file);
    for (const ParquetField& wanted : fields_) {
      const auto found = std::find_if(fields.begin(), fields.end(), [&](const ParquetField& field) {
        return std::string_view(field.name) == wanted.name;
      });
      if (found == fields.end())
        throw Error(Kind::data,
                    cat("'", path.string(), "' has no column '", wanted.name, "', as '", files_[0].string(), "' has"));
      if (found->type != ParquetType::null && (as_read(*found).type != wanted.type || found->list != wanted.list))
        throw Error(Kind::data, cat("'", path.string(), "': column '", wanted.name, "' has the type ", found->said,
                                    ", but in earlier files the type ", wanted.said, ": --init needs one type"));
      opened.fields.push_back(found - fields.begin());
      opened.forms.push_back(form_of(*found));
    }
    return opened;
  }

  /// Describes an infinite value in the row. (The data reader rejects infinite values.) Returns none if all values are
  /// finite.
  std::optional<std::string> infinity_in(const std::vector<ParquetValues>& values, int64_t row) const {
    for (const size_t c : floats_)
      if (!fields_[c].list && is_valid(values[c], row) && std::isinf(number_at(fields_[c].type, values[c], row)))
        return cat("column '", fields_[c].name, "' (", fields_[c].said, "): the value ",
                   number_at(fields_[c].type, values[c], row),
                   " is not a finite float; make it null or NaN, or name the column in --leave-out");
    return {};
  }

  void add_bad_row(const std::string& why) {
    if (pass_.bad_rows++ == 0) pass_.first_bad = why;
  }

  void add_row(const std::vector<ParquetValues>& values, int64_t row) {
    char memory[24];
    std::string_view label;
    for_each_item(fields_[label_], values[label_], row,
                  [&](int64_t item) { label = text_of(fields_[label_], values[label_], item, memory); });
    const std::string_view padded = label;
    label = without_blanks(label);
    pass_.facts[pass_.label_column].padded += label.size() != padded.size();
    if (is_missing_label(label, options_.positive)) {
      ++pass_.without_label;
      if (!label.empty()) pass_.label_marks.emplace(label);
      return;
    }
    if (eval_ && hold_out_.held_out(hash_of(values, row))) {
      ++pass_.eval_rows;
      pass_.held_out_labels.add(label);
      for (size_t c = 0; c < fields_.size(); ++c)
        if (c != label_) check_value(fields_[c], values[c], row, pass_.facts[read_[c]]);
      return eval_->add(values, row);
    }
    ++pass_.train_rows;
    pass_.labels.add(label);
    if (train_) train_->add(values, row);
    for (size_t c = 0; c < fields_.size(); ++c)
      if (c != label_) add_value(fields_[c], values[c], row, pass_.facts[read_[c]]);
  }

  static void add_value(const ParquetField& field, const ParquetValues& values, int64_t row, ColumnFacts& facts) {
    char memory[24];
    if (field.list) {
      for_each_item(field, values, row, [&](int64_t item) { facts.add_item(text_of(field, values, item, memory)); });
      return facts.end_list();
    }
    facts.add(has_value(field.type, values, row) ? text_of(field, values, row, memory) : std::string_view());
  }

  /// Checks whether all values of a column can be read as numbers.
  static void check_value(const ParquetField& field, const ParquetValues& values, int64_t row, ColumnFacts& facts) {
    char memory[24];
    if (!field.list || is_float(field.type))
      for_each_item(field, values, row, [&](int64_t item) { facts.check(text_of(field, values, item, memory)); });
  }

  uint64_t hash_of(const std::vector<ParquetValues>& values, int64_t row) const {
    uint64_t hash = kHoldOutSeed;
    char memory[24];
    for (size_t c = 0; c < fields_.size(); ++c) {
      if (!features_[c]) continue;
      hash = mix64(hash + c);
      for_each_item(fields_[c], values[c], row,
                    [&](int64_t item) { hash = hash_with(hash, c, text_of(fields_[c], values[c], item, memory)); });
    }
    return hash;
  }

  /// Examines the first piece of the first file that has rows.
  void look_at_start() {
    for (const fs::path& path : files_) {
      const ReadFile opened = open(path);
      for (int64_t g = 0; g < opened.file->info().group_count; ++g) {
        if (opened.file->info().groups[g].rows == 0) continue;
        GroupReader group(opened, g, path.string());
        const std::vector<ParquetValues>& values = group.next();
        for (int64_t r = 0; r < values[0].rows; ++r) hold_out_.look_at(hash_of(values, r));
        return;
      }
    }
  }

  const std::vector<fs::path>& files_;
  const InitOptions& options_;
  TablePass pass_;
  std::set<std::string> wide_;        // names of decimal columns without fraction digits whose values exceed 64 bits
  std::deque<std::string> texts_;     // memory of the fields' names and type descriptions
  std::vector<size_t> read_;          // indices of the columns to read
  std::vector<ParquetField> fields_;  // fields of the read columns in the first file
  size_t label_ = 0;                  // index of the label in fields_
  // [field] whether it is a feature, that is, not the label and not named in --leave-out
  std::vector<char> features_;
  HoldOut hold_out_;
  std::vector<size_t> floats_;  // indices of columns that may contain infinities
  std::optional<ParquetSplitWriter> train_, eval_;
};

}  // namespace

TablePass read_parquet_table(const std::vector<fs::path>& files, const InitOptions& options, const SplitFiles& split) {
  return ParquetTableReader(files, options, split).read();
}

void check_eval_parquet(const fs::path& path, const std::vector<std::string>& columns) {
  const std::shared_ptr<ParquetFile> file = open_parquet(path);
  const std::vector<ParquetField> fields = fields_of(*file);
  for (const std::string& column : columns)
    if (std::none_of(fields.begin(), fields.end(), [&](const ParquetField& field) { return field.name == column; }))
      throw Error(Kind::data,
                  cat("'", path.string(), "' of --eval lacks the column '", column, "' of the training rows"));
}

}  // namespace hctr
