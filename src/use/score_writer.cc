#include "use/score_writer.h"

#include <optional>
#include <set>
#include <span>
#include <utility>

#include "core/base/expect.h"
#include "core/base/files.h"
#include "formats/parquet/parquet_file.h"
#include "formats/parquet/parquet_output.h"

namespace hctr {
namespace {

constexpr float kLowestLabel = -0.5f;  // labels below this value are missing

/// The location of a score: the loss, and the column among the loss's scores.
struct ScorePlace {
  size_t loss;
  size_t column, of;
};

std::vector<ScorePlace> places_of(const ScoredRows& rows) {
  std::vector<ScorePlace> places;
  for (size_t t = 0; t < rows.predictions.size(); ++t) {
    const size_t columns = rows.rows > 0 ? rows.predictions[t].size() / static_cast<size_t>(rows.rows) : 0;
    for (size_t c = 0; c < columns; ++c) places.push_back({t, c, columns});
  }
  return places;
}

/// Numbers the rows of the data. Bad records count as rows.
class RowNumbers {
 public:
  /// Continues with the rows of the next batch.
  void start(const ScoredRows& rows) {
    before_bad_ = rows.passed_on.rows_before_bad;
    row_ = 0;
  }
  int64_t next() {
    for (; !before_bad_.empty() && before_bad_.front() <= row_; before_bad_ = before_bad_.subspan(1)) ++number_;
    ++row_;
    return number_++;
  }

 private:
  std::span<const int64_t> before_bad_;
  int64_t row_ = 0, number_ = 0;
};

/// Writes text to a file, or in pieces to a sink.
class TextScores : public ScoreWriter {
 public:
  TextScores(const std::string& out, char delimiter, const ScoreColumns& columns, ScoreSink sink)
      : delimiter_(delimiter),
        has_labels_(!columns.labels.empty()),
        kept_(columns.kept.size()),
        sink_(std::move(sink)) {
    if (out != "-")
      file_.emplace(out);
    else if (!sink_)
      throw Error(Kind::usage, "scores to \"-\" need \"rows\"");
    add_cell("row");
    for (const auto* names : {&columns.labels, &columns.scores, &columns.kept})
      for (const std::string& name : *names) {
        text_ += delimiter_;
        add_cell(name);
      }
    text_ += '\n';
    flush();
  }

  void write(const ScoredRows& rows) override {
    const std::vector<ScorePlace> places = places_of(rows);
    numbers_.start(rows);
    for (int64_t r = 0; r < rows.rows; ++r) {
      const auto row = static_cast<size_t>(r);
      text_ += std::to_string(numbers_.next());
      for (size_t i = 0; has_labels_ && i < places.size(); ++i) {
        text_ += delimiter_;
        const ScorePlace& at = places[i];
        if (const float label = rows.labels[at.loss][row * at.of + at.column]; label >= kLowestLabel)
          append_label(label, text_);
      }
      for (const ScorePlace& at : places) {
        text_ += delimiter_;
        append_score(rows.predictions[at.loss][row * at.of + at.column], text_);
      }
      for (size_t k = 0; k < kept_; ++k) {
        text_ += delimiter_;
        add_cell(rows.passed_on.kept.cell(row * kept_ + k));
      }
      text_ += '\n';
    }
    flush();
  }

  void finish() override {
    if (file_) return file_->commit();
    sink_({});
  }

 private:
  /// Quotes a cell if necessary (RFC 4180).
  void add_cell(std::string_view cell) {
    if (cell.find_first_of("\"\r\n") == cell.npos && cell.find(delimiter_) == cell.npos) {
      text_ += cell;
      return;
    }
    text_ += '"';
    for (const char c : cell) {
      if (c == '"') text_ += c;
      text_ += c;
    }
    text_ += '"';
  }

  void flush() {
    if (file_)
      file_->write(text_);
    else
      sink_(text_);
    text_.clear();
  }

  char delimiter_;
  bool has_labels_;
  size_t kept_;
  ScoreSink sink_;
  std::optional<AtomicFile> file_;
  std::string text_;
  RowNumbers numbers_;
};

class ParquetScores : public ScoreWriter {
 public:
  ParquetScores(const std::string& out, const ScoreColumns& columns)
      : names_(columns),
        file_(out),
        labels_(columns.labels.size()),
        scores_(columns.scores.size()),
        kept_(columns.kept.size()) {
    fields_.push_back({"row", ParquetType::i64, false, ""});
    for (const std::string& name : names_.labels) fields_.push_back({name.c_str(), ParquetType::f32, false, "", true});
    for (const std::string& name : names_.scores) fields_.push_back({name.c_str(), ParquetType::f32, false, ""});
    for (const std::string& name : names_.kept) fields_.push_back({name.c_str(), ParquetType::text, false, ""});
    output_.emplace(file_, fields_);
  }

  void write(const ScoredRows& rows) override {
    const std::vector<ScorePlace> places = places_of(rows);
    numbers_.start(rows);
    for (int64_t r = 0; r < rows.rows; ++r) {
      const auto row = static_cast<size_t>(r);
      rows_.push_back(numbers_.next());
      for (size_t i = 0; i < places.size(); ++i) {
        const ScorePlace& at = places[i];
        scores_[i].push_back(rows.predictions[at.loss][row * at.of + at.column]);
        if (labels_.empty()) continue;
        labels_[i].add(rows.labels[at.loss][row * at.of + at.column]);
      }
      for (size_t k = 0; k < kept_.size(); ++k) kept_[k].add(rows.passed_on.kept.cell(row * kept_.size() + k));
      if (static_cast<int64_t>(rows_.size()) == kParquetGroupRows) write_group();
    }
  }

  void finish() override {
    write_group();
    output_->finish();
    file_.commit();
  }

 private:
  struct LabelColumn {
    std::vector<float> values;
    std::vector<uint8_t> valid;  // one bit per row: whether it has a label

    void add(float label) {
      const bool there = label >= kLowestLabel;
      if (values.size() % 8 == 0) valid.push_back(0);
      valid.back() = static_cast<uint8_t>(valid.back() | (there << (values.size() % 8)));
      values.push_back(there ? label : 0);
    }
  };
  struct TextColumn {
    std::string bytes;
    std::vector<int32_t> ends = {0};

    void add(std::string_view cell) {
      bytes += cell;
      ends.push_back(static_cast<int32_t>(bytes.size()));
    }
  };

  void write_group() {
    if (rows_.empty()) return;
    const auto rows = static_cast<int64_t>(rows_.size());
    std::vector<ParquetValues> columns = {ParquetValues{.rows = rows, .values = rows_.data()}};
    for (const LabelColumn& label : labels_)
      columns.push_back(ParquetValues{.rows = rows, .valid_rows = label.valid.data(), .values = label.values.data()});
    for (const auto& score : scores_) columns.push_back(ParquetValues{.rows = rows, .values = score.data()});
    for (const TextColumn& text : kept_)
      columns.push_back(ParquetValues{.rows = rows, .values = text.bytes.data(), .text = text.ends.data()});
    output_->write(columns, rows);
    rows_.clear();
    for (LabelColumn& label : labels_) label = {};
    for (auto& score : scores_) score.clear();
    for (TextColumn& text : kept_) text = {};
  }

  ScoreColumns names_;
  AtomicFile file_;
  std::vector<ParquetField> fields_;
  std::vector<int64_t> rows_;
  std::vector<LabelColumn> labels_;
  std::vector<std::vector<float>> scores_;
  std::vector<TextColumn> kept_;
  RowNumbers numbers_;
  std::optional<ParquetOutput> output_;
};

enum class ScoreFormat { tsv, csv, parquet };

ScoreFormat format_of(const std::string& out) {
  const std::string ending = fs::path(out).extension().string();
  if (out == "-" || ending == ".tsv") return ScoreFormat::tsv;
  if (ending == ".csv") return ScoreFormat::csv;
  if (ending == ".parquet") return ScoreFormat::parquet;
  throw Error(Kind::usage, cat("--out '", out,
                               "': scores are written to a file that ends in .tsv, .csv or .parquet, or to - "
                               "(the standard output, tab-separated)"));
}

}  // namespace

ScoreColumns score_columns(const std::vector<std::string>& losses, const std::vector<int64_t>& scores,
                           bool has_labels) {
  ScoreColumns columns;
  for (size_t t = 0; t < losses.size(); ++t)
    for (int64_t c = 0; c < scores[t]; ++c) {
      const std::string name =
          cat(losses.size() > 1 ? "_" + losses[t] : "", scores[t] > 1 ? cat("_", c) : std::string());
      if (has_labels) columns.labels.push_back("label" + name);
      columns.scores.push_back("score" + name);
    }
  return columns;
}

void expect_score_file(const std::string& out) {
  if (format_of(out) == ScoreFormat::parquet) parquet_plugin();
}

std::unique_ptr<ScoreWriter> open_scores(const std::string& out, const ScoreColumns& columns, const ScoreSink& sink) {
  std::set<std::string> names = {"row"};
  for (const auto* list : {&columns.labels, &columns.scores, &columns.kept})
    for (const std::string& name : *list)
      if (!names.insert(name).second)
        throw Error(Kind::usage, cat("--keep ", name, ": the scores already have a column of this name"));
  const ScoreFormat format = format_of(out);
  if (out != "-") create_parent_folder(out);
  if (format == ScoreFormat::parquet) return std::make_unique<ParquetScores>(out, columns);
  return std::make_unique<TextScores>(out, format == ScoreFormat::csv ? ',' : '\t', columns, sink);
}

}  // namespace hctr
