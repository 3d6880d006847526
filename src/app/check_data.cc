#include "app/check_data.h"

#include <algorithm>

#include "config/problems.h"
#include "core/base/expect.h"
#include "core/base/progress.h"
#include "core/base/thread_pool.h"
#include "formats/catalog/data_schema.h"
#include "formats/catalog/equal_texts.h"
#include "formats/catalog/first_matches.h"
#include "prepare/inspect/inspect.h"
#include "program/program_surroundings.h"
#include "program/progress_line_view.h"
#include "score/feature_names.h"
#include "score/key_matches.h"

namespace hctr {
namespace {

constexpr int64_t kBytesOfFile = int64_t{16} << 20;  // approximate number of bytes read from each file

std::string number(double value) { return formatted("%.6g", value); }

struct Columns {
  const char* name;
  const std::vector<NumberSummary>& columns;
};

std::string text_of(const Columns& of) {
  std::string text;
  for (size_t i = 0; i < of.columns.size(); ++i) {
    const NumberSummary& c = of.columns[i];
    text += cat("  ", of.name, " ", i, ": ", number(c.finite.least), " to ", number(c.finite.most), ", mean ",
                number(c.finite.moments.mean()), c.not_finite > 0 ? cat(", ", c.not_finite, " not finite") : "", "\n");
  }
  return text;
}

Json to_json(const std::vector<NumberSummary>& columns) {
  Json all(Json::Array{});
  for (const NumberSummary& c : columns)
    all.add(Json::Object{{"least", c.finite.least},
                         {"most", c.finite.most},
                         {"mean", c.finite.moments.mean()},
                         {"not_finite", c.not_finite}});
  return all;
}

double mean_keys(const SlotSummary& slot, const Inspection& found) {
  return static_cast<double>(slot.keys) / static_cast<double>(std::max<int64_t>(found.samples, 1));
}

double unlisted_share(const SlotSummary& slot) { return SlotMatches::share_of(slot.unlisted.value_or(0), slot.keys); }

std::string text_of(const std::string& name, const Inspection& found) {
  std::string text = cat("Data '", name, "': the first ", found.samples, " samples of ", found.files.size(),
                         found.files.size() == 1 ? " file" : " files", "\n");
  text += text_of({"label", found.labels}) + text_of({"dense value", found.dense});
  for (size_t s = 0; s < found.slots.size(); ++s) {
    const SlotSummary& slot = found.slots[s];
    text += cat(
        "  slot ", s, ": ", number(mean_keys(slot, found)), " keys per sample, at most ", slot.most_nnz, "; ",
        slot.distinct.exact() ? "" : "about ", slot.distinct.value(), " different",
        slot.keys > 0 ? cat(", from ", slot.least_key, " to ", slot.most_key) : "",
        slot.unlisted ? cat("; ", number(100 * unlisted_share(slot)), " % of values are not in the vocabulary") : "",
        "\n");
  }
  for (const std::string& problem : found.problems) text += cat("  problem: ", problem, "\n");
  if (found.problem_count > static_cast<int64_t>(found.problems.size()))
    text += cat("  ... and ", found.problem_count - static_cast<int64_t>(found.problems.size()),
                " more problems: data_inspect --config lists them\n");
  return text;
}

Json json_of(const std::string& name, const Inspection& found) {
  Json slots(Json::Array{}), problems(Json::Array{});
  for (const SlotSummary& slot : found.slots) {
    Json one(Json::Object{{"mean_keys", mean_keys(slot, found)},
                          {"most_keys", slot.most_nnz},
                          {"distinct", slot.distinct.value()},
                          {"exact", slot.distinct.exact()}});
    if (slot.keys > 0) one.set("least_key", slot.least_key).set("most_key", slot.most_key);
    if (slot.unlisted) one.set("unlisted_values", unlisted_share(slot));
    slots.add(std::move(one));
  }
  for (const std::string& problem : found.problems) problems.add(problem);
  return Json::Object{{"name", name},
                      {"files", static_cast<int64_t>(found.files.size())},
                      {"samples", found.samples},
                      {"labels", to_json(found.labels)},
                      {"dense", to_json(found.dense)},
                      {"slots", std::move(slots)},
                      {"problem_count", found.problem_count},
                      {"problems", std::move(problems)}};
}

/// Counts the keys of a slot that do not occur in the training samples. Returns none if the distinct keys of the slot
/// were not counted exactly.
std::optional<SlotMatches> matches_of(const std::string& name, const SlotSummary& slot, const SlotSummary& training) {
  if (!slot.distinct.exact() || !training.distinct.exact() || slot.keys == 0) return std::nullopt;
  SlotMatches matches{.slot = name};
  slot.distinct.keys().for_each([&](uint64_t key, uint64_t times) {
    matches.keys += static_cast<int64_t>(times);
    if (training.distinct.value() == 0 || training.distinct.keys().of(key) == 0)
      matches.unmatched += static_cast<int64_t>(times);
  });
  return matches;
}

/// Calls matches_of() for all slots of the evaluation samples.
std::vector<SlotMatches> matches_of(const DataSection& section, const Inspection& found, const Inspection& training) {
  std::vector<std::string> names;
  for (const std::vector<std::string>& of_input : feature_names(section).slots)
    names.insert(names.end(), of_input.begin(), of_input.end());
  std::vector<SlotMatches> all;
  for (size_t s = 0; s < std::min({names.size(), found.slots.size(), training.slots.size()}); ++s)
    if (auto one = matches_of(names[s], found.slots[s], training.slots[s])) all.push_back(std::move(*one));
  return all;
}

/// Finds problems that would stop training or evaluation: no value of a slot is in its vocabulary, or check_positives()
/// fails.
std::vector<std::string> problems_of(const InspectOptions& options, const Source& source, const Inspection& found) {
  std::vector<std::string> problems;
  for (size_t s = 0; s < found.slots.size(); ++s)
    if (const SlotSummary& slot = found.slots[s]; slot.keys >= kUnmatchedToFail && slot.unlisted == slot.keys)
      problems.push_back(cat("the vocabulary of slot ", s, " contains none of its ", slot.keys, " values"));
  if (found.samples == 0 || options.section->follow) return problems;
  try {
    check_positives(*options.section, source, options.key_width, false, log_to_stderr());
  } catch (const Error& error) {
    // a problem that the inspection has counted is already reported, and is the same one
    if (found.problem_count == 0) problems.push_back(error.what());
  }
  return problems;
}

/// Adds notes about data that are valid but possibly unintended.
void add_notes(const InspectOptions& options, const Inspection& found, std::string& text, Json& json) {
  if (found.samples == 0 || options.section->follow) return;
  Json notes(Json::Array{});
  for (const std::string& note :
       notes_on_equal_texts(*options.section, training_source(*options.section), options.key_width)) {
    text += cat("  note: ", note, "\n");
    notes.add(note);
  }
  json.set("notes", std::move(notes));
}

}  // namespace

DataCheck check_data(const Json& config, const std::string& name) {
  Problems problems;
  InspectOptions options;
  options.section = data_section_of(config, problems);
  problems.throw_if_any(name);
  options.binary_labels = wants_binary_labels(config);
  options.key_width = key_width_of(config);
  options.most_bytes_of_file = kBytesOfFile;
  options.threads = usable_cores();
  options.progress = show_progress_line;
  DataCheck check;
  check.json = Json::Array{};
  std::optional<Inspection> training;
  for (const std::string& source : {options.section->source, options.section->eval_source}) {
    if (source.empty()) continue;
    Inspection found = inspect(data_files(source, options, log_to_stderr()), options);
    const bool trains = source == options.section->source;
    for (std::string& problem : problems_of(
             options, trains ? training_source(*options.section) : evaluation_source(*options.section), found)) {
      found.problems.push_back(std::move(problem));
      ++found.problem_count;
    }
    check.text += text_of(source, found);
    Json json = json_of(source, found);
    if (trains) add_notes(options, found, check.text, json);
    if (training) {
      const std::vector<SlotMatches> matches = matches_of(*options.section, found, *training);
      if (!matches.empty())  // the text already lists, for each slot, the values that its vocabulary lacks
        check.text += cat("  keys that the ", training->samples, " training samples lack: ", describe(matches), "\n");
      add_matches(matches, json);
    }
    check.json.add(std::move(json));
    check.problems += found.problem_count;
    if (!check.slots.empty() || found.samples == 0) continue;
    for (const SlotSummary& slot : found.slots) check.slots.push_back({mean_keys(slot, found), slot.distinct.value()});
    if (source == options.section->source) training = std::move(found);
  }
  return check;
}

}  // namespace hctr
