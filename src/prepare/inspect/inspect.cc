#include "prepare/inspect/inspect.h"

#include <algorithm>
#include <cmath>

#include "core/base/expect.h"
#include "core/base/progress.h"
#include "formats/catalog/unlisted_keys.h"
#include "formats/data/text_grammar.h"
#include "formats/io/arriving_files.h"
#include "formats/io/file_list.h"
#include "formats/io/set_files.h"
#include "prepare/inspect/inspect_file.h"
#include "prepare/inspect/inspect_judge.h"
#include "prepare/text_work.h"

namespace hctr {
namespace {

/// A unit of work: a chunk, and state that a thread reuses.
struct Work {
  std::shared_ptr<OpenData> data;  // null: `problem` is the reason why reading the file stopped
  size_t file = 0;
  Chunk chunk;
  int64_t bytes_done = 0;  // bytes of all files up to the end of this chunk
  std::string problem;
  SampleBlock block;
  std::vector<SlotSummary>* slots = nullptr;
};

struct ChunkStatistics {
  size_t file = 0;
  int64_t samples = 0, bad = 0, bytes_done = 0, problem_count = 0;
  std::vector<NumberSummary> labels, dense;
  std::vector<std::string> problems, head;
};

std::string text_of(const SampleBlock& block, const RecordShape& shape, int64_t row) {
  std::string text = "label";
  for (int64_t i = 0; i < shape.label_dim; ++i)
    text += cat(" ", block.label[static_cast<size_t>(row * shape.label_dim + i)]);
  if (shape.dense_dim > 0) text += "  dense";
  for (int64_t i = 0; i < shape.dense_dim; ++i)
    text += cat(" ", block.exact_dense(static_cast<size_t>(row * shape.dense_dim + i)));
  text += "  keys";
  for (int64_t slot = 0; slot < shape.slots(); ++slot) {
    const auto bag = static_cast<size_t>(slot * block.rows + row);
    text += " [";
    for (int32_t k = block.offsets[bag]; k < block.offsets[bag + 1]; ++k)
      text += cat(k > block.offsets[bag] ? " " : "", block.keys[static_cast<size_t>(k)]);
    text += "]";
  }
  return text;
}

/// Data shared by the inspection of all chunks.
struct InspectContext {
  const InspectOptions& options;
  // [slot] the key of unlisted values; none if the slot has no vocabulary
  std::vector<std::optional<int64_t>> unlisted;

  void add_slot(std::vector<SlotSummary>& slots) const {
    const size_t s = slots.size();
    SlotSummary& slot = slots.emplace_back();
    slot.distinct = DistinctCount(options.exact_bound);
    if (s < unlisted.size() && unlisted[s]) slot.unlisted = 0;
  }
};

std::vector<std::optional<int64_t>> unlisted_keys_of(const InspectOptions& options) try {
  return options.section ? unlisted_keys(*options.section) : std::vector<std::optional<int64_t>>();
} catch (const Error&) {
  return {};  // ignored: opening the files reports the same error
}

void summarize(const SampleBlock& block, const RecordShape& shape, ChunkStatistics& statistics,
               const InspectContext& context, std::vector<SlotSummary>& slots) {
  statistics.labels.resize(static_cast<size_t>(shape.label_dim));
  statistics.dense.resize(static_cast<size_t>(shape.dense_dim));
  std::vector<double> values(static_cast<size_t>(block.rows));
  const auto add = [&](std::vector<NumberSummary>& columns, const auto& value) {
    for (size_t i = 0; i < columns.size(); ++i) {
      for (size_t row = 0; row < values.size(); ++row) values[row] = value(row * columns.size() + i);
      columns[i].add(values);
    }
  };
  add(statistics.labels, [&](size_t at) { return static_cast<double>(block.label[at]); });
  add(statistics.dense, [&](size_t at) { return block.exact_dense(at); });
  while (static_cast<int64_t>(slots.size()) < shape.slots()) context.add_slot(slots);
  for (int64_t s = 0; s < shape.slots(); ++s) {
    SlotSummary& slot = slots[static_cast<size_t>(s)];
    const int32_t* offsets = block.offsets.data() + s * block.rows;
    for (int64_t row = 0; row < block.rows; ++row) {
      const int64_t nnz = offsets[row + 1] - offsets[row];
      slot.least_nnz = std::min(slot.least_nnz, nnz);
      slot.most_nnz = std::max(slot.most_nnz, nnz);
    }
    slot.keys += block.rows > 0 ? offsets[block.rows] - offsets[0] : 0;
    for (int32_t k = block.rows > 0 ? offsets[0] : 0; k < (block.rows > 0 ? offsets[block.rows] : 0); ++k) {
      const int64_t key = block.keys[static_cast<size_t>(k)];
      slot.least_key = std::min(slot.least_key, key);
      slot.most_key = std::max(slot.most_key, key);
      slot.distinct.add(key);
      if (slot.unlisted) *slot.unlisted += key == context.unlisted[static_cast<size_t>(s)];
    }
  }
}

/// Returns a chunk that consists of record `i` of `chunk`. Call find_records() before: it writes chunk.begins, the
/// offsets of the records.
Chunk record_of(const Chunk& chunk, int64_t i) {
  const uint32_t begin = chunk.begins[static_cast<size_t>(i)], end = chunk.begins[static_cast<size_t>(i) + 1];
  Chunk one;
  one.file = chunk.file;
  one.records = 1;
  one.begin = {.record = chunk.begin.record + i, .offset = chunk.begin.offset + begin - chunk.begins.front()};
  one.bytes = end - begin;
  one.buffer.assign(chunk.buffer.begin() + begin, chunk.buffer.begin() + end);
  one.begins = {0, end - begin};
  return one;
}

/// Parses a chunk again, one record at a time, and describes each problem.
void name_problems(const OpenData& data, const Chunk& chunk, const SampleJudge& judge, const InspectOptions& options,
                   ChunkStatistics& statistics) {
  SampleBlock block;
  for (int64_t i = 0; i < chunk.records; ++i) {
    Chunk one = record_of(chunk, i);
    const BadRecords bad = data.parse(one, block);
    // a blank line gives a block without rows
    const std::string problem = bad.count > 0 || block.rows == 0 ? "" : judge(block, 0);
    if (bad.count == 0 && problem.empty()) continue;
    if (statistics.problem_count++ >= options.most_problems) continue;
    const std::string which = !data.counts_records
                                  ? "the record at byte "
                                  : cat("record ", one.begin.record + 1, data.file.is_estimate ? " of about " : " of ",
                                        data.file.records, ", at byte ");
    statistics.problems.push_back(
        bad.count > 0 ? bad.first : cat("'", data.file.path.string(), "': ", which, one.begin.offset, ": ", problem));
  }
}

ChunkStatistics inspect_chunk(Work& work, const InspectContext& context, PerThread<std::vector<SlotSummary>>& slots) {
  const InspectOptions& options = context.options;
  ChunkStatistics statistics;
  statistics.file = work.file;
  statistics.bytes_done = work.bytes_done;
  if (!work.problem.empty()) {
    statistics.problems = {work.problem};
    statistics.problem_count = 1;
    return statistics;
  }
  const OpenData& data = *work.data;
  BadRecords bad;
  try {
    work.block.wants_exact = true;
    bad = data.parse(work.chunk, work.block);
  } catch (const EarlierChunkFailed&) {  // the result of the earlier chunk has the problem
    return statistics;
  } catch (const Error& error) {  // the file may have a damaged page, for example; later chunks are still read
    statistics.problems = {error.what()};
    statistics.problem_count = 1;
    return statistics;
  }
  statistics.samples = work.block.rows;
  statistics.bad = bad.count;
  summarize(work.block, data.shape, statistics, context, slots.get(work.slots));
  const SampleJudge judge(data.shape, options);
  int64_t wrong = 0;
  std::string first = bad.first;
  for (int64_t row = 0; row < work.block.rows; ++row)
    if (const std::string problem = judge(work.block, row); !problem.empty() && wrong++ == 0 && first.empty())
      first = cat("'", data.file.path.string(), "', after record ", work.chunk.begin.record, ": ", problem);
  if (bad.count + wrong > 0) {
    if (data.find_records(work.chunk)) {
      name_problems(data, work.chunk, judge, options, statistics);
    } else {
      statistics.problems = {first};
      statistics.problem_count = bad.count + wrong;
    }
  }
  if (work.file == 0)
    for (int64_t row = 0; row < std::min(work.block.rows, options.head - work.chunk.begin.record); ++row)
      statistics.head.push_back(text_of(work.block, data.shape, row));
  return statistics;
}

/// Returns the chunks of all files in order. If a file cannot be read to its end, one item has the problem instead of a
/// chunk.
class Files {
 public:
  Files(std::vector<InspectedFile>& files, const InspectOptions& options) : files_(files), options_(options) {}

  bool next(Work& work) {
    for (;;) {
      work.problem.clear();
      try {
        if (!open_) {
          if (next_ == files_.size()) return false;
          work.file = next_++;
          open_ = std::make_shared<OpenData>(open_data(files_[work.file].path, options_));
          files_[work.file] = open_->file;
        }
        work.file = next_ - 1;
        work.data = open_;
        if (in_file_ < options_.most_bytes_of_file && open_->cutter->next(work.chunk)) {
          in_file_ = open_->cutter->consumed().value_or(in_file_ + work.chunk.bytes);
          work.bytes_done = before_ + in_file_;
          return true;
        }
        close();
      } catch (const Error& error) {
        if (error.kind() == Kind::usage) throw;
        close();
        work.bytes_done = before_;
        work.data.reset();
        work.problem = error.what();
        return true;
      }
    }
  }

 private:
  void close() {
    open_.reset();
    before_ += files_[next_ - 1].bytes;
    in_file_ = 0;
  }

  std::vector<InspectedFile>& files_;
  const InspectOptions& options_;
  std::shared_ptr<OpenData> open_;
  size_t next_ = 0;
  int64_t before_ = 0, in_file_ = 0;  // before_: bytes of finished files; in_file_: bytes of the open file
};

template <class T>
void merge_all(std::vector<T>& to, std::vector<T>& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i].merge(from[i]);
}

}  // namespace

void NumberSummary::add(std::span<double> values) {
  count += static_cast<int64_t>(values.size());
  for (double& value : values) {
    zeros_and_ones += value == 0 || value == 1;
    if (std::isfinite(value)) continue;
    ++not_finite;
    value = std::numeric_limits<double>::quiet_NaN();
  }
  finite.add(values);
}

void NumberSummary::merge(const NumberSummary& other) {
  count += other.count;
  not_finite += other.not_finite;
  zeros_and_ones += other.zeros_and_ones;
  finite.merge(other.finite);
}

void SlotSummary::merge(SlotSummary& other) {
  least_nnz = std::min(least_nnz, other.least_nnz);
  most_nnz = std::max(most_nnz, other.most_nnz);
  keys += other.keys;
  least_key = std::min(least_key, other.least_key);
  most_key = std::max(most_key, other.most_key);
  if (unlisted) *unlisted += other.unlisted.value_or(0);
  distinct.merge(other.distinct);
}

bool wants_binary_labels(const Json& config) {
  bool any = false;
  for (const Json& layer : *config.find("layers")->array()) {
    const Json* type = layer.find("type");
    const std::string word = type && type->string() ? *type->string() : "";
    if (word.find("Loss") == std::string::npos) continue;
    const Json* bottom = layer.find("bottom");
    const bool weighted = bottom && bottom->array() && bottom->array()->size() > 2;
    if (word != "BinaryCrossEntropyLoss" || weighted) return false;
    any = true;
  }
  return any;
}

KeyWidth key_width_of(const Json& config) {
  const Json* solver = config.find("solver");
  const Json* width = solver ? solver->find("input_key_type") : nullptr;
  if (!width || !width->string()) return KeyWidth::detect;
  return *width->string() == "I32" ? KeyWidth::u32 : KeyWidth::i64;
}

std::vector<fs::path> data_files(const fs::path& path, const InspectOptions& options, const Log& log) {
  if (!options.section) return raw_files(path, log, true);
  // with `follow`, inspects the files that have arrived so far
  if (options.section->follow && path == options.section->source) {
    std::vector<fs::path> files;
    for (const std::string& name : arriving_files(path, {})->look().names) files.push_back(path_of_arrived(path, name));
    if (files.empty())
      throw Error(Kind::data, cat("'", path.string(),
                                  "': \"follow\" is true, but no file has arrived "
                                  "yet"));
    return files;
  }
  const auto files = format_type(options.section->format).files;
  return files ? files(path, log) : std::vector<fs::path>{path};
}

Inspection inspect(const std::vector<fs::path>& paths, const InspectOptions& options) {
  Inspection found;
  int64_t bytes = 0;
  for (const fs::path& path : paths) {
    found.files.push_back({.path = path});
    bytes += bytes_to_read(path, options);
  }
  std::vector<int64_t> good(paths.size()), bad(paths.size());
  Files files(found.files, options);
  const InspectContext context{options, unlisted_keys_of(options)};
  PerThread<std::vector<SlotSummary>> slots;
  Progress progress(options.progress, "reading", "bytes", bytes);
  {
    OrderedWorkers<Work, ChunkStatistics> workers(
        options.threads, [&](Work& work) { return files.next(work); },
        [&](Work& work) { return inspect_chunk(work, context, slots); });
    while (std::optional<ChunkStatistics> statistics = workers.next()) {
      found.samples += statistics->samples;
      bad[statistics->file] += statistics->bad;
      good[statistics->file] += statistics->samples;
      merge_all(found.labels, statistics->labels);
      merge_all(found.dense, statistics->dense);
      for (std::string& problem : statistics->problems)
        if (static_cast<int64_t>(found.problems.size()) < options.most_problems)
          found.problems.push_back(std::move(problem));
      found.problem_count += statistics->problem_count;
      for (std::string& line : statistics->head)
        if (static_cast<int64_t>(found.head.size()) < options.head) found.head.push_back(std::move(line));
      progress.update(statistics->bytes_done, with_unit_prefix(static_cast<double>(found.samples)) + " samples");
    }
  }
  progress.finish();
  for (size_t i = 0; i < bad.size(); ++i) {
    found.files[i].bad_records = bad[i];
    if (found.files[i].is_estimate) found.files[i].records = good[i] + bad[i];
  }
  for (auto& mine : slots.all())
    for (size_t s = 0; s < mine.size(); ++s) {
      if (found.slots.size() <= s) context.add_slot(found.slots);
      found.slots[s].merge(mine[s]);
    }
  return found;
}

}  // namespace hctr
