// data_inspect: the command line and the report of the program that summarizes data files and checks them against a
// config.

#include "core/base/expect.h"
#include "core/base/files.h"
#include "core/base/input_files.h"
#include "core/base/thread_pool.h"
#include "formats/catalog/data_schema.h"
#include "formats/catalog/section_files.h"
#include "prepare/inspect/inspect.h"
#include "program/command_line.h"
#include "program/program_surroundings.h"
#include "program/progress_line_view.h"
#include "program/terminal.h"

namespace hctr {
namespace {

constexpr const char* kExamples = R"(
Examples:
  data_inspect criteo_ids/train.0.data
  data_inspect criteo_ids/train.txt --head 3 --json train.json
  data_inspect --config dlrm_raw.json
  data_inspect --config dlrm_raw.json raw/val.bin

With a config every record is checked against the Data layer of the config: keys per slot, slot_size_array,
labels, numbers that are not finite, check sums.
The exit code is 0 if no problem is found, else 4.)";

struct Arguments {
  std::vector<std::string> paths;
  std::string config, json;
  int key_bits = 0;
  InspectOptions look;
};

long long whole(int64_t n) { return static_cast<long long>(n); }

void read_config(Arguments& given) {
  const Json config = Json::read_file(given.config);
  Problems problems;
  given.look.section = data_section_of(config, problems);
  problems.throw_if_any(given.config);
  given.look.binary_labels = wants_binary_labels(config);
  given.look.key_width = key_width_of(config);
}

Json print_numbers(const char* what, const std::vector<NumberSummary>& columns) {
  Json all(Json::Array{});
  if (!columns.empty()) print_formatted("\n  %-7s %12s %12s %12s  not finite\n", what, "least", "mean", "most");
  for (size_t i = 0; i < columns.size(); ++i) {
    const NumberSummary& c = columns[i];
    const NumberStatistics& finite = c.finite;
    print_formatted("  %-7zu %12.6g %12.6g %12.6g  %lld\n", i, finite.least, finite.moments.mean(), finite.most,
                    whole(c.not_finite));
    all.add(Json(Json::Object{{"least", finite.least},
                              {"mean", finite.moments.mean()},
                              {"most", finite.most},
                              {"not_finite", c.not_finite},
                              {"zeros_and_ones", c.zeros_and_ones}}));
  }
  return all;
}

Json print_slots(const Inspection& found) {
  Json all(Json::Array{});
  print_formatted("\n  slot    keys a sample (least mean most)      distinct  keys from ... to\n");
  for (size_t i = 0; i < found.slots.size(); ++i) {
    const SlotSummary& s = found.slots[i];
    const double mean = static_cast<double>(s.keys) / static_cast<double>(std::max<int64_t>(found.samples, 1));
    Json slot(Json::Object{{"least_nnz", s.least_nnz},
                           {"mean_nnz", mean},
                           {"most_nnz", s.most_nnz},
                           {"keys", s.keys},
                           {"distinct", s.distinct.value()},
                           {"exact", s.distinct.exact()}});
    print_formatted("  %-7zu %8lld %8.3f %8lld   %12s%lld", i, whole(s.least_nnz), mean, whole(s.most_nnz),
                    s.distinct.exact() ? "" : "about ", whole(s.distinct.value()));
    if (s.keys > 0) {
      print_formatted("  %lld ... %lld", whole(s.least_key), whole(s.most_key));
      slot.set("least_key", s.least_key).set("most_key", s.most_key);
    }
    if (s.unlisted) {
      print_formatted("; %lld not in the vocabulary", whole(*s.unlisted));
      slot.set("unlisted", *s.unlisted);
    }
    print_formatted("\n");
    all.add(std::move(slot));
  }
  return all;
}

/// Prints one set, and returns its figures as JSON.
Json print(const std::string& name, const Inspection& found) {
  int64_t bad = 0;
  Json files(Json::Array{});
  print_formatted("%s: %lld samples in %zu file%s\n", name.c_str(), whole(found.samples), found.files.size(),
                  found.files.size() == 1 ? "" : "s");
  for (const InspectedFile& file : found.files) {
    if (!file.facts.empty())
      print_formatted("  %s: %lld records, %lld bytes%s; %s\n", file.path.string().c_str(), whole(file.records),
                      whole(file.bytes), file.bad_records > 0 ? cat(", ", file.bad_records, " bad").c_str() : "",
                      file.facts.c_str());
    bad += file.bad_records;
    files.add(Json(Json::Object{{"path", file.path.string()},
                                {"records", file.records},
                                {"bytes", file.bytes},
                                {"bad_records", file.bad_records},
                                {"facts", file.facts}}));
  }
  Json json(Json::Object{{"name", name}, {"samples", found.samples}, {"bad_records", bad}, {"files", files}});
  if (found.samples > 0) {
    json.set("labels", print_numbers("label", found.labels)).set("dense", print_numbers("dense", found.dense));
    json.set("slots", print_slots(found));
    const bool estimated = std::any_of(found.slots.begin(), found.slots.end(),
                                       [](const SlotSummary& slot) { return !slot.distinct.exact(); });
    if (estimated) print_formatted("  \"about\": an estimate, with a standard error of 0.8 %%\n");
  }
  if (!found.head.empty()) print_formatted("\n  first samples\n");
  for (const std::string& line : found.head) print_formatted("  %s\n", line.c_str());
  if (found.problem_count > 0)
    print_formatted("\n  %lld problem%s\n", whole(found.problem_count), found.problem_count == 1 ? "" : "s");
  for (const std::string& problem : found.problems) print_formatted("  %s\n", problem.c_str());
  if (found.problem_count > static_cast<int64_t>(found.problems.size()))
    print_formatted("  ... and %lld more; --problems N shows more\n",
                    whole(found.problem_count - static_cast<int64_t>(found.problems.size())));
  print_formatted("\n");
  json.set("head", to_json(found.head))
      .set("problems", to_json(found.problems))
      .set("problem_count", found.problem_count);
  return json;
}

std::vector<fs::path> files_read(const Arguments& given) {
  std::vector<fs::path> files;
  if (given.look.section) files = files_of_section(*given.look.section);
  files.emplace_back(given.config);
  for (const std::string& path : given.paths) {
    files.emplace_back(path);
    for (const fs::path& file : data_files(path, given.look, Log::silent())) files.push_back(file);
  }
  return files;
}

void run(Arguments& given) {
  if (!given.config.empty()) read_config(given);
  if (given.key_bits > 0) given.look.key_width = given.key_bits == 32 ? KeyWidth::u32 : KeyWidth::i64;
  if (given.paths.empty()) {
    if (!given.look.section)
      throw Error(Kind::usage,
                  "expected data files or file lists, or --config FILE to inspect its source and eval_source");
    given.paths.push_back(given.look.section->source);
    if (!given.look.section->eval_source.empty()) given.paths.push_back(given.look.section->eval_source);
  }
  expect_no_input(given.json, "--json", [&] { return files_read(given); });
  given.look.progress = show_progress_line;
  int64_t problems = 0;
  Json sets(Json::Array{});
  for (const std::string& path : given.paths) {
    const Inspection found = inspect(data_files(path, given.look, log_to_stderr()), given.look);
    sets.add(print(path, found));
    problems += found.problem_count;
  }
  if (!given.json.empty()) write_text(given.json, Json(Json::Object{{"schema", 1}, {"sets", sets}}).text(2) + "\n");
  if (problems > 0)
    throw Error(Kind::data, cat(problems, problems == 1 ? " problem was" : " problems were", " found; see above"));
}

int main_of(int argc, char** argv) {
  Arguments given;
  given.look.threads = usable_cores();
  CommandLine app("data_inspect",
                  "Shows the content of data files (headers, samples, labels, dense values, keys of each slot) and "
                  "checks records against a config.",
                  kExamples);
  app.add_option("paths", given.paths,
                 "data files, file lists, folders or patterns; default: source and eval_source of the config");
  app.add_option("--config", given.config,
                 "config with the Data layer to check records against; needed for formats without a header");
  app.add_option("--head", given.look.head, "number of first samples to show").non_negative().show_default();
  app.add_option("--problems", given.look.most_problems, "number of problems to show for each set")
      .non_negative()
      .show_default();
  app.add_option("--exact", given.look.exact_bound,
                 "maximum number of distinct keys of a slot that are counted exactly; above it the number is "
                 "estimated")
      .non_negative()
      .show_default();
  app.add_option("--key-bits", given.key_bits, "bits of a key, 32 or 64, for Norm files with an ambiguous key width")
      .one_of({32, 64});
  app.add_option("--json", given.json, "also write the figures to this file");
  app.add_option("--threads", given.look.threads, "number of threads; the result does not depend on it")
      .range(1, 1024)
      .show_default();
  return run_tool(app, argc, argv, [&] { run(given); });
}

}  // namespace
}  // namespace hctr

int main(int argc, char** argv) { return hctr::main_of(argc, argv); }
