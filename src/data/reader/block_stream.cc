#include "data/reader/block_stream.h"

#include "base/error.h"

namespace hctr {
namespace {

std::future<int64_t> told(int64_t number) {
  std::promise<int64_t> promise;
  promise.set_value(number);
  return promise.get_future();
}

}  // namespace

BlockStream::BlockStream(SampleSet& set, const Passage& passage, const ReaderPosition& from, int workers,
                         Recycler<SampleBlock>& blocks, BadRecordCare& care, std::optional<Share> share)
    : set_(set),
      share_(share),
      number_(told(-from.rows)),
      blocks_(blocks),
      care_(care),
      bad_records_(from.bad_records),
      pass_(from.pass),
      pass_rows_(from.file + from.record + from.offset + from.rows + from.taken > 0),
      source_(set, passage, from),
      workers_(workers, [this](Work& work) { return cut(work); }, [this](Work& work) { return parse(work); }) {}

bool BlockStream::cut(Work& work) {
  const bool more = source_.next(work.chunk);
  work.pass = source_.pass();
  work.file = source_.file();
  if (share_ && more) {
    work.before = std::move(number_);
    work.behind = {};
    number_ = work.behind.get_future();
  }
  return more;
}

void BlockStream::select_rows(Work& work, Block& block) try {
  block.rows = work.parser->count(work.chunk);
  block.number = work.before.get();
  work.behind.set_value(block.number + block.rows);
  share_->find(block.number, block.rows, work.selected);
} catch (const std::future_error&) {
  throw Error(Kind::data, cat("'", care_.set, "': rows before could not be read"));
}

BlockStream::Parsed BlockStream::parse(Work& work) {
  if (!work.parser) work.parser = set_.parser();
  const std::shared_ptr<SampleBlock> samples = blocks_.take();
  samples->one_hot = false;
  Block block;
  if (share_) select_rows(work, block);
  const RowSelection rows = share_ ? RowSelection(work.selected) : RowSelection();
  BadRecords bad = work.parser->parse_rows(work.chunk, rows, *samples);
  if (share_)
    HCTR_EXPECT(samples->rows == rows.count(0), samples->rows, " rows were parsed of ", rows.count(0));
  else
    block.rows = samples->rows;
  parsed_rows_ += samples->rows;
  const Place& begin = work.chunk.begin;
  block.begin = {.pass = work.pass, .file = work.file, .record = begin.record, .offset = begin.offset};
  block.samples = samples;
  return {std::move(block), std::move(bad), work.chunk.file};
}

std::optional<Block> BlockStream::next() {
  std::optional<Parsed> parsed = workers_.next();
  if ((!parsed || parsed->block.begin.pass != pass_) && pass_rows_ == 0) fail_empty();  // it would repeat for ever
  if (!parsed) return std::nullopt;
  if (parsed->block.begin.pass != pass_) pass_rows_ = pass_bad_ = 0;
  pass_ = parsed->block.begin.pass;
  pass_rows_ += parsed->block.rows;
  parsed->block.begin.bad_records = bad_records_;
  count(*parsed);
  parsed->block.bad_records = bad_records_;
  return std::move(parsed->block);
}

void BlockStream::count(const Parsed& parsed) {
  const BadRecords& bad = parsed.bad;
  if (bad.count == 0) return;
  bad_records_ += bad.count;
  pass_bad_ += bad.count;
  if (care_.most && bad_records_ > *care_.most)
    throw Error(Kind::data, cat("'", care_.set, "': ", bad_records_, " bad records, and \"max_bad_records\" allows ",
                                *care_.most, "; one of the last: ", bad.first));
  if (care_.mentioned.insert(parsed.file).second)
    care_.log.warning(bad.first, "; left out, as are other bad records of this file");
}

void BlockStream::fail_empty() const {
  throw Error(Kind::data, pass_bad_ > 0 ? cat("'", care_.set, "': every record of the set is bad (", pass_bad_,
                                              " of them); the warnings say why")
                                        : cat("'", care_.set, "': the data set is empty: its files hold no records"));
}

}  // namespace hctr
