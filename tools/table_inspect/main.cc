// table_inspect: the command line and the report of the program that summarizes a saved embedding table.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "access_stats_report.h"
#include "bars.h"
#include "core/base/expect.h"
#include "core/base/files.h"
#include "core/base/input_files.h"
#include "core/base/progress.h"
#include "formats/data/text_values.h"
#include "formats/model/table_summary.h"
#include "hot_keys.h"
#include "infer/load_config.h"
#include "key_counts.h"
#include "net/model/model_delta.h"
#include "program/command_line.h"
#include "program/program_surroundings.h"
#include "program/progress_line_view.h"
#include "program/terminal.h"

namespace hctr {
namespace {

constexpr const char* kExamples = R"(
Examples:
  table_inspect config.json model/1_sparse_3908.model
  table_inspect config.json model/0_sparse_3908.model --count 100000 --json table.json
  table_inspect config.json model/_delta_4000
  table_inspect config.json model/_dense_3900.model --apply model/_delta_4000 --apply model/_delta_4100 --out new/)";

struct Arguments {
  std::string config, file, embedding, json, out;
  std::vector<std::string> deltas;
  int64_t top = 10, count = 0;
};

/// Returns k for "<prefix><k>_sparse_<iteration>.model"; none for other names.
std::optional<size_t> number_in_name(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  const size_t end = name.find("_sparse_");
  if (end == std::string::npos) return {};
  size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(name[begin - 1]))) --begin;
  int64_t number = 0;
  if (!read_integer(std::string_view(name).substr(begin, end - begin), number)) return {};
  return static_cast<size_t>(number);
}

size_t which_embedding(const Arguments& given, const Config& config) {
  std::vector<std::string> names;
  for (const EmbeddingEntry& entry : config.embeddings) names.push_back(entry.section.top());
  if (names.empty()) throw Error(Kind::usage, cat("'", given.config, "' has no embeddings"));
  if (!given.embedding.empty()) {
    const auto found = std::find(names.begin(), names.end(), given.embedding);
    if (found == names.end())
      throw Error(Kind::usage,
                  cat("'", given.config, "' has no embedding \"", given.embedding, "\"; there is ", one_of(names)));
    return static_cast<size_t>(found - names.begin());
  }
  const auto number = number_in_name(given.file);
  if (number && *number < names.size()) return *number;
  if (names.size() == 1) return 0;
  throw Error(Kind::usage,
              cat("the name '", given.file, "' does not state its embedding; add --embedding: ", one_of(names)));
}

long long whole(int64_t n) { return static_cast<long long>(n); }

/// Shows how many rows of a file have been read. The bar appears when the file's number of rows is known.
class RowsRead {
 public:
  explicit RowsRead(std::string what) : what_(std::move(what)) {}
  void add(int64_t rows, int64_t of) {
    if (!shown_) shown_.emplace(show_progress_line, what_, "rows", of);
    shown_->update(done_ += rows);
  }
  void finish() {
    if (shown_) shown_->finish();
  }

 private:
  std::string what_;
  std::optional<Progress> shown_;
  int64_t done_ = 0;
};

/// The access statistics of a model file.
struct AccessStatsOf {
  AccessStatsHead head;
  AccessStatsSummary summary;
};

std::optional<AccessStatsOf> read_access_stats_of(const std::string& file, int64_t top) {
  const fs::path path = access_stats_path(file);
  if (!fs::exists(path)) return {};
  AccessStatsSummary summary(top);
  RowsRead progress("reading access statistics");
  const AccessStatsHead head =
      read_access_stats(path, [&](const AccessStatsHead& of, std::span<const formats::RowAccess> rows) {
        summary.add(of, rows);
        progress.add(static_cast<int64_t>(rows.size()), of.rows);
      });
  progress.finish();
  return AccessStatsOf{head, std::move(summary)};
}

/// Prints rows, keys and norms of a table. Returns the JSON report of them.
Json show_rows(const std::string& table, const TableSummary& summary) {
  print_formatted("  rows    %lld, keys from %lld to %lld\n", whole(summary.rows()), whole(summary.smallest_key()),
                  whole(summary.largest_key()));
  print_formatted("  norms   smallest %.4g, median %.4g, mean %.4g, largest %.4g\n", summary.smallest_norm(),
                  summary.median_norm(), summary.mean_norm(), summary.largest_norm());
  if (summary.rows_of_zeros() > 0) print_formatted("  %lld rows are all zeros\n", whole(summary.rows_of_zeros()));
  if (summary.rows_not_finite() > 0)
    print_formatted("  %lld rows hold a NaN or an infinity: training diverged\n", whole(summary.rows_not_finite()));
  return Json(Json::Object{{"schema", 1},
                           {"table", table},
                           {"rows", summary.rows()},
                           {"smallest_key", summary.smallest_key()},
                           {"largest_key", summary.largest_key()},
                           {"smallest_norm", summary.smallest_norm()},
                           {"median_norm", summary.median_norm()},
                           {"mean_norm", summary.mean_norm()},
                           {"largest_norm", summary.largest_norm()},
                           {"rows_of_zeros", summary.rows_of_zeros()},
                           {"rows_not_finite", summary.rows_not_finite()}});
}

Json show_slots(const TableSummary& summary) {
  Json per_slot(Json::Array{});
  print_formatted("\n  slot        rows\n");
  for (const auto& [slot, rows] : summary.rows_per_slot()) {
    print_formatted("  %4llu  %10lld\n", static_cast<unsigned long long>(slot), whole(rows));
    per_slot.add(Json(Json::Object{{"slot", static_cast<int64_t>(slot)}, {"rows", rows}}));
  }
  return per_slot;
}

Json show_norms(const TableSummary& summary) {
  const auto bins = summary.histogram();
  int64_t most = 0;
  for (const auto& bin : bins) most = std::max(most, bin.rows);
  Json histogram(Json::Array{});
  print_formatted("\n  norm from       to        rows\n");
  for (const auto& bin : bins) {
    print_formatted("  %9.4g %9.4g  %10lld  %s\n", std::exp2(bin.exponent), std::exp2(bin.exponent + 1),
                    whole(bin.rows), bar(bin.rows, most).c_str());
    histogram.add(
        Json(Json::Object{{"from", std::exp2(bin.exponent)}, {"to", std::exp2(bin.exponent + 1)}, {"rows", bin.rows}}));
  }
  return histogram;
}

Json show_largest(const TableSummary& summary, bool by_slot) {
  Json largest(Json::Array{});
  print_formatted("\n  largest norms\n");
  for (const auto& row : summary.largest()) {
    print_formatted("  %s  %.4g\n", name_of(by_slot, row.slot, row.key).c_str(), row.norm);
    largest.add(Json(Json::Object{{"slot", static_cast<int64_t>(row.slot)}, {"key", row.key}, {"norm", row.norm}}));
  }
  return largest;
}

void inspect(const Arguments& given) {
  const Log log = log_to_stderr();
  const Config config = load_config(given.config, false, log, {.environment = system_environment()});
  const size_t which = which_embedding(given, config);
  const EmbeddingSection& section = config.embeddings[which].section;
  Problems problems;
  const size_t input = wire(config, config.solver.batchsize, problems).embedding_inputs[which];
  const bool by_slot = section.identity_by_slot();
  const SparseFileShape shape{by_slot, section.dim, config.data.sparse[input].slot_num,
                              !config.solver.input_key_type                   ? 0
                              : *config.solver.input_key_type == KeyType::i32 ? 4
                                                                              : 8};

  KeyCounts counts;
  if (given.count > 0) counts = count_keys(config, input, by_slot, given.count, log);
  TableSummary summary(shape.dim, given.top);
  const std::optional<AccessStatsOf> stats = read_access_stats_of(given.file, given.top);
  const std::vector<HotKey> counted = hottest(counts, given.top),
                            noted = stats ? hottest(stats->summary.hottest()) : std::vector<HotKey>{};
  NormsOfKeys norms;
  norms.want(counted);
  norms.want(noted);
  int64_t met = 0;
  RowsRead progress("reading the table");
  const auto add = [&](const SparseRows& part) {
    summary.add(part);
    norms.take_from(part, shape.dim);
    for (size_t i = 0; given.count > 0 && i < part.keys.size(); ++i)
      if (counts.of(part.slots.empty() ? 0 : part.slots[i], part.keys[i]) > 0) ++met;
    progress.add(static_cast<int64_t>(part.keys.size()), part.of);
  };
  read_sparse(given.file, shape, add, log);
  progress.finish();

  print_formatted("%s: table '%s', %s, %lld slots, vectors of %lld\n", given.file.c_str(), section.top().c_str(),
                  by_slot ? "a row for each slot and key" : "a row for each key", whole(shape.slots), whole(shape.dim));
  Json json = show_rows(section.top(), summary);
  if (stats) json.set("marks", show_access_stats(stats->head, stats->summary));
  if (by_slot) json.set("rows_per_slot", show_slots(summary));
  json.set("norms", show_norms(summary));
  json.set("largest", show_largest(summary, by_slot));
  if (stats && stats->head.occurrences)
    json.set(given.count > 0 ? "hottest_in_training" : "hottest",
             show_hottest("hottest keys in training, counted from the step that added the row", by_slot, noted, norms));
  if (given.count > 0) {
    json.set("hottest", show_hottest(cat("hottest keys of the first ", counts.samples, " training samples"), by_slot,
                                     counted, norms));
    json.set("rows_met", met);
    json.set("samples_counted", counts.samples);
    print_formatted("  %lld of %lld rows occur in these samples\n", whole(met), whole(summary.rows()));
  }
  if (!given.json.empty()) write_text(given.json, json.text(2) + "\n");
}

bool is_delta(const std::string& file) {
  return fs::is_directory(file) &&
         (fs::path(file) / "").parent_path().filename().string().find("_delta_") != std::string::npos;
}

Json show_keys(const char* what, const std::vector<SlotKey>& keys, bool by_slot, int64_t top) {
  Json shown(Json::Array{});
  if (!keys.empty()) print_formatted("  %s\n", what);
  for (const auto& [slot, key] : keys) {
    if (static_cast<int64_t>(shown.array()->size()) == top) {
      print_formatted("    and %lld more\n", whole(static_cast<int64_t>(keys.size()) - top));
      break;
    }
    print_formatted("    %s\n", name_of(by_slot, static_cast<uint64_t>(slot), key).c_str());
    shown.add(Json(Json::Object{{"slot", int64_t{slot}}, {"key", key}}));
  }
  return shown;
}

/// Reports a delta: its changed rows and removed keys of each table.
void inspect_delta(const Arguments& given) {
  const ModelManifest delta = delta_manifest(given.file);
  for (const ModelManifest::Member& member : delta.members) delta.verify(member.name);
  print_formatted("%s: a delta of iteration %lld with the changes since iteration %lld\n", given.file.c_str(),
                  whole(delta.iteration), whole(delta.delta->base));
  Json tables(Json::Array{});
  bool found = false;
  for (size_t t = 0; t < delta.tables.size(); ++t) {
    const SavedTable& table = delta.tables[t];
    const SavedDelta::Table& about = delta.delta->tables[t];
    if (!given.embedding.empty() && given.embedding != table.name) continue;
    found = true;
    print_formatted("\ntable '%s': %lld of %lld rows changed or new, %lld removed\n", table.name.c_str(),
                    whole(about.changed), whole(about.rows), whole(about.removed));
    const DeltaKeys keys = keys_of_delta(delta, t);
    Json json(Json::Object{
        {"table", table.name}, {"rows", about.rows}, {"changed", about.changed}, {"removed", about.removed}});
    json.set("changed_keys", show_keys("changed or new, the first keys", keys.changed, table.by_slot, given.top));
    json.set("removed_keys", show_keys("removed, the first keys", keys.removed, table.by_slot, given.top));
    tables.add(std::move(json));
  }
  if (!found) throw Error(Kind::usage, cat("the delta has no table \"", given.embedding, "\""));
  if (!given.json.empty())
    write_text(given.json, Json(Json::Object{{"schema", 1},
                                             {"iteration", delta.iteration},
                                             {"base", delta.delta->base},
                                             {"tables", std::move(tables)}})
                                   .text(2) +
                               "\n");
}

void apply(const Arguments& given) {
  if (given.out.empty()) throw Error(Kind::usage, "--apply needs --out, the prefix of the new model");
  const AppliedDeltas done = apply_deltas(given.file, {given.deltas.begin(), given.deltas.end()}, given.out);
  int64_t rows = 0, changed = 0, removed = 0;
  for (const SavedDelta::Table& table : done.tables) {
    rows += table.rows;
    changed += table.changed;
    removed += table.removed;
  }
  print_formatted("%s_dense_%lld.model and %zu tables of %lld rows: %lld changed or new, %lld removed\n",
                  given.out.c_str(), whole(done.iteration), done.tables.size(), whole(rows), whole(changed),
                  whole(removed));
}

void run(const Arguments& given) {
  if (!given.deltas.empty()) return apply(given);
  if (!given.out.empty()) throw Error(Kind::usage, "--out needs --apply with at least one delta");
  expect_no_input(given.json, "--json", {given.config, given.file});
  is_delta(given.file) ? inspect_delta(given) : inspect(given);
}

int main_of(int argc, char** argv) {
  Arguments given;
  CommandLine app("table_inspect",
                  "Shows the content of a saved embedding table: rows, keys, norms, the largest rows, and how "
                  "often keys occurred in training (if the table counts keys) or occur in the training data "
                  "(--count). For a delta: the changed rows. With --apply: combines an older full model and deltas "
                  "to a new full model.",
                  kExamples);
  app.add_option("config", given.config, "the config the model was trained with").required();
  app.add_option("file", given.file,
                 "a sparse model file of any version, a folder of version 3.1, or the folder of a delta; with "
                 "--apply the dense file of a full model")
      .required();
  app.add_option(
      "--embedding", given.embedding,
      "the embedding layer of the file, by its \"top\" in the config; default: by the number in the file name");
  app.add_option("--top", given.top, "number of largest rows and hottest keys to show")
      .range(1, 1000000)
      .show_default();
  app.add_option("--count", given.count,
                 "number of samples of the config's training data in which keys are counted; 0: do not count")
      .non_negative()
      .show_default();
  app.add_option("--json", given.json, "also write the figures to this file");
  app.add_option("--apply", given.deltas, "the folder of a delta that builds on the model; may be repeated, in order");
  app.add_option("--out", given.out, "with --apply: the prefix of the model to write");
  return run_tool(app, argc, argv, [&] { run(given); });
}

}  // namespace
}  // namespace hctr

int main(int argc, char** argv) { return hctr::main_of(argc, argv); }
