#include "formats/reader/parsed_chunk_stream.h"

#include "core/base/expect.h"

namespace hctr {
namespace {

std::future<int64_t> ready_future(int64_t number) {
  std::promise<int64_t> promise;
  promise.set_value(number);
  return promise.get_future();
}

/// Sets `fits_32` from the keys, unless the parser has determined it.
void find_width(SampleBlock& block, int64_t slots) {
  if (block.narrow || block.fits_32) return;
  const int64_t bags = slots * block.rows, keys = block.one_hot ? bags : block.offsets[static_cast<size_t>(bags)];
  uint64_t all = 0;
  for (int64_t k = 0; k < keys; ++k) all |= static_cast<uint64_t>(block.keys[static_cast<size_t>(k)]);
  block.fits_32 = all >> 32 == 0;
}

}  // namespace

ParsedChunkStream::ParsedChunkStream(SampleSet& set, const PassOptions& options, const ReaderPosition& from,
                                     ChunkParsing parsing, Recycler<SampleBlock>& blocks, BadRecordReport& bad_report)
    : set_(set),
      slots_(parsing.slots),
      slice_(parsing.slice),
      negatives_(std::move(parsing.negatives)),
      shuffled_(std::move(parsing.shuffled)),
      next_row_(ready_future(-from.rows)),
      blocks_(blocks),
      bad_report_(bad_report),
      bad_records_(from.bad_records),
      pass_(from.pass),
      pass_rows_(from.file + from.record + from.offset + from.rows + from.taken > 0),
      source_(set, options, from),
      workers_(parsing.workers, [this](Work& work) { return cut(work); }, [this](Work& work) { return parse(work); }) {
  HCTR_EXPECT((slice_ || shuffled_) + negatives_.has_value() <= 1,
              "negative sampling cannot be combined with a slice or with shuffling of the stored order");
  HCTR_EXPECT(!slice_ || !shuffled_, "a slice of a set cannot be shuffled");
}

bool ParsedChunkStream::cut(Work& work) {
  const bool more = source_.next(work.chunk);
  work.pass = source_.pass();
  work.file = source_.file();
  if ((slice_ || shuffled_) && more) {
    work.first_row = std::move(next_row_);
    work.next_row = {};
    next_row_ = work.next_row.get_future();
  }
  return more;
}

/// Waits for the index of the chunk's first row, runs `body`, and passes the index of the next row to the next chunk.
void ParsedChunkStream::in_turn(Work& work, ParsedChunk& parsed, const std::function<void()>& body) try {
  parsed.first_row = work.first_row.get();
  body();
  work.next_row.set_value(parsed.first_row + parsed.rows);
} catch (const std::future_error&) {
  throw EarlierChunkFailed(Kind::data, cat("'", bad_report_.set, "': earlier rows could not be read"));
}

void ParsedChunkStream::select_rows(Work& work, ParsedChunk& parsed) {
  parsed.rows = work.parser->count(work.chunk);
  in_turn(work, parsed, [&] {
    if (!shuffled_) return;
    if (!shuffled_->find(work.pass, parsed.rows, work.selected)) throw other_rows(shuffled_->pass_rows());
    parsed.own = OwnRows{.spans = work.selected, .pass_rows = shuffled_->pass_rows()};
  });
  if (slice_) slice_->find(parsed.first_row, parsed.rows, work.selected);
}

ParsedChunkStream::Result ParsedChunkStream::parse(Work& work) {
  if (!work.parser) work.parser = set_.parser();
  const std::shared_ptr<SampleBlock> samples = blocks_.acquire();
  samples->one_hot = samples->narrow = samples->fits_32 = false;
  samples->ones.clear();
  samples->may_pack = !negatives_;
  ParsedChunk parsed;
  const bool some = selects(work);
  if (some) select_rows(work, parsed);
  const RowSelection rows = some ? RowSelection(work.selected) : RowSelection();
  SampleBlock& parsed_block = negatives_ ? work.all : *samples;
  if (negatives_) parsed_block.one_hot = false;
  parsed_block.names_bad = bad_report_.aside != nullptr;
  BadRecords bad = work.parser->parse_rows(work.chunk, rows, parsed_block);
  if (some) HCTR_EXPECT(samples->rows == rows.count(0), samples->rows, " rows were parsed, expected ", rows.count(0));
  parsed_rows_ += parsed_block.rows;
  if (negatives_)
    negatives_->rule.copy_kept(parsed_block, negatives_->shape, {work.pass, work.chunk.file, work.chunk.begin},
                               *samples);
  if (!some) parsed.rows = samples->rows;
  if (!some && shuffled_) in_turn(work, parsed, [&] { shuffled_->skip(work.pass, parsed.rows); });
  find_width(*samples, slots_);
  const FilePosition& begin = work.chunk.begin;
  parsed.begin = {.pass = work.pass, .file = work.file, .record = begin.record, .offset = begin.offset};
  parsed.samples = samples;
  return {std::move(parsed), std::move(bad), work.chunk.file};
}

std::optional<ParsedChunk> ParsedChunkStream::next() {
  std::optional<Result> result = workers_.next();
  if ((!result || result->chunk.begin.pass != pass_) && pass_rows_ == 0 && !set_.grows())
    fail_empty();  // an empty set would repeat forever
  if (!result) return std::nullopt;
  if (result->chunk.begin.pass != pass_) pass_rows_ = pass_bad_ = 0;
  pass_ = result->chunk.begin.pass;
  pass_rows_ += result->chunk.rows;
  result->chunk.begin.bad_records = bad_records_;
  count_bad_records(*result);
  result->chunk.bad_records = bad_records_;
  result->chunk.rows_before_bad = std::move(result->bad.rows_before);
  return std::move(result->chunk);
}

void ParsedChunkStream::count_bad_records(Result& result) {
  BadRecords& bad = result.bad;
  if (bad.count == 0) return;
  bad_records_ += bad.count;
  pass_bad_ += bad.count;
  if (bad_report_.aside) bad_report_.aside->add(std::move(bad.records), bad_report_.log);
  if (bad_report_.most && bad_records_ > *bad_report_.most)
    throw Error(Kind::data,
                cat("'", bad_report_.set, "': ", bad_records_, " bad records, but \"max_bad_records\" allows ",
                    *bad_report_.most, "; one of the last bad records: ", bad.first));
  if (bad_report_.files.insert(result.file).second)
    bad_report_.log.warning(bad.first, "; bad records of this file are skipped, further ones without a message");
}

Error ParsedChunkStream::other_rows(int64_t expected) const {
  return Error(Kind::data, cat("'", bad_report_.set, "': a pass has a different number of rows than the ", expected,
                               " expected rows; did files change while they were read?"));
}

void ParsedChunkStream::fail_empty() const {
  throw Error(Kind::data, pass_bad_ > 0 ? cat("'", bad_report_.set, "': every record of the set is bad (", pass_bad_,
                                              " of them); see the warnings")
                          : parsed_rows_ > 0
                              ? cat("'", bad_report_.set,
                                    "': \"negative_sampling\" has dropped every sample of a pass: no sample has a "
                                    "label of 0.5 or more, and the set has too few samples")
                              : cat("'", bad_report_.set, "': the data set is empty: its files hold no records"));
}

}  // namespace hctr
