#include "reader_serial.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <future>
#include <thread>

#include "formats/catalog/format_table.h"
#include "formats/data/one_hot.h"
#include "formats/norm/norm_set.h"
#include "formats/reader/row_stream.h"
#include "timing.h"

namespace hctr::bench {
namespace {

/// The CPU time of the calling thread, which other programs on the machine do not affect.
template <class Body>
double seconds_of(Body&& body) {
  const auto now = [] {
    timespec time;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  std::vector<double> seconds;
  for (int i = 0; i < 5; ++i) {
    const double start = now();
    body();
    seconds.push_back(now() - start);
  }
  return median(seconds);
}

/// Returns the seconds to pass the end of a chunk to the thread that waits for it. This is elapsed time, because CPU
/// time does not include waiting. It is the best of several runs.
double seconds_of_link(int threads) {
  constexpr size_t kLinks = 2000;
  double best = 1;
  for (int run = 0; run < 10; ++run) {
    std::vector<std::promise<FilePosition>> links(kLinks + 1);
    std::vector<std::thread> all;
    const auto start = std::chrono::steady_clock::now();
    for (int t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        for (size_t i = static_cast<size_t>(t); i < kLinks; i += static_cast<size_t>(threads))
          links[i + 1].set_value(links[i].get_future().get());
      });
    links[0].set_value({});
    for (std::thread& thread : all) thread.join();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kLinks);
  }
  return best;
}

/// A copy of a set that needs no parsing: each chunk yields `rows` prepared rows.
class FreeSet : public SampleSet {
 public:
  FreeSet(SampleSet& of, const DataSection& section, int64_t rows) : of_(of), section_(section), rows_(rows) {}
  const std::vector<fs::path>& files() const override { return of_.files(); }
  int64_t samples() const override { return of_.samples(); }
  std::unique_ptr<Cutter> open(size_t file, FilePosition from) override { return of_.open(file, from); }
  bool can_select_rows() const override { return false; }
  std::unique_ptr<Parser> parser() const override {
    struct FreeParser : Parser {
      explicit FreeParser(const FreeSet& of) : set(of) {}
      BadRecords parse_rows(Chunk& chunk, const RowSelection&, SampleBlock& block) override {
        chunk.source.reset();
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
    grow(block.label, rows_ * section_.label.label_dim);
    grow(block.dense, rows_ * section_.dense.dense_dim);
    grow(block.keys, rows_ * section_.slots());
    one_key_each(block, rows_, section_.slots());
  }
  SampleSet& of_;
  const DataSection& section_;
  int64_t rows_;
};

}  // namespace

void bench_serial(const std::string& name, const DataSection& section, const ReaderCase& one, int64_t bytes,
                  Report& report) {
  if (name.find(one.only) == name.npos) return;
  const auto set = format_type(section.format).open(section, training_source(section), KeyWidth::detect, Log::silent());
  const auto rate = [&](const std::string& what, double seconds, int64_t rows) {
    report.add(cat("serial ", name), what,
               static_cast<double>(bytes) * static_cast<double>(rows) / static_cast<double>(one.rows) / seconds / 1e9,
               "GB/s");
  };
  int64_t chunks = 0;
  rate("cutting", seconds_of([&] {
         ChunkSource source(*set, {}, {});
         chunks = 0;
         for (Chunk chunk; source.next(chunk);) ++chunks;
       }),
       one.rows);

  FreeSet free(*set, section, std::max<int64_t>(1, one.rows / chunks));
  Recycler<SampleBlock> recycler;
  BadRecordReport bad_report{.set = name};
  std::vector<Rows> batches;  // some batches, for measuring the layout
  int64_t gathered = 0;
  const double seconds = seconds_of([&] {
    batches.clear();
    ParsedChunkStream chunks_of_set(free, {}, {}, {.workers = one.threads, .slots = section.slots()}, recycler,
                                    bad_report);
    const auto stream = in_order(chunks_of_set, {});
    gathered = 0;
    while (true) {
      Rows rows;
      const int64_t count = stream->next(one.batch, rows);
      if (count == 0) break;
      gathered += count;
      if (batches.size() < 8 && count == one.batch) batches.push_back(std::move(rows));
    }
  });
  rate("gathering batches of free blocks", seconds, gathered);
  if (section.format == kNormFormat)
    rate("passing file positions between threads", seconds_of_link(one.threads) * static_cast<double>(chunks),
         one.rows);

  const BatchLayout layout(batch_shape(section, one.batch));
  std::vector<std::byte> memory(layout.bytes);
  ThreadPool alone(1);
  rate("laying out on one thread", seconds_of([&] {
         for (const Rows& rows : batches) fill_batch(layout, memory.data(), rows.ranges, alone);
       }),
       static_cast<int64_t>(batches.size()) * one.batch);
}

}  // namespace hctr::bench
