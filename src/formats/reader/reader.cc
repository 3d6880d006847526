#include "formats/reader/reader.h"

#include <algorithm>
#include <cmath>

#include "core/base/expect.h"
#include "core/base/random.h"
#include "formats/catalog/open_set.h"
#include "formats/reader/followed_set.h"
#include "formats/reader/reader_run.h"

namespace hctr {
namespace {

void expect_same_shape(const BatchShape& batch, const RecordShape& record) {
  bool same = batch.label_dim == record.label_dim && batch.dense_dim == record.dense_dim &&
              batch.tables.size() == record.inputs.size();
  for (size_t i = 0; same && i < batch.tables.size(); ++i)
    same = batch.tables[i].slots == record.inputs[i].slots &&
           (batch.tables[i].keep > 0 || batch.tables[i].key_capacity >= batch.samples * record.inputs[i].max_keys);
  HCTR_EXPECT(same, "the batch layout belongs to another Data layer");
}

std::unique_ptr<SampleSet> open_set(const DataSection& section, const Source& source, const ReaderOptions& options,
                                    const Log& log) {
  if (options.feed)
    return follow_files(section, source, options.key_width, log, options.feed, static_cast<size_t>(options.from.file));
  return open_set(section, source, options.key_width, log);
}

/// The file of bad records; only rank 0 writes it. If bad records are skipped, every rank parses all rows, so rank 0
/// sees all of them.
std::shared_ptr<BadRecordsFile> bad_records_file(const DataSection& section, const ReaderOptions& options) {
  const auto* file = section.options.find<BadRecordsSection>();
  return file && options.rank == 0 ? std::make_shared<BadRecordsFile>(*file) : nullptr;
}

std::unique_ptr<ReaderRun> make_run(ReaderSet& set, const ReaderPosition& from) {
  const bool every_row = set.options.shuffle == 0 && !set.negatives.samples() && set.samples->samples() > 0;
  const RowMap* rows = every_row ? set.samples->row_map() : nullptr;
  return rows ? run_by_rows(set, *rows, from) : run_by_chunks(set, from);
}

}  // namespace

void ReaderSet::describe(StepState& state, int64_t rows, int64_t first_sample) const {
  state.first_sample = first_sample + rank_begin;
  state.valid_samples = static_cast<int32_t>(rows_of_rank(rows));
  state.global_samples = static_cast<int32_t>(rows);
  state.samples = static_cast<int32_t>(layout.shape.samples);
  state.log_negative_share = negatives.log_share();
}

Reader::Reader(const DataSection& section, const Source& source, const BatchLayout& layout,
               std::vector<std::byte*> buffers, const ReaderOptions& options, const Log& log) {
  HCTR_EXPECT(options.batch > 0 && options.workers > 0 && options.ranks > 0 && options.rank >= 0 &&
                  options.rank < options.ranks && !buffers.empty(),
              "reader of ", options.batch, " samples, ", options.workers, " workers, rank ", options.rank, " of ",
              options.ranks, ", ", buffers.size(), " buffers");
  set_.reset(new ReaderSet{.samples = open_set(section, source, options, log),
                           .layout = layout,
                           .buffers = std::move(buffers),
                           .options = options,
                           .blocks = {},
                           .bad_report = {.set = source.path,
                                          .most = section.max_bad_records,
                                          .log = log,
                                          .aside = bad_records_file(section, options)},
                           .kept_columns = source.keep.size(),
                           .negatives = {options.negative_share, options.seed}});
  ReaderSet& set = *set_;
  HCTR_EXPECT(!set.negatives.samples() || source.keep.empty(),
              "columns cannot be copied to the output with "
              "negative sampling");
  set.delivered_samples = set.samples->samples();
  if (set.negatives.samples() && !options.feed)
    set.delivered_samples = std::max<int64_t>(std::llround(static_cast<double>(set.delivered_samples) *
                                                           set.negatives.expected_share(*set.samples, layout.shape)),
                                              1);
  if (!source.keep.empty() && !set.samples->keeps_columns())
    throw Error(
        Kind::usage,
        cat("column '", source.keep[0],
            "' cannot be copied to the output: only columns of Csv, Criteo and Parquet data can, but the format of '",
            source.path, "' is ", section.format.name));
  set.rank_begin = options.batch * options.rank / options.ranks;
  set.rank_end = options.batch * (options.rank + 1) / options.ranks;
  HCTR_EXPECT(layout.shape.samples >= set.rank_end - set.rank_begin, "a layout of ", layout.shape.samples, " rows for ",
              set.rank_end - set.rank_begin);
  expect_same_shape(layout.shape, record_shape(section));
  reset(options.from);
}

Reader::~Reader() = default;

std::optional<int> Reader::next() {
  HCTR_EXPECT(run_, "the reader cannot be used: its start failed");
  std::optional<ReadyBatch> ready = run_->next();
  if (!ready) return std::nullopt;
  position_ = ready->after;
  skipped_ = ready->skipped;
  passed_on_ = std::move(ready->passed_on);
  return ready->buffer;
}

bool Reader::wait(std::chrono::milliseconds limit) {
  HCTR_EXPECT(run_, "the reader cannot be used: its start failed");
  return run_->wait(limit);
}

void Reader::release(int buffer) { run_->release(buffer); }

void Reader::reset(const ReaderPosition& from) {
  run_.reset();
  position_ = from;
  skipped_ = from.bad_records;
  run_ = make_run(*set_, from);
}

int64_t Reader::parsed_rows() const { return run_->parsed_rows(); }

ReaderPosition Reader::next_pass() const { return {.pass = position_.pass + 1, .bad_records = skipped_}; }

std::string Reader::place_of_last_row() const {
  if (set_->options.shuffle > 0) return "";
  const std::string file = cat("'", set_->samples->file(static_cast<size_t>(position_.file)).string(), "'");
  const bool some_left_out = skipped_ != set_->options.from.bad_records || set_->negatives.samples();
  if (!set_->samples->counts_records() || some_left_out) return file;
  return cat("record ", position_.record + position_.rows, " of ", file);  // position_.rows includes the row itself
}

bool Reader::has_labels() const { return set_->samples->has_labels(); }

bool Reader::samples_estimated() const { return set_->samples->samples_estimated() || set_->negatives.samples(); }

int Reader::key_bytes() const { return set_->samples->key_bytes(); }

int64_t Reader::rows_left_over() const { return set_->rows_left_over; }

int64_t Reader::samples() const { return set_->delivered_samples; }

DataFingerprint Reader::fingerprint() const {
  DataFingerprint print{.files = static_cast<int64_t>(set_->samples->files().size()),
                        .bytes = 0,
                        .sizes = 0,
                        .slot_key_rules = set_->samples->slot_key_rules()};
  for (size_t f = 0; f < set_->samples->files().size(); ++f) {
    const int64_t bytes = in_context([&] { return cat("looking at '", set_->samples->files()[f].string(), "'"); },
                                     [&] { return set_->samples->bytes(f); });
    print.bytes += bytes;
    print.sizes = mix64(print.sizes ^ static_cast<uint64_t>(bytes));
  }
  return print;
}

}  // namespace hctr
