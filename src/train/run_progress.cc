#include "train/run_progress.h"

#include <cmath>
#include <limits>
#include <string_view>

#include "core/base/expect.h"

namespace hctr {
namespace {

Json write(bool value) { return value; }
Json write(int64_t value) { return value; }
Json write(double value) { return value; }  // JSON has no NaN; NaN becomes null
Json write(const std::string& value) { return value; }
Json write(const ReaderPosition& value) { return to_json(value); }
template <class T>
Json write(const std::vector<T>& values) {
  Json array(Json::Array{});
  for (const T& value : values) array.add(write(value));
  return array;
}
template <class T>
Json write(const std::optional<T>& value) {
  return value ? write(*value) : Json();
}
template <class T>
Json write(const std::map<std::string, T>& values) {
  Json object(Json::Object{});
  for (const auto& [name, value] : values) object.set(name, write(value));
  return object;
}

bool read(const Json& json, bool& to) { return json.boolean() ? (to = *json.boolean(), true) : false; }
bool read(const Json& json, int64_t& to) { return json.integer() ? (to = *json.integer(), true) : false; }
bool read(const Json& json, double& to) {
  if (!json.is_null() && !json.is_number()) return false;
  to = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.number();
  return true;
}
bool read(const Json& json, std::string& to) { return json.string() ? (to = *json.string(), true) : false; }
bool read(const Json& json, ReaderPosition& to) {
  to = reader_position(json);
  return true;
}
template <class T>
bool read(const Json& json, std::vector<T>& to) {
  if (!json.array()) return false;
  for (const Json& value : *json.array())
    if (!read(value, to.emplace_back())) return false;
  return true;
}
template <class T>
bool read(const Json& json, std::optional<T>& to) {
  return json.is_null() || read(json, to.emplace());
}
template <class T>
bool read(const Json& json, std::map<std::string, T>& to) {
  if (!json.object()) return false;
  for (const auto& [name, value] : *json.object())
    if (!read(value, to[name])) return false;
  return true;
}

/// Visits all fields with their names. `Progress` may be const.
template <class Progress, class Visit>
void each_field(Progress& at, Visit&& visit) {
  visit("finished", at.finished);
  visit("iterations", at.iterations);
  visit("samples", at.samples);
  visit("epochs", at.epochs);
  visit("evaluated_at", at.evaluated_at);
  visit("loss", at.loss);
  visit("skipped_steps", at.skipped_steps);
  visit("skipped_records", at.skipped_records);
  visit("key_bytes", at.key_bytes);
  visit("seconds", at.report.seconds);
  visit("eval_seconds", at.eval_seconds);
  visit("metrics", at.metrics);
  visit("undefined", at.undefined);
  visit("counted_losses", at.counted_losses);
  visit("stopped_at", at.stopped_at);
  visit("best", at.best);
  visit("best_iteration", at.best_iteration);
  visit("best_metrics", at.best_metrics);
  visit("evaluations_since_best", at.evaluations_since_best);
  visit("undefined_evaluations", at.undefined_evaluations);
  visit("undefined_warned", at.undefined_warned);
  visit("best_files", at.best_files);
  visit("shown_samples", at.report.samples);
  visit("shown_iteration", at.report.iteration);
  visit("shown_tables", at.report.tables);
  visit("reader", at.reader);
  visit("eval_reader", at.eval_reader);
  visit("followed", at.followed);
  visit("followed_bytes", at.followed_bytes);
  visit("snapshot_iteration", at.snapshot_iteration);
  visit("snapshot_files", at.snapshot_files);
  visit("loss_sum", at.loss_sum.sum);
  visit("loss_samples", at.loss_sum.samples);
}

/// Whether checkpoints of older versions may lack this field.
bool may_be_missing(std::string_view field) {
  for (const char* begin : {"loss_", "followed", "counted_losses", "undefined"})
    if (field.starts_with(begin)) return true;
  return false;
}

}  // namespace

Json to_json(const RunProgress& progress) {
  Json json(Json::Object{});
  each_field(progress, [&](const char* name, const auto& value) { json.set(name, write(value)); });
  return json;
}

RunProgress run_progress(const Json& json) {
  RunProgress progress;
  progress.counted_losses.reset();
  each_field(progress, [&](const char* name, auto& value) {
    const Json* found = json.find(name);
    if (!found && may_be_missing(name)) return;
    if (!found || !read(*found, value))
      throw Error(Kind::data, cat("the progress of a checkpoint has ", found ? found->text() : "nothing", " as \"",
                                  name, "\", which is not a valid value"));
  });
  return progress;
}

}  // namespace hctr
