// table_inspect: what a saved embedding table holds. Here is its command line and what it prints.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "base/error.h"
#include "base/files.h"
#include "embedding/table_summary.h"
#include "key_counts.h"
#include "train/load_config.h"
#include "run_tool.h"

namespace hctr {
namespace {

constexpr const char* kExamples = R"(
Examples:
  table_inspect config.json model/1_sparse_3908.model
  table_inspect config.json model/0_sparse_3908.model --count 100000 --json table.json)";

struct Arguments {
  std::string config, file, embedding, json;
  int64_t top = 10, count = 0;
};

/// The number in "<prefix><k>_sparse_<iteration>.model"; nothing when the name is another.
std::optional<size_t> number_in_name(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  const size_t end = name.find("_sparse_");
  if (end == std::string::npos) return {};
  size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(name[begin - 1]))) --begin;
  if (begin == end) return {};
  return std::stoull(name.substr(begin, end - begin));
}

size_t which_embedding(const Arguments& given, const Config& config) {
  std::vector<std::string> names;
  for (const EmbeddingEntry& entry : config.embeddings) names.push_back(entry.clause.top());
  if (names.empty()) throw Error(Kind::usage, cat("'", given.config, "' has no embeddings"));
  if (!given.embedding.empty()) {
    const auto found = std::find(names.begin(), names.end(), given.embedding);
    if (found == names.end()) throw Error(Kind::usage, cat("'", given.config, "' has no embedding \"", given.embedding, "\"; there is ", one_of(names)));
    return static_cast<size_t>(found - names.begin());
  }
  const auto number = number_in_name(given.file);
  if (number && *number < names.size()) return *number;
  if (names.size() == 1) return 0;
  throw Error(Kind::usage, cat("the name '", given.file, "' does not say which embedding it is of; add --embedding: ", one_of(names)));
}

std::string bar(int64_t rows, int64_t most) {
  return std::string(static_cast<size_t>(std::ceil(40.0 * static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(most, 1)))), '#');
}

long long whole(int64_t n) { return static_cast<long long>(n); }

struct Hot {
  int64_t key, times;
  uint64_t slot;
};

std::vector<Hot> hottest(const KeyCounts& counts, int64_t top) {
  std::vector<Hot> all;
  for (const auto& [slot, keys] : counts.of_slot)
    for (const auto& [key, times] : keys) all.push_back({key, times, slot});
  const auto more = [](const Hot& a, const Hot& b) { return std::tuple(-a.times, a.slot, a.key) < std::tuple(-b.times, b.slot, b.key); };
  const auto end = all.begin() + std::min<std::ptrdiff_t>(top, static_cast<std::ptrdiff_t>(all.size()));
  std::partial_sort(all.begin(), end, all.end(), more);
  all.erase(end, all.end());
  return all;
}

void inspect(const Arguments& given) {
  const Log log = Log::to_stderr();
  const Config config = load_config(given.config, false, log);
  const size_t which = which_embedding(given, config);
  const EmbeddingClause& clause = config.embeddings[which].clause;
  Problems problems;
  const size_t input = wire(config, config.solver.batchsize, problems).embedding_inputs[which];
  const bool by_slot = clause.identity_by_slot();
  const SparseFileShape shape{by_slot, clause.dim, config.data.sparse[input].slot_num, config.solver.input_key_type == KeyType::i32 ? 4 : 8};

  KeyCounts counts;
  if (given.count > 0) counts = count_keys(config, input, by_slot, given.count, log);
  TableSummary summary(shape.dim, given.top);
  std::vector<Hot> hot = hottest(counts, given.top);
  std::map<std::pair<uint64_t, int64_t>, double> hot_norms;
  for (const Hot& key : hot) hot_norms[{key.slot, key.key}] = -1;
  int64_t met = 0;
  read_sparse(given.file, shape, [&](const SparseRows& part) {
    summary.add(part);
    for (size_t i = 0; given.count > 0 && i < part.keys.size(); ++i) {
      const uint64_t slot = part.slots.empty() ? 0 : part.slots[i];
      if (counts.of(slot, part.keys[i]) > 0) ++met;
      if (const auto found = hot_norms.find({slot, part.keys[i]}); found != hot_norms.end()) {
        TableSummary one(shape.dim, 1);
        const auto begin = part.vectors.begin() + static_cast<std::ptrdiff_t>(i) * shape.dim;
        one.add({{part.keys[i]}, {}, std::vector<float>(begin, begin + shape.dim)});
        found->second = one.largest_norm();
      }
    }
  });

  std::printf("%s: table '%s', %s, %lld slots, vectors of %lld\n", given.file.c_str(), clause.top().c_str(), by_slot ? "a row for each slot and key" : "a row for each key",
              whole(shape.slots), whole(shape.dim));
  std::printf("  rows    %lld, keys from %lld to %lld\n", whole(summary.rows()), whole(summary.smallest_key()), whole(summary.largest_key()));
  std::printf("  norms   smallest %.4g, median %.4g, mean %.4g, largest %.4g\n", summary.smallest_norm(), summary.median_norm(), summary.mean_norm(),
              summary.largest_norm());
  if (summary.rows_of_zeros() > 0) std::printf("  %lld rows are all zeros\n", whole(summary.rows_of_zeros()));
  if (summary.rows_not_finite() > 0) std::printf("  %lld rows hold a NaN or an infinity: training diverged\n", whole(summary.rows_not_finite()));
  Json json(Json::Object{{"schema", 1}, {"table", clause.top()}, {"rows", summary.rows()}, {"smallest_key", summary.smallest_key()},
                         {"largest_key", summary.largest_key()}, {"smallest_norm", summary.smallest_norm()}, {"median_norm", summary.median_norm()},
                         {"mean_norm", summary.mean_norm()}, {"largest_norm", summary.largest_norm()}, {"rows_of_zeros", summary.rows_of_zeros()},
                         {"rows_not_finite", summary.rows_not_finite()}});

  if (by_slot) {
    Json per_slot(Json::Array{});
    std::printf("\n  slot        rows\n");
    for (const auto& [slot, rows] : summary.rows_per_slot()) {
      std::printf("  %4llu  %10lld\n", static_cast<unsigned long long>(slot), whole(rows));
      per_slot.add(Json(Json::Object{{"slot", static_cast<int64_t>(slot)}, {"rows", rows}}));
    }
    json.set("rows_per_slot", per_slot);
  }

  const auto bins = summary.histogram();
  int64_t most = 0;
  for (const auto& bin : bins) most = std::max(most, bin.rows);
  Json histogram(Json::Array{});
  std::printf("\n  norm from       to        rows\n");
  for (const auto& bin : bins) {
    std::printf("  %9.4g %9.4g  %10lld  %s\n", std::exp2(bin.exponent), std::exp2(bin.exponent + 1), whole(bin.rows), bar(bin.rows, most).c_str());
    histogram.add(Json(Json::Object{{"from", std::exp2(bin.exponent)}, {"to", std::exp2(bin.exponent + 1)}, {"rows", bin.rows}}));
  }
  json.set("norms", histogram);

  Json largest(Json::Array{});
  std::printf("\n  largest norms\n");
  for (const auto& row : summary.largest()) {
    std::printf("  %s%lld  %.4g\n", by_slot ? cat("slot ", row.slot, ", key ").c_str() : "key ", whole(row.key), row.norm);
    largest.add(Json(Json::Object{{"slot", static_cast<int64_t>(row.slot)}, {"key", row.key}, {"norm", row.norm}}));
  }
  json.set("largest", largest);

  if (given.count > 0) {
    std::printf("\n  hottest keys of the first %lld training samples\n", whole(counts.samples));
    Json hottest_keys(Json::Array{});
    for (const Hot& key : hot) {
      const double norm = hot_norms.at({key.slot, key.key});
      std::printf("  %s%lld  %lld times, %s\n", by_slot ? cat("slot ", key.slot, ", key ").c_str() : "key ", whole(key.key), whole(key.times),
                  norm < 0 ? "has no row" : cat("norm ", norm).c_str());
      Json entry(Json::Object{{"slot", static_cast<int64_t>(key.slot)}, {"key", key.key}, {"times", key.times}});
      if (norm >= 0) entry.set("norm", norm);
      hottest_keys.add(entry);
    }
    json.set("hottest", hottest_keys);
    json.set("rows_met", met);
    json.set("samples_counted", counts.samples);
    std::printf("  %lld of %lld rows occur in these samples\n", whole(met), whole(summary.rows()));
  }
  if (!given.json.empty()) write_text(given.json, json.text(2) + "\n");
}

int main_of(int argc, char** argv) {
  Arguments given;
  CLI::App app("Shows what a saved embedding table holds: rows, keys, norms, the largest rows, and how often keys occur in the training data.");
  app.footer(kExamples);
  app.add_option("config", given.config, "the config the model was trained with")->required();
  app.add_option("file", given.file, "a sparse model file of any version, or a folder of version 3.1")->required();
  app.add_option("--embedding", given.embedding, "which embedding (its top) the file is of; left out: the number in the file's name says");
  app.add_option("--top", given.top, "how many of the largest rows and hottest keys to show")->check(CLI::Range(1, 1000000))->capture_default_str();
  app.add_option("--count", given.count, "count keys in so many samples of the config's training data; 0: none")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--json", given.json, "also write the figures to this file");
  return run_tool(app, argc, argv, [&] {
    inspect(given);
  });
}

}  // namespace
}  // namespace hctr

int main(int argc, char** argv) { return hctr::main_of(argc, argv); }
