// Converts a run to the JSON data of the page.
#include <algorithm>
#include <cmath>

#include "core/base/expect.h"
#include "core/base/progress.h"
#include "report/curves.h"
#include "report/run_data.h"
#include "train/run_about.h"

namespace hctr {
namespace {

constexpr size_t kBuckets = 400;  // points per line; a drawing is at most 1400 pixels wide
constexpr size_t kRocPoints = 300, kHistogramBins = 50;
constexpr int64_t kCalibrationBuckets = 20;

Json series_json(const std::map<std::string, Series>& all) {
  Json object(Json::Object{});
  for (const auto& [name, series] : all) {
    Json one = to_json(downsample(series, kBuckets));
    one.set("count", static_cast<int64_t>(series.size()));
    object.set(name, std::move(one));
  }
  return object;
}

Json label_json(const ScoredLabel& label) {
  const RocCurve roc = roc_curve(label.scores, label.labels, kRocPoints);
  Json buckets(Json::Array{});
  for (const CalibrationBucket& bucket : calibration(label.scores, label.labels, kCalibrationBuckets))
    buckets.add(Json(Json::Object{{"rows", bucket.rows},
                                  {"score", rounded_for_page(bucket.mean_score)},
                                  {"label", rounded_for_page(bucket.mean_label)}}));
  const ScoreHistogram histogram = score_histogram(label.scores, label.labels, kHistogramBins);
  return Json(Json::Object{
      {"name", label.name},
      {"auc", roc.area},
      {"roc", to_json(roc.points)},
      {"calibration", std::move(buckets)},
      {"histogram",
       Json(Json::Object{{"low", histogram.low},
                         {"high", histogram.high},
                         {"positives", Json(Json::Array(histogram.positives.begin(), histogram.positives.end()))},
                         {"negatives", Json(Json::Array(histogram.negatives.begin(), histogram.negatives.end()))}})}});
}

Json scores_json(const ScoredSample& scored) {
  Json labels(Json::Array{}), importance(Json::Array{});
  for (const ScoredLabel& label : scored.labels) labels.add(label_json(label));
  std::vector<FeatureImportance> sorted = scored.importance;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.auc < b.auc; });
  for (const FeatureImportance& one : sorted)
    importance.add(Json(Json::Object{{"feature", one.feature},
                                     {"auc_lost", rounded_for_page(scored.auc - one.auc)},
                                     {"scores_moved", rounded_for_page(one.scores_moved)}}));
  Json unmatched(Json::Array{}), unlisted(Json::Array{});
  for (const SlotMatches& slot : scored.matches) {
    if (slot.unmatched > 0) unmatched.add(Json(Json::Array{slot.slot, slot.keys, slot.unmatched}));
    if (slot.unlisted > 0) unlisted.add(Json(Json::Array{slot.slot, slot.values, slot.unlisted}));
  }
  Json hottest(Json::Array{});
  for (const HottestKeys& table : scored.hottest) {
    Json keys(Json::Array{});
    // Keys are text, because JavaScript's numbers have 53 bits.
    for (const HottestKeys::One& one : table.keys)
      keys.add(Json(Json::Array{one.feature, std::to_string(one.key), one.times}));
    hottest.add(Json(Json::Object{{"table", table.table},
                                  {"in_training", table.in_training},
                                  {"times", table.times},
                                  {"keys", std::move(keys)}}));
  }
  return Json(Json::Object{{"model", scored.model},
                           {"data", scored.data},
                           {"rows", scored.rows},
                           {"labels", std::move(labels)},
                           {"unmatched", std::move(unmatched)},
                           {"unlisted", std::move(unlisted)},
                           {"importance", std::move(importance)},
                           {"hottest", std::move(hottest)}});
}

/// Name-value pairs for the table of runs.
class Facts {
 public:
  void add(const char* name, const std::string& value) {
    if (!value.empty()) facts_.add(Json(Json::Array{name, value}));
  }
  void add(const char* name, const Json* value) {
    if (value && value->string()) add(name, *value->string());
    if (value && value->is_number()) add(name, value->text());
  }
  Json take() { return std::move(facts_); }

 private:
  Json facts_ = Json(Json::Array{});
};

std::string words(const Json* list) {
  std::string text;
  for (size_t i = 0; list && list->array() && i < list->array()->size(); ++i)
    if (const std::string* word = (*list->array())[i].string()) text += (i > 0 ? " " : "") + *word;
  return text;
}

std::string data_text(const Json* data) {
  const Json *files = data ? data->find("files") : nullptr, *bytes = data ? data->find("bytes") : nullptr;
  if (!files || !files->integer() || !bytes || !bytes->integer()) return "";
  const Json* sizes = data->find("sizes");
  return cat(*files->integer(), *files->integer() == 1 ? " file, " : " files, ",
             with_unit_prefix(static_cast<double>(*bytes->integer())), "B",
             sizes && sizes->integer() ? cat(", fingerprint ", *sizes->integer()) : "");
}

Json facts_of(const RunData& run) {
  Facts facts;
  facts.add("end", end_of(run));
  facts.add("folder", run.folder.string());
  const Json* starts = run.about.find("starts");
  const Json* start = starts && starts->array() && !starts->array()->empty() ? &starts->array()->back() : nullptr;
  const Json* first = start ? &starts->array()->front() : nullptr;
  facts.add("began", first ? first->find("started") : nullptr);
  if (!first) facts.add("began", run.log.first_time);
  facts.add("last line", run.log.last_time);
  const Json* left_out = run.about.find(kStartsLeftOut);
  if (starts && starts->array() && starts->array()->size() > 1)
    facts.add("processes", cat(static_cast<int64_t>(starts->array()->size()) +
                                   (left_out && left_out->integer() ? *left_out->integer() : 0),
                               ", the last:"));
  std::string resumed;
  for (const int64_t iteration : run.log.resumed) resumed += cat(resumed.empty() ? "" : ", ", iteration);
  facts.add("resumed after iteration", resumed);
  facts.add("command", words(start ? start->find("command") : nullptr));
  facts.add("in folder", start ? start->find("folder") : nullptr);
  facts.add("host", start ? start->find("host") : nullptr);
  facts.add("device", start ? start->find("device") : run.log.start ? run.log.start->find("device") : nullptr);
  facts.add("processor", start ? start->find("processor") : nullptr);
  facts.add("ranks", start ? start->find("ranks") : nullptr);
  facts.add("driver", start ? start->find("driver") : nullptr);
  if (const Json* versions = start ? start->find("versions") : nullptr; versions && versions->object())
    for (const auto& [name, value] : *versions->object())
      facts.add(name == "build" ? "build type" : name.c_str(), &value);
  facts.add("training data", data_text(run.about.find("data")));
  facts.add("evaluation data", data_text(run.about.find("eval_data")));
  return facts.take();
}

Json or_null(const Json* value) { return value ? *value : Json(); }

}  // namespace

Json page_json(const RunData& run) {
  Json notes(Json::Array{}), tables(Json::Object{});
  for (const std::string& note : run.notes) notes.add(note);
  for (const auto& [name, counts] : run.log.tables) tables.set(name, series_json(counts));
  Json json(Json::Object{{"name", run.name},
                         {"end", end_of(run)},
                         {"last_iteration", run.log.last_iteration},
                         {"facts", facts_of(run)},
                         {"notes", std::move(notes)},
                         {"training", series_json(run.log.training)},
                         {"metrics", series_json(run.log.metrics)},
                         {"tables", std::move(tables)}});
  for (const char* name : {"iterations", "samples", "seconds", "samples_per_second", "final_loss", "metrics",
                           "best_possible", "memory_in_use", "memory_parts", "best_iteration", "best_metrics"})
    json.set(cat(std::string_view(name) == "metrics" ? "final_" : "", name), or_null(run.summary.find(name)));
  json.set("profile", run.profile);
  json.set("scores", run.scored ? scores_json(*run.scored) : Json());
  return json;
}

}  // namespace hctr
