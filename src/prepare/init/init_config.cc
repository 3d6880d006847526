#include "prepare/init/init_config.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "config/config_file.h"
#include "core/base/expect.h"
#include "prepare/init/wide_json.h"

namespace hctr {
namespace {

using Object = Json::Object;

constexpr int64_t kMostKept = 200;  // maximum number of keys used per list
// Maximum number of keys used per history. It is smaller than kMostKept, because the attention network processes each
// key of a history.
constexpr int64_t kMostHistory = 50;
constexpr int64_t kMostShuffled = 1 << 18;  // maximum number of rows in the shuffle window
constexpr int64_t kMostEvaluated = 1'000'000;
constexpr const char* kMissingKey = "(missing)";

Json names(const std::vector<const ColumnGuess*>& columns) {
  Json array(Json::Array{});
  for (const ColumnGuess* column : columns) array.add(column->name);
  return array;
}

/// Makes the sections "dense" and "slots" of csv and parquet, and the limits of the slots.
class Columns {
 public:
  explicit Columns(const InitPlan& plan) : plan_(plan) {
    if (plan.history) {
      add_items(plan.columns[*plan.history]);
      add_items(plan.columns[*plan.item]);
    }
    add_dense(false);
    add_dense(true);
    for (const bool missing : {false, true})
      add_slots(missing, {}, [&](const ColumnGuess& c) { return c.kind != GuessedKind::list && c.missing == missing; });
    for (const ListForm& form : list_forms())
      for (const bool missing : {false, true})
        add_slots(missing, form, [&](const ColumnGuess& c) {
          return c.kind == GuessedKind::list && ListForm(c.brackets, c.separator) == form && c.missing == missing;
        });
  }

  Json dense{Json::Array{}}, slots{Json::Array{}}, nnz{Json::Array{}};
  int64_t dense_count = 0, slot_count = 0;  // slot_count excludes the slots of "items"
  int64_t kept = 1;                         // maximum number of keys kept per slot
  bool lists = false;                       // whether a slot may have several keys

 private:
  bool is_item(const ColumnGuess& column) const {
    return plan_.history && (&column == &plan_.columns[*plan_.history] || &column == &plan_.columns[*plan_.item]);
  }

  using ListForm = std::pair<bool, char>;  // whether lists are in brackets, and their separator; 0: none

  /// The distinct forms of lists, in column order.
  std::vector<ListForm> list_forms() const {
    std::vector<ListForm> found;
    for (const ColumnGuess& column : plan_.columns) {
      const ListForm form(column.brackets, column.separator);
      if (column.kind == GuessedKind::list && std::find(found.begin(), found.end(), form) == found.end())
        found.push_back(form);
    }
    return found;
  }

  static void set_form(const ListForm& form, Json& section) {
    if (form.first) section.set("brackets", true);
    if (form.second != 0) section.set("separator", std::string(1, form.second));
  }

  /// The number format and the unit that the config must state for a dense column. The format is empty if the whole
  /// table's number format reads the column in the same way.
  std::pair<std::string, std::string> stated_notation(const ColumnGuess& column) const {
    const NumberNotation& notation = column.notation;
    const NumberFormat own = notation.format.value_or(NumberFormat::plain);
    bool alike = own == NumberFormat::plain && (!notation.format || !notation.unit.empty());
    if (plan_.number_format)
      alike = own == *plan_.number_format ||
              (own == NumberFormat::plain &&
               (has_decimal_point(*plan_.number_format) || (notation.unit.empty() && !column.has_points)));
    return {alike ? "" : word_of(own), notation.unit};
  }

  void add_dense(bool log) {
    std::map<std::pair<std::string, std::string>, std::vector<const ColumnGuess*>> groups;  // by stated_notation()
    for (const ColumnGuess& column : plan_.columns)
      if (column.is_number() && column.log == log) groups[stated_notation(column)].push_back(&column);
    for (const auto& [notation, group] : groups) {
      dense_count += static_cast<int64_t>(group.size());
      Json section(Object{{"columns", names(group)},
                          {"transform", log ? Json(Json::Array{"log", "standardize"}) : Json("standardize")}});
      if (!notation.first.empty()) section.set("number_format", notation.first);
      if (!notation.second.empty()) section.set("unit", notation.second);
      dense.add(std::move(section));
    }
  }

  template <class Belongs>
  void add_slots(bool missing, const ListForm& form, const Belongs& belongs) {
    std::vector<const ColumnGuess*> group;
    for (const ColumnGuess& column : plan_.columns)
      if (column.is_slot() && !is_item(column) && belongs(column)) group.push_back(&column);
    if (group.empty()) return;
    slot_count += static_cast<int64_t>(group.size());
    Json section(Object{{"columns", names(group)}});
    if (!plan_.layout) section.set("keys", "hash");
    set_form(form, section);
    if (missing)
      section.set("default", kMissingKey);
    else if (!plan_.layout)
      section.set("default", "");  // an empty default, because later rows may contain nulls
    slots.add(std::move(section));
    for (const ColumnGuess* column : group) {
      const bool list = column->kind == GuessedKind::list;
      lists = lists || list;
      nnz.add(list ? std::max<int64_t>(1000, 4 * column->most_items) : int64_t{1});
      kept = std::max(kept, std::min(column->most_items, kMostKept));
    }
  }

  /// Adds a slot for items. Equal values get equal keys in all such slots: the numbers themselves, or hashes in a
  /// common key space.
  void add_items(const ColumnGuess& column) {
    Json section(Object{{"columns", names({&column})}});
    if (plan_.item_numbers || !plan_.layout) section.set("keys", plan_.item_numbers ? "number" : "hash");
    if (!plan_.item_numbers) section.set("key_space", "items");
    set_form({column.brackets, column.separator}, section);
    if (!plan_.layout) section.set("default", "");
    slots.add(std::move(section));
  }

  const InitPlan& plan_;
};

int64_t power_of_two_near(double x) { return int64_t{1} << static_cast<int>(std::lround(std::log2(std::max(x, 1.0)))); }

int64_t history_kept(const InitPlan& plan) { return std::min(plan.columns[*plan.history].most_items, kMostHistory); }

void expect_columns(const InitPlan& plan, const Columns& columns) {
  if (columns.dense_count + columns.slot_count == 0 && !plan.history)
    throw Error(Kind::data, "every column except the label was omitted, so there is nothing to learn from");
  if (plan.model == InitModel::dlrm && (columns.dense_count == 0 || columns.slot_count == 0))
    throw Error(Kind::usage, cat("--template dlrm needs numbers and categories, but there are no ",
                                 columns.dense_count == 0 ? "numbers" : "categories", "; try --template wdl"));
}

Json solver(const InitPlan& plan, const InitSchedule& schedule) {
  const int64_t steps = schedule.steps_per_epoch * schedule.epochs;
  const int64_t evaluations = schedule.epochs > 3 ? 1 : 2;  // evaluations per epoch
  Json section(Object{{"display", std::max<int64_t>(1, steps / 20)},
                      {"num_epochs", schedule.epochs},
                      {"batchsize", schedule.batch},
                      {"batchsize_eval", std::max<int64_t>(1024, schedule.batch)},
                      {"eval_interval", std::max<int64_t>(1, schedule.steps_per_epoch / evaluations)},
                      {"eval_metrics", Json(Json::Array{"AUC", "AverageLoss"})},
                      {"early_stopping", Json(Object{{"metric", "AUC"}, {"patience", 3}})},
                      {"input_key_type", "I64"},
                      {"seed", 1}});
  if (plan.eval_rows > kMostEvaluated) section.set("max_eval_samples", kMostEvaluated);
  return section;
}

/// Adam with a learning rate that rises over the first twentieth of the run and then falls to a hundredth.
Json optimizer(const InitSchedule& schedule) {
  const double rate = 0.001 * std::sqrt(std::max(1.0, static_cast<double>(schedule.batch) / 512));
  return Json(Object{{"type", "Adam"},
                     {"update_type", "Local"},
                     {"adam_hparam", Json(Object{{"learning_rate", std::round(rate * 1e5) / 1e5},
                                                 {"warmup_steps", "5%"},
                                                 {"decay", "linear"},
                                                 {"end_lr", std::round(rate * 1e3) / 1e5}})}});
}

/// The label. Numbers are plain if the label has no notation of its own.
Json label_json(const InitPlan& plan) {
  Json label = plan.label.json();
  if (plan.label.text || plan.label.notation.given() ||
      has_decimal_point(plan.number_format.value_or(NumberFormat::plain)))
    return label;
  if (!label.object()) label = Json(Object{{"column", plan.label.column}});
  return label.set("number_format", word_of(NumberFormat::plain));
}

Json format_section(const InitPlan& plan, const Columns& columns) {
  Json section(Object{});
  if (plan.layout) {
    const TextLayout& layout = *plan.layout;
    if (layout.delimiter != ",") section.set("delimiter", layout.delimiter);
    if (layout.delimiter.size() == 1 && layout.grammar.quote == 0) section.set("quote", "");
    if (!layout.header) section.set("header", false);
  }
  if (plan.layout ? plan.layout->grammar.trim : plan.trim) section.set("trim", true);
  if (!plan.missing.empty()) {
    Json marks(Json::Array{});
    for (const std::string& mark : plan.missing) marks.add(mark);
    section.set("missing", std::move(marks));
  }
  if (plan.number_format) section.set("number_format", word_of(*plan.number_format));
  section.set("labels", Json(Json::Array{label_json(plan)}));
  section.set("dense", columns.dense);
  section.set("slots", columns.slots);
  return section;
}

Json data_layer(const InitPlan& plan, const Columns& columns) {
  Json layer(Object{{"type", "Data"},
                    {"format", plan.layout ? "Csv" : "Parquet"},
                    {"source", plan.train},
                    {"eval_source", plan.eval},
                    {"shuffle", std::min(plan.train_rows, kMostShuffled)}});
  if (plan.skip_bad_rows) layer.set("bad_records", "skip");
  layer.set(plan.layout ? "csv" : "parquet", format_section(plan, columns));
  layer.set("label", Json(Object{{"top", "label"}, {"label_dim", 1}}));
  layer.set("dense", Json(Object{{"top", "dense"}, {"dense_dim", columns.dense_count}}));
  Json inputs(Json::Array{});
  if (plan.history) {
    const int64_t most = std::max<int64_t>(1000, 4 * plan.columns[*plan.history].most_items);
    inputs.add(Json(Object{{"top", "items"},
                           {"slot_num", 2},
                           {"nnz_per_slot", Json(Json::Array{Json(most), Json(1)})},
                           {"keep_last", history_kept(plan)}}));
  }
  if (columns.slot_count > 0) {
    Json keys(Object{
        {"top", "keys"}, {"slot_num", columns.slot_count}, {"nnz_per_slot", columns.lists ? columns.nnz : Json(1)}});
    if (columns.lists) keys.set("keep_first", columns.kept);
    inputs.add(std::move(keys));
  }
  layer.set("sparse", std::move(inputs));
  return layer;
}

}  // namespace

InitSchedule schedule_of(const InitPlan& plan) {
  InitSchedule schedule;
  const auto rows = static_cast<double>(plan.train_rows);
  double keys = 0;
  for (size_t i = 0; i < plan.columns.size(); ++i)
    if (plan.columns[i].is_slot()) keys += static_cast<double>(plan.distinct[i]);
  // If there are more than half as many keys as rows, embedding vectors memorize the rows in the second epoch.
  const bool many_keys = keys > 0.5 * rows;
  schedule.rare_keys = many_keys;
  schedule.batch = std::clamp<int64_t>(power_of_two_near(rows / 160), 16, 4096);
  schedule.epochs = many_keys ? (rows < 1e7 ? 3 : 1) : rows < 2e5 ? 12 : rows < 2e6 ? 6 : rows < 2e7 ? 3 : 1;
  schedule.steps_per_epoch = std::max<int64_t>(1, (plan.train_rows + schedule.batch - 1) / schedule.batch);
  return schedule;
}

std::string init_config(const InitPlan& plan) {
  const Columns columns(plan);
  expect_columns(plan, columns);
  const InitSchedule schedule = schedule_of(plan);
  const ModelInputs inputs{.dense = columns.dense_count,
                           .slots = columns.slot_count,
                           .history = plan.history ? history_kept(plan) : 0,
                           .rare_keys = schedule.rare_keys};
  Json layers(Json::Array{data_layer(plan, columns)});
  for (Json& layer : model_layers(plan.model, inputs)) layers.add(std::move(layer));
  return wide_json(with_escaped_variables(Json(
      Object{{"solver", solver(plan, schedule)}, {"optimizer", optimizer(schedule)}, {"layers", std::move(layers)}})));
}

}  // namespace hctr
