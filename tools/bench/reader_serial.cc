#include "reader_serial.h"

#include <chrono>
#include <map>

#include "data/format_table.h"
#include "data/one_hot.h"
#include "data/row_stream.h"
#include "timing.h"

namespace hctr::bench {
namespace {

using Clock = std::chrono::steady_clock;

template <class Body>
double seconds_of(Body&& body) {
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    body();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return median(seconds);
}

/// A set whose chunks are cut as those of another one, and parsed in no time: each becomes `rows` rows.
class FreeSet : public SampleSet {
 public:
  FreeSet(SampleSet& of, const DataClause& clause, int64_t rows) : of_(of), clause_(clause), rows_(rows) {}
  const std::vector<fs::path>& files() const override { return of_.files(); }
  int64_t samples() const override { return of_.samples(); }
  std::unique_ptr<Cutter> open(size_t file, Place from) override { return of_.open(file, from); }
  bool can_be_shared() const override { return false; }
  std::unique_ptr<Parser> parser() const override {
    struct FreeParser : Parser {
      explicit FreeParser(const FreeSet& of) : set(of) {}
      BadRecords parse(Chunk& chunk, SampleBlock& block) override {
        chunk.reading.reset();
        if (block.rows == 0) set.make(block);
        block.one_hot = true;
        return {};
      }
      const FreeSet& set;
    };
    return std::make_unique<FreeParser>(*this);
  }

 private:
  void make(SampleBlock& block) const {
    block.rows = rows_;
    grow(block.label, rows_ * clause_.label.label_dim);
    grow(block.dense, rows_ * clause_.dense.dense_dim);
    grow(block.keys, rows_ * clause_.slots());
    one_key_each(block, rows_, clause_.slots());
  }
  SampleSet& of_;
  const DataClause& clause_;
  int64_t rows_;
};

}  // namespace

void bench_serial(const std::string& name, const DataClause& clause, const ReaderCase& one, int64_t bytes, Report& report) {
  if (name.find(one.only) == name.npos) return;
  const auto set = format_type(clause.format).open(clause, training_source(clause), KeyWidth::detect, Log::silent());
  const auto rate = [&](const std::string& what, double seconds, int64_t rows) {
    report.add(cat("serial ", name), what, static_cast<double>(bytes) * static_cast<double>(rows) / static_cast<double>(one.rows) / seconds / 1e9, "GB/s");
  };
  int64_t chunks = 0;
  rate("cutting", seconds_of([&] {
         ChunkSource source(*set, {}, {});
         chunks = 0;
         for (Chunk chunk; source.next(chunk);) ++chunks;
       }), one.rows);

  FreeSet free(*set, clause, std::max<int64_t>(1, one.rows / chunks));
  Recycler<SampleBlock> recycler;
  BadRecordCare care{.set = name};
  std::vector<Rows> batches;  // some, to be laid out
  int64_t gathered = 0;
  const double seconds = seconds_of([&] {
    batches.clear();
    BlockStream blocks(free, {}, {}, one.threads, recycler, care);
    const auto stream = in_order(blocks, {});
    gathered = 0;
    for (Rows rows; const int64_t count = stream->take(one.batch, rows); rows = {}) {
      gathered += count;
      if (batches.size() < 8 && count == one.batch) batches.push_back(std::move(rows));
    }
  });
  rate("all but parsing and laying out", seconds, gathered);

  const BatchLayout layout(batch_shape(clause, one.batch));
  std::vector<std::byte> memory(layout.bytes);
  ThreadPool alone(1);
  rate("laying out on one thread", seconds_of([&] {
         for (const Rows& rows : batches) fill_batch(layout, memory.data(), rows.ranges, alone);
       }), static_cast<int64_t>(batches.size()) * one.batch);
}

}  // namespace hctr::bench
