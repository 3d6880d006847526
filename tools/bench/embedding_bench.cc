#include "embedding_bench.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/base/random.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"
#include "core/device/program.h"
#include "hctr/embedding.h"
#include "timing.h"

namespace hctr::bench {
namespace {

constexpr int kSets = 8;  // number of batches, used cyclically
constexpr double kAlpha = 1.05;

// Number of rows for each of the 26 categorical features of Criteo's terabyte and Kaggle data.
const std::vector<int64_t> kTerabyte = {39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
                                        38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
                                        14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36};
const std::vector<int64_t> kKaggle = {1461,  558,  335378, 211710, 306, 20,    12136,  634,  4,
                                      51298, 5302, 332600, 3179,   27,  12191, 301211, 11,   4841,
                                      2086,  4,    324273, 17,     16,  79734, 96,     58622};

struct SetCase {
  std::string name;
  std::vector<int64_t> rows;  // rows of each table; each table has one feature
  int64_t dim, samples, keys_each = 1;
  Pooling pooling = Pooling::sum;
  bool uniform = false, hashed = true;
  EmbeddingTableOptions::Format format = EmbeddingTableOptions::Format::f32;
  bool as_rows = false;  // a case of `bench rows`, which measures the same kernels without an EmbeddingSet
};

/// The key of row `row`: a 64-bit hash if the case has hashed keys, otherwise the row number.
int64_t key_of(const SetCase& of, int64_t row) {
  return of.hashed ? static_cast<int64_t>(mix64(static_cast<uint64_t>(row))) : row;
}

/// Draws one of `rows` rows: uniformly if the case says so, otherwise by a power law. `u`: a uniform number in [0, 1).
int64_t drawn_row(const SetCase& of, int64_t rows, double u) {
  const auto most = static_cast<double>(rows);
  if (of.uniform) return std::min(rows - 1, static_cast<int64_t>(u * most));
  // Inverts the distribution function of a continuous power law. The multiplication spreads frequent rows over the
  // table.
  const double a = 1 - kAlpha;
  const double rank = std::pow((std::pow(most + 1, a) - 1) * u + 1, 1 / a) - 1;
  return std::clamp<int64_t>(static_cast<int64_t>(rank), 0, rows - 1) * 2654435761 % rows;
}

/// Keys on the device: one list per table and batch, shared by all optimizers.
class KeyLists {
 public:
  KeyLists(StreamRef stream, const SetCase& of) : per_table_(of.samples * of.keys_each) {
    std::vector<std::vector<int64_t>> drawn(kSets * of.rows.size());
    std::vector<std::jthread> threads;
    for (size_t b = 0; b < kSets; ++b)
      threads.emplace_back([&, b] {
        for (size_t t = 0; t < of.rows.size(); ++t) {
          const size_t list = b * of.rows.size() + t;
          for (int64_t i = 0; i < per_table_; ++i) {
            const uint64_t bits = mix64(list * static_cast<uint64_t>(per_table_) + static_cast<uint64_t>(i));
            drawn[list].push_back(key_of(of, drawn_row(of, of.rows[t], static_cast<double>(bits >> 11) * 0x1p-53)));
          }
        }
      });
    threads.clear();
    for (const std::vector<int64_t>& keys : drawn) {
      lists_.emplace_back(stream.device, keys.size() * sizeof(int64_t));
      copy_bytes(stream, lists_.back().data(), keys.data(), lists_.back().bytes());
      stream.synchronize();
    }
    std::vector<int64_t> offsets;
    for (int64_t b = 0; b <= of.samples; ++b) offsets.push_back(b * of.keys_each);
    offsets_.emplace(stream.device, offsets.size() * sizeof(int64_t));
    copy_bytes(stream, offsets_->data(), offsets.data(), offsets_->bytes());
    stream.synchronize();
    for (int b = 0; b < kSets; ++b)
      for (size_t t = 0; t < of.rows.size(); ++t)
        views_[b].push_back({lists_[static_cast<size_t>(b) * of.rows.size() + t].data(), ElementType::i64, per_table_,
                             of.keys_each == 1 ? nullptr : offsets_->data()});
  }
  const std::vector<FeatureKeys>& batch(int i) const { return views_[i % kSets]; }
  int64_t per_table() const { return per_table_; }

 private:
  int64_t per_table_;
  std::vector<Buffer> lists_;
  std::optional<Buffer> offsets_;
  std::vector<FeatureKeys> views_[kSets];
};

EmbeddingSet make_set(const SetCase& of, const EmbeddingOptimizer& optimizer, Device device, StreamRef stream,
                      int threads) {
  EmbeddingOptions options{.gpu = device.is_cuda() ? device.index : -1, .stream = stream.handle, .threads = threads};
  for (size_t t = 0; t < of.rows.size(); ++t) {
    const std::string name = cat("t", t);
    EmbeddingTableOptions table{.name = name, .dim = of.dim, .rows = of.hashed ? 0 : of.rows[t], .format = of.format};
    table.optimizer = optimizer;
    options.tables.push_back(table);
    options.features.push_back({name, name, of.pooling, false});
  }
  return EmbeddingSet(options);
}

/// Inserts every key into its table, so that the tables have all rows, as after long training.
void fill(EmbeddingSet& set, const SetCase& of, StreamRef stream) {
  if (!of.hashed) return;
  constexpr int64_t kChunk = 1 << 18;  // limits the memory that a batch needs for gradient sums
  const int64_t most = *std::ranges::max_element(of.rows);
  Buffer chunk(stream.device, static_cast<size_t>(std::min(kChunk, most)) * sizeof(int64_t));
  std::vector<int64_t> keys;
  for (int64_t first = 0; first < most; first += kChunk) {
    keys.clear();
    for (int64_t row = first; row < std::min(most, first + kChunk); ++row) keys.push_back(key_of(of, row));
    copy_bytes(stream, chunk.data(), keys.data(), keys.size() * sizeof(int64_t));
    std::vector<int64_t> counts;
    std::vector<FeatureKeys> views;
    std::vector<int64_t> lone = {0, 0};
    for (const int64_t rows : of.rows)
      counts.push_back(std::clamp<int64_t>(rows - first, 0, static_cast<int64_t>(keys.size())));
    // One sample contains all keys of the chunk.
    std::vector<Buffer> offsets;
    for (const int64_t count : counts) {
      lone[1] = count;
      offsets.emplace_back(stream.device, sizeof(int64_t) * 2);
      copy_bytes(stream, offsets.back().data(), lone.data(), sizeof(int64_t) * 2);
      stream.synchronize();
      views.push_back({chunk.data(), ElementType::i64, count, offsets.back().data()});
    }
    set.release(set.prefetch(1, views));
    stream.synchronize();
  }
}

void time_set(Context& ctx, const SetCase& of, const KeyLists& keys, EmbeddingSet& set, const std::string& rule,
              Report& report) {
  const StreamRef stream = ctx.stream();
  const auto tables = static_cast<int64_t>(of.rows.size());
  const int64_t vectors = of.pooling == Pooling::none ? keys.per_table() : of.samples;
  Buffer y(stream.device, static_cast<size_t>(vectors * tables * of.dim) * sizeof(float)), dy(stream.device, y.bytes());
  std::vector<float> ones(static_cast<size_t>(vectors * of.dim), 1e-3f);
  for (int64_t t = 0; t < tables; ++t)
    copy_bytes(stream, dy.data() + static_cast<size_t>(t) * ones.size() * sizeof(float), ones.data(),
               ones.size() * sizeof(float));
  stream.synchronize();
  // Pooled vectors of all tables are concatenated per sample; unpooled vectors are concatenated per table.
  std::vector<FeatureVectors<float>> to;
  std::vector<FeatureVectors<const float>> from;
  for (int64_t t = 0; t < tables; ++t) {
    const bool lists = of.pooling == Pooling::none;
    const int64_t at = t * of.dim * (lists ? vectors : 1), stride = lists ? of.dim : tables * of.dim;
    to.push_back({reinterpret_cast<float*>(y.data()) + at, stride});
    from.push_back({reinterpret_cast<const float*>(dy.data()) + at, stride});
  }
  EmbeddingSet::Batch batch = 0;
  const auto forward = [&](int i) { batch = set.forward(of.samples, keys.batch(i), to); };
  const auto update = [&](int) { set.update(batch, from, {.learning_rate = 0.01f}); };
  const auto step = [&](int i) {
    forward(i);
    update(i);
  };
  const std::string where = cat(of.name, ", dim ", of.dim, ", ", of.samples, " samples, ", rule);
  const int times = ctx.device().is_cuda() ? 24 : 4;
  report.add("forward", where,
             1e3 * seconds_each(
                       ctx, kSets, times, [&](int i) { forward(i); },
                       [&](int i) {
                         if (i > 0) set.release(batch);
                       }),
             "ms");
  set.release(batch);
  report.add("backward and update", where, 1e3 * seconds_each(ctx, 2, times, update, forward), "ms");
  const auto several = [&](int count) {
    return [&, count](int) {
      for (int i = 0; i < count; ++i) step(i);
    };
  };
  report.add("step, queued", where, 1e3 / kSets * seconds_each(ctx, 1, 5, several(kSets)), "ms");
  if (!ctx.device().is_cuda()) return;
  const std::vector<int64_t> counts(of.rows.size(), keys.per_table());
  set.reserve(of.samples, counts);
  Program recorded(stream, true, [&] { several(kSets)(0); });
  const double seconds = seconds_each(ctx, 1, 7, [&](int) { recorded.run(); }) / kSets;
  report.add("step, recorded", where, 1e3 * seconds, "ms");
  report.add("  the same", where, static_cast<double>(keys.per_table() * tables) / seconds / 1e9, "G keys/s");
}

/// Returns the cases to measure. Tables have at most `most` rows.
std::vector<SetCase> cases_of(bool large, int64_t most) {
  std::vector<SetCase> cases;
  const auto at_most = [&](std::vector<int64_t> rows) {
    for (int64_t& one : rows) one = std::min(one, large ? most : 1000);
    return rows;
  };
  using Format = EmbeddingTableOptions::Format;
  const std::vector<int64_t> batches = large ? std::vector<int64_t>{2048, 16384, 65536} : std::vector<int64_t>{64};
  for (const int64_t samples : batches) cases.push_back({"26 tables of Criteo", at_most(kTerabyte), 128, samples});
  for (const int64_t samples : batches) cases.push_back({"26 tables of Kaggle", at_most(kKaggle), 16, samples});
  cases.push_back({"26 tables of Criteo, f16 rows", at_most(kTerabyte), 128, batches.back(), 1, Pooling::sum, false,
                   true, Format::f16});
  cases.push_back({"26 tables of Kaggle, f16 rows", at_most(kKaggle), 16, batches.back(), 1, Pooling::sum, false, true,
                   Format::f16});
  cases.push_back(
      {"20 tables, 10 keys a bag", std::vector<int64_t>(20, large ? 1'000'000 : 1000), 64, large ? 16384 : 64, 10});
  cases.push_back({"10 tables, keys not pooled", std::vector<int64_t>(10, large ? 1'680'000 : 1000), 128,
                   large ? 104857 : 64, 1, Pooling::none});
  for (const int64_t dim : {int64_t{128}, int64_t{16}})
    for (const bool hashed : {false, true})
      cases.push_back({cat("one table, uniform ", hashed ? "keys" : "row numbers"),
                       {large ? int64_t{1} << 24 : 4096},
                       dim,
                       large ? 26 * 65536 : 26 * 64,
                       1,
                       Pooling::sum,
                       true,
                       hashed});
  for (const auto& [format, type] : {std::pair(Format::f32, "f32"), std::pair(Format::f16, "f16")})
    for (const auto& [dim, log_rows] : {std::pair(16, 26), std::pair(128, 24)})
      cases.push_back({cat("as bench rows, 2^", large ? log_rows : 12, " ", type, " rows"),
                       {int64_t{1} << (large ? log_rows : 12)},
                       dim,
                       large ? 26 * 65536 : 26 * 64,
                       1,
                       Pooling::sum,
                       true,
                       false,
                       format,
                       true});
  return cases;
}

}  // namespace

void bench_embeddings(Device device, int threads, bool quick, const std::string& only, Report& report) {
  Runtime runtime(device, {.threads = threads, .seed = 1});
  Context ctx(runtime, runtime.compute_stream());
  struct Rule {
    const char* name;
    EmbeddingOptimizer optimizer;
    // maximum rows per table; smaller for Adam, which needs three floats per element
    int64_t most_rows;
    // `as_rows`: whether the rule is measured in the cases of `bench rows`. `other`: whether it is measured in the
    // other cases.
    bool as_rows = true, other = true;
  };
  using Kind = EmbeddingOptimizer::Rule;
  for (const Rule& rule : {Rule{"SGD", EmbeddingOptimizer::fbgemm(Kind::sgd), 10'000'000},
                           Rule{"row-wise AdaGrad", EmbeddingOptimizer::fbgemm(Kind::adagrad, true), 10'000'000, false},
                           Rule{"AdaGrad", EmbeddingOptimizer::fbgemm(Kind::adagrad), 10'000'000, true, false},
                           Rule{"Adam", EmbeddingOptimizer::fbgemm(Kind::adam), 4'000'000}})
    for (const SetCase& one : cases_of(device.is_cuda() && !quick, rule.most_rows)) {
      if (one.name.find(only) == std::string::npos || !(one.as_rows ? rule.as_rows : rule.other)) continue;
      const KeyLists keys(ctx.stream(), one);
      EmbeddingSet set = make_set(one, rule.optimizer, device, ctx.stream(), threads);
      fill(set, one, ctx.stream());
      time_set(ctx, one, keys, set, rule.name, report);
    }
}

}  // namespace hctr::bench
