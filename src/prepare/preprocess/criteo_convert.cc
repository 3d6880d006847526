#include "prepare/preprocess/criteo_convert.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "data/io/file_list.h"
#include "prepare/code_counts.h"
#include "prepare/text_work.h"
#include "prepare/write/norm_set_writer.h"
#include "prepare/write/record_writer.h"

namespace hctr {
namespace {

/// What one block of lines became.
struct Converted {
  EncodedRecords records;
  int64_t train = 0;  // records of the training set; the others are of the evaluation set
  int64_t train_positives = 0, val_positives = 0;
  BadRowsFound bad;
};

/// A value and its column as one number.
uint64_t code_of(Feature feature) { return uint64_t{feature.column} << 57 ^ feature.value; }

/// Calls visit(row, whether it belongs to the training set) for each good row of a block; returns the bad ones.
template <class Visit>
BadRowsFound visit_rows(const TextBlock& block, const CriteoOptions& options, int64_t train_rows, Visit&& visit) {
  CriteoRow row;
  int64_t index = block.first_row;
  BadRowsFound bad;
  for_each_line(block, [&](std::string_view line, int64_t number) {
    const std::string problem = parse_criteo_row(line, row);
    if (problem.empty())
      visit(row, index < train_rows);
    else
      bad.add(options.bad_rows, block, number, line.data(), problem);
    ++index;
  });
  return bad;
}

struct Block {
  TextBlock block;
};
struct Counting {
  TextBlock block;
  CodeCounts* counts = nullptr;
};

/// How often each value of each column occurs in the training rows.
CodeCounts count_values(const CriteoOptions& options, int64_t train_rows) {
  CriteoStyle each_once = options.style;  // the wide slot repeats the values of the deep ones, but for crosses
  if (each_once.wide == Wide::all) {
    each_once.wide = Wide::none;
    each_once.integers = Integers::both;
  }
  PerThread<CodeCounts> counts;
  TextSource source(options.inputs);
  BadRowsFound bad;
  for_each_block<Counting, BadRowsFound>(
      source, options.threads, "counting values",
      [&](Counting& item) {
        CodeCounts& mine = counts.get(item.counts);
        std::vector<Feature> features;
        return visit_rows(item.block, options, train_rows, [&](const CriteoRow& row, bool train) {
          if (!train) return;
          criteo_features(each_once, row, features);
          for (const Feature& feature : features) mine.add(code_of(feature));
        });
      },
      [&](BadRowsFound& more) { bad.add(options.bad_rows, more); });
  CodeCounts all;
  for (CodeCounts& mine : counts.all()) all.take(mine);
  return all;
}

Converted encode(const TextBlock& block, const CriteoOptions& options, const CodeCounts& counts, int64_t train_rows) {
  Converted done;
  const NormStyle style = options.style.norm();
  const int64_t wide = options.style.wide_keys();
  std::vector<Feature> features;
  std::vector<int64_t> keys;
  std::vector<float> dense;
  std::vector<int32_t> nnz(static_cast<size_t>(style.slots), 1);
  if (wide > 0) nnz[0] = static_cast<int32_t>(wide);
  done.bad = visit_rows(block, options, train_rows, [&](const CriteoRow& row, bool train) {
    criteo_features(options.style, row, features);
    keys.clear();
    for (Feature feature : features) {
      if (options.min_count > 1 && feature.value != kMissing &&
          counts.of(code_of(feature)) < static_cast<uint64_t>(options.min_count))
        feature.value = kRare;
      keys.push_back(criteo_key(options.style, feature));
    }
    dense.clear();
    if (options.style.has_dense())
      for (const auto& integer : row.integers) dense.push_back(dense_value(integer));
    append_norm_record(style, {&row.label, 1}, dense, nnz, keys, done.records.bytes);
    done.records.ends.push_back(done.records.bytes.size());
    done.train += train;
    (train ? done.train_positives : done.val_positives) += row.label > 0;
  });
  return done;
}

void check_options(const CriteoOptions& options) {
  check_criteo_style(options.style);
  const bool once = std::find(options.inputs.begin(), options.inputs.end(), "-") != options.inputs.end();
  if (once && (options.holdout > 0 || options.min_count > 0))
    throw Error(Kind::usage, "--holdout and --min-count read the input more than once; the standard input cannot be");
  if (options.inputs.empty()) throw Error(Kind::usage, "no input files");
  if (options.rows_per_file < 1) throw Error(Kind::usage, "--rows-per-file must be at least 1");
  if (!(options.holdout >= 0 && options.holdout < 1))
    throw Error(Kind::usage, cat("--holdout must lie between 0 and 1, not ", options.holdout));
  if (options.min_count < 0 || options.min_count > std::numeric_limits<uint32_t>::max())
    throw Error(Kind::usage, cat("--min-count ", options.min_count, " is out of range"));
}

}  // namespace

CriteoSummary convert_criteo(const CriteoOptions& options, const Log& log) {
  check_options(options);
  make_room({options.folder / "train.txt", options.folder / "val.txt"}, options.force);
  int64_t train_rows = std::numeric_limits<int64_t>::max();
  if (options.holdout > 0) {
    const int64_t total = count_rows(options.inputs, {}, options.threads);
    train_rows = total - static_cast<int64_t>(std::llround(static_cast<double>(total) * options.holdout));
  }
  CriteoSummary summary;
  CodeCounts counts;
  if (options.min_count > 1) {
    counts = count_values(options, train_rows);
    summary.distinct_values = counts.distinct();
  }
  const auto set = [&](const char* stem) {
    return NormSetWriter(options.style.norm(), options.rows_per_file,
                         [folder = options.folder, stem](int64_t n) { return folder / cat(stem, ".", n, ".data"); });
  };
  NormSetWriter train = set("train"), val = set("val");
  TextSource source(options.inputs);
  BadRowsFound bad;
  for_each_block<Block, Converted>(
      source, options.threads, "converting",
      [&](Block& item) { return encode(item.block, options, counts, train_rows); },
      [&](Converted& done) {
        train.add(done.records, 0, done.train);
        val.add(done.records, done.train, done.records.count() - done.train);
        summary.train_positives += done.train_positives;
        summary.val_positives += done.val_positives;
        bad.add(options.bad_rows, done.bad);
      });
  summary.train_rows = train.records();
  summary.val_rows = val.records();
  if (summary.train_rows == 0) throw Error(Kind::data, "the input holds no rows for training");
  summary.bad_rows = bad.count;
  bad.tell(log);
  const std::vector<fs::path> train_files = train.finish(), val_files = val.finish();
  write_file_list(options.folder / "train.txt", train_files, true);
  if (!val_files.empty()) write_file_list(options.folder / "val.txt", val_files, true);
  summary.train_files = static_cast<int64_t>(train_files.size());
  summary.val_files = static_cast<int64_t>(val_files.size());
  return summary;
}

Json criteo_data_section(const CriteoOptions& options) {
  const CriteoStyle& style = options.style;
  Json section, label, dense, sparse;
  section.set("type", "Data").set("format", "Norm").set("source", (options.folder / "train.txt").string());
  if (options.holdout > 0) section.set("eval_source", (options.folder / "val.txt").string());
  section.set("check", style.check == Check::sum ? "Sum" : "None");
  label.set("top", "label").set("label_dim", 1);
  dense.set("top", "dense").set("dense_dim", style.dense_dim());
  const auto add = [&](const char* top, int64_t slots, int64_t max_nnz) {
    Json input;
    input.set("top", top).set("type", "DistributedSlot").set("max_feature_num_per_sample", slots * max_nnz);
    input.set("max_nnz", max_nnz).set("slot_num", slots);
    sparse.add(std::move(input));
  };
  if (style.wide != Wide::none) add("wide_data", 1, style.wide_keys());
  add("deep_data", style.deep_slots(), 1);
  section.set("label", std::move(label)).set("dense", std::move(dense)).set("sparse", std::move(sparse));
  return section;
}

}  // namespace hctr
