#include "prepare/preprocess/preprocess.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/expect.h"
#include "core/base/input_files.h"
#include "core/base/thread_pool.h"
#include "formats/parquet/parquet_file.h"
#include "formats/parquet/parquet_set.h"
#include "formats/raw/raw_set.h"
#include "prepare/preprocess/preprocess_rows.h"
#include "prepare/preprocess/saved_columns.h"
#include "prepare/text_work.h"
#include "prepare/write/record_writer.h"

namespace hctr {
namespace {

/// The state of a thread: a text block, its rows, and the thread's value counts.
struct Counting {
  TextBlock block;
  ParsedRows rows;
  std::vector<CodeCounts>* counts = nullptr;
};

/// Removes all rows that are not for training. Without this, counting would have to test each row once per column.
void keep_training_rows(const Holdout& holdout, ParsedRows& rows) {
  if (holdout.by == Holdout::By::nothing) return;
  std::vector<uint32_t> kept;
  for (size_t row = 0; row < rows.rows; ++row)
    if (holdout.trains(rows.index[row], rows.split.empty() ? 0 : rows.split[row]))
      kept.push_back(static_cast<uint32_t>(row));
  if (kept.size() == rows.rows) return;
  for (auto& column : rows.numbers)
    for (size_t i = 0; i < kept.size(); ++i) column[i] = column[kept[i]];
  for (auto& column : rows.categories) {
    size_t end = 0;
    for (size_t i = 0; i < kept.size(); ++i) {
      const size_t row = kept[i];
      if (column.ends.empty()) {
        column.codes[i] = column.codes[row];
        continue;
      }
      for (size_t at = row == 0 ? 0 : column.ends[row - 1], stop = column.ends[row]; at < stop; ++at)
        column.codes[end++] = column.codes[at];
      // safe in place: i <= row, so only rows already copied are overwritten
      column.ends[i] = static_cast<uint32_t>(end);
    }
    if (!column.ends.empty()) column.codes.resize(end);
  }
  rows.rows = kept.size();
}

/// Statistics of one block. Blocks are merged in order, because rounding makes sums of dense values depend on the
/// order.
struct ChunkStatistics {
  std::vector<DenseColumn> dense;
  BadRowsFound bad;
};

/// The first of two passes: counts the values of the training rows.
FittedColumns fit_columns(const PreprocessOptions& options, const TableParser& parser) {
  const auto slots = static_cast<size_t>(options.slots());
  PerThread<std::vector<CodeCounts>> tables;
  TextSource source(options.inputs, options.table.header, options.table.grammar());
  FittedColumns fitted;
  fitted.dense.resize(options.table.numbers().size());
  BadRowsFound bad;
  for_each_block<Counting, ChunkStatistics>(
      source, options.threads, options.progress, "counting values",
      [&](Counting& item) {
        parser.parse(item.block, item.rows);
        add_derived_columns(options, item.rows);
        keep_training_rows(options.holdout, item.rows);
        const ParsedRows& rows = item.rows;
        std::vector<CodeCounts>& counts = tables.get(item.counts);
        counts.resize(slots);
        for (size_t slot = 0; slot < slots; ++slot) {
          const auto& column = rows.categories[slot];
          counts[slot].add({column.codes.data(), column.ends.empty() ? rows.rows : column.codes.size()});
        }
        std::vector<DenseColumn> dense(rows.numbers.size());
        for (size_t i = 0; i < dense.size(); ++i) dense[i].add({rows.numbers[i].data(), rows.rows}, options.dense.log);
        return ChunkStatistics{std::move(dense), rows.bad};
      },
      [&](ChunkStatistics& block) {
        for (size_t i = 0; i < block.dense.size(); ++i) fitted.dense[i].merge(block.dense[i]);
        bad.add(options.bad_rows, block.bad);
      });
  std::vector<std::optional<Vocabulary>> vocabularies(slots);
  ThreadPool pool(options.threads);
  pool.parallel_for(static_cast<int64_t>(slots), 1, [&](int64_t begin, int64_t end) {
    for (auto slot = static_cast<size_t>(begin); slot < static_cast<size_t>(end); ++slot) {
      CodeCounts all;
      for (auto& table : tables.all()) all.merge(table[slot]);
      vocabularies[slot].emplace(all, static_cast<uint64_t>(options.min_count));
    }
  });
  for (auto& vocabulary : vocabularies) {
    fitted.slot_sizes.push_back(vocabulary->size());
    fitted.vocabularies.push_back(std::move(*vocabulary));
  }
  return fitted;
}

/// The result of one block of rows.
struct Encoded {
  EncodedRecords train, eval;
  int64_t train_positives = 0, eval_positives = 0;
  BadRowsFound bad;
  std::vector<int64_t> most_nnz;
};

struct Encoding {
  TextBlock block;
  ParsedRows rows;
};

Encoded encode(Encoding& item, const PreprocessOptions& options, const TableParser& parser, const RowEncoder& encoder,
               bool all_eval) {
  Encoded done;
  ParsedRows& rows = item.rows;
  parser.parse(item.block, rows);
  done.bad = rows.bad;
  add_derived_columns(options, rows);
  encoder.to_keys(rows);
  const bool mostly_train =
      !all_eval && (rows.rows == 0 || options.holdout.trains(rows.index[0], rows.split.empty() ? 0 : rows.split[0]));
  if (rows.rows > 0) (mostly_train ? done.train : done.eval).bytes.reserve(rows.rows * encoder.bytes_of(rows, 0));
  for (size_t row = 0; row < rows.rows; ++row) {
    const bool train = !all_eval && options.holdout.trains(rows.index[row], rows.split.empty() ? 0 : rows.split[row]);
    if (!encoder.append(rows, row, train ? done.train : done.eval)) {
      const std::string& text = item.block.text;
      const auto begin = text.begin() + static_cast<ptrdiff_t>(rows.begin[row]);
      const int64_t line = item.block.first_line + std::count(text.begin(), begin, '\n');
      done.bad.add(options.bad_rows, item.block, line, &*begin, encoder.problem_of(rows, row));
      continue;
    }
    (train ? done.train_positives : done.eval_positives) += rows.labels[0][row] > 0;
  }
  for (const auto& column : rows.categories) {
    uint32_t most = 1, begin = 0;
    for (size_t row = 0; row < (column.ends.empty() ? 0 : rows.rows); begin = column.ends[row++])
      most = std::max(most, column.ends[row] - begin);
    done.most_nnz.push_back(most);
  }
  return done;
}

void check_preprocess_options(const PreprocessOptions& options) {
  const auto bad = [](const auto&... parts) { throw Error(Kind::usage, cat(parts...)); };
  const bool raw = options.format == kRawFormat, fraction = options.holdout.by == Holdout::By::position;
  if (options.inputs.empty()) bad("no input files");
  if (options.slots() == 0) bad("no categories: name the columns for embeddings with --categories");
  for (const auto* files : {&options.inputs, &options.eval_inputs})
    if (std::find(files->begin(), files->end(), "-") != files->end() &&
        ((options.passes == 2 && !options.applied) || fraction || files->size() > 1))
      bad("the standard input can be read only once: use --passes 1 or --apply, and omit --holdout by position "
          "and all other inputs");
  if (!options.eval_inputs.empty() && options.holdout.by != Holdout::By::nothing)
    bad("--eval-input and --holdout both select the evaluation rows; keep one");
  if ((fraction || options.holdout.by == Holdout::By::random) &&
      !(options.holdout.share > 0 && options.holdout.share < 1))
    bad("--holdout must be between 0 and 1, found ", options.holdout.share);
  if (options.passes == 1 && options.dense.normalize != Normalize::none)
    bad("--normalize needs the range or the mean of each column: use --passes 2");
  if (options.passes == 1 && options.dense.fill_with_mean)
    bad("--fill mean needs the mean of each column: use --passes 2");
  if (options.passes == 1 && options.min_count > 1) bad("--min-count needs the counts of values: use --passes 2");
  if (options.passes == 1 && options.range < 3)
    bad("--range ", options.range, ": each slot needs at least 3 keys: missing, rare, and one more");
  if (raw && !options.float_label_dense &&
      (options.dense.log || options.dense.normalize != Normalize::none || options.dense.fill_with_mean))
    bad("integer dense values of Raw data cannot be scaled: the reader computes ln(1 + v); remove --log and "
        "--normalize, or write floats");
  if (raw && !options.float_label_dense && !(std::fabs(options.dense.fill) <= std::numeric_limits<int32_t>::max()))
    bad("--fill ", options.dense.fill, ": --integers needs a number below 2^31");
  if (raw && options.key_bytes != 4) bad("Raw data have 32-bit keys");
  for (size_t place = 0; place < options.table.categories().size(); ++place) {
    if (raw && options.table.is_list(place))
      bad("Raw data have one key in each slot; the lists of column \"", options.table.categories()[place],
          "\" need --format Norm or Parquet");
    for (const auto& [a, b] : options.crosses)
      if ((a == place || b == place) && options.table.is_list(place))
        bad("the column \"", options.table.categories()[place], "\" is a list, which --cross cannot use");
  }
}

ParquetStyle parquet_style(const PreprocessOptions& options, const NormStyle& record) {
  ParquetStyle style{record, options.table.labels(), options.table.numbers(), options.slot_names(),
                     {},     options.threads};
  const size_t crosses = options.crosses.size();
  for (size_t slot = 0; slot < style.slots.size(); ++slot)
    style.lists.push_back(slot >= crosses && options.table.is_list(slot - crosses));
  return style;
}

/// Errors: Error(usage) if the ids do not fit the key width.
void check_width(const PreprocessOptions& options, const FittedColumns& fitted) {
  if (options.key_bytes != 4 || options.criteo) return;  // Criteo keys are reduced to the key width
  int64_t keys = 0;
  for (const int64_t size : fitted.slot_sizes)
    // in Norm and Parquet, the slots share one key range
    keys = options.format == kRawFormat ? std::max(keys, size) : keys + size;
  const int64_t most =
      options.format == kRawFormat ? std::numeric_limits<int32_t>::max() : std::numeric_limits<uint32_t>::max();
  if (keys > most)
    throw Error(
        Kind::usage,
        cat("the slots have ", keys,
            " ids, more than 32-bit keys can represent; use --key-bits 64, a larger --min-count or a smaller --range"));
}

/// Removes the results of an earlier call, after checking that they are no input files.
void clear_results(const PreprocessOptions& options) {
  std::vector<fs::path> results;
  if (!options.criteo)
    for (const char* file : {"preprocess.json", kVocabularyFile}) results.push_back(options.folder / file);
  for (const char* stem : {"train", "val"}) results.push_back(options.result(stem));
  std::vector<fs::path> read = options.also_read;
  for (const auto* files : {&options.inputs, &options.eval_inputs})
    read.insert(read.end(), files->begin(), files->end());
  for (const fs::path& result : results) expect_no_input(result, "--out: its file", read);
  for (const char* stem : {"train", "val"}) expect_records_replace_no_input(options.folder, stem, read);
  remove_older_results(results, options.force);
  for (const char* stem : {"train", "val"}) remove_parts_of_dead_processes(options.folder / stem);
}

/// The number of training rows if the last rows are for evaluation.
int64_t count_training_rows(const PreprocessOptions& options) {
  const int64_t rows =
      count_rows(options.inputs, options.table.header, options.table.grammar(), options.threads, options.progress);
  return rows - static_cast<int64_t>(std::llround(static_cast<double>(rows) * options.holdout.share));
}

/// Returns ids and statistics: those of an earlier run if `applied` is set, or with two passes, those of the training
/// rows. With one pass, values are hashed, so only slot sizes are needed.
FittedColumns fitted_columns(const PreprocessOptions& options, const TableParser& parser) {
  if (options.applied) return *options.applied;
  if (options.passes == 2) return fit_columns(options, parser);
  FittedColumns fitted;
  fitted.dense.resize(options.table.numbers().size());
  fitted.slot_sizes.assign(static_cast<size_t>(options.slots()), options.range);
  return fitted;
}

struct SetWriters {
  std::unique_ptr<RecordWriter> train, eval;
};

SetWriters set_writers(const PreprocessOptions& options, const NormStyle& style) {
  const auto set = [&](const char* stem) {
    if (options.format == kParquetFormat)
      return parquet_record_writer(options.folder / stem, parquet_style(options, style), options.rows_per_file);
    return options.format == kRawFormat ? raw_record_writer(options.folder, stem)
                                        : norm_record_writer(options.folder, stem, style, options.rows_per_file);
  };
  std::unique_ptr<RecordWriter> train = set("train");
  return {std::move(train), set("val")};
}

/// Writes the rows of all inputs and adds them to the summary. Returns the skipped rows.
BadRowsFound write_rows(const PreprocessOptions& options, const TableParser& parser, const RowEncoder& encoder,
                        SetWriters& sets, PreprocessSummary& summary) {
  BadRowsFound bad;
  for (const bool all_eval : {false, true}) {
    const auto& inputs = all_eval ? options.eval_inputs : options.inputs;
    if (inputs.empty()) continue;
    TextSource source(inputs, options.table.header, options.table.grammar());
    for_each_block<Encoding, Encoded>(
        source, options.threads, options.progress, all_eval ? "writing the evaluation set" : "writing",
        [&](Encoding& item) { return encode(item, options, parser, encoder, all_eval); },
        [&](Encoded& done) {
          sets.train->add(done.train);
          sets.eval->add(done.eval);
          summary.train.rows += done.train.count();
          summary.eval.rows += done.eval.count();
          summary.train.positives += done.train_positives;
          summary.eval.positives += done.eval_positives;
          bad.add(options.bad_rows, done.bad);
          (all_eval ? summary.eval : summary.train).bad_rows += done.bad.count;
          for (size_t slot = 0; slot < done.most_nnz.size(); ++slot)
            summary.most_nnz[slot] = std::max(summary.most_nnz[slot], done.most_nnz[slot]);
        });
  }
  return bad;
}

}  // namespace

fs::path PreprocessOptions::result(const std::string& stem) const {
  if (format == kParquetFormat) return folder / stem / kParquetList;
  return folder / (stem + (format == kRawFormat ? ".bin" : ".txt"));
}

std::vector<std::string> PreprocessOptions::slot_names() const {
  const std::vector<std::string> categories = table.categories();
  std::vector<std::string> names;
  for (const auto& [a, b] : crosses) names.push_back(categories[a] + "x" + categories[b]);
  names.insert(names.end(), categories.begin(), categories.end());
  return names;
}

PreprocessSummary preprocess(const PreprocessOptions& given, const Log& log) {
  PreprocessOptions options = given;
  check_preprocess_options(options);
  if (options.format == kParquetFormat) parquet_plugin();
  for (const auto* files : {&options.inputs, &options.eval_inputs}) TextSource(*files).expect_readable();
  clear_results(options);
  if (options.holdout.by == Holdout::By::position) options.holdout.train_rows = count_training_rows(options);
  const TableParser parser(options.table, options.bad_rows, static_cast<uint64_t>(options.modulo),
                           options.format == kRawFormat && !options.float_label_dense);
  PreprocessSummary summary;
  summary.fitted = fitted_columns(options, parser);
  check_width(options, summary.fitted);

  const RowEncoder encoder(options, summary.fitted);
  SetWriters sets = set_writers(options, encoder.style());
  summary.most_nnz.assign(static_cast<size_t>(options.slots()), 1);
  const BadRowsFound bad = write_rows(options, parser, encoder, sets, summary);
  if (summary.train.rows == 0) throw Error(Kind::data, "the input has no rows for training");
  bad.report(log);
  summary.train.files = sets.train->finish();
  summary.eval.files = sets.eval->finish();
  return summary;
}

}  // namespace hctr
