#include "model/manual.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "config/manual.h"
#include "data/formats/data_schema.h"
#include "layers/catalog.h"
#include "model/config.h"

namespace hctr {
namespace {

std::string entry(const SchemaBase& schema, const std::string& title, const std::string& text) {
  std::string page = cat("## ", title, "\n\n", text, text.empty() ? "" : "\n\n", field_table(schema.fields()));
  for (const std::string& line : {ignored_line(schema), refused_line(schema)})
    if (!line.empty()) page += "\n" + line;
  return page;
}

std::string entry(const LayerType& type) {
  std::string page = cat("## ", type.name(), "\n\n", type.formula(), "\n\nBottoms: ", type.inputs().text(),
                         ". Tops: ", type.outputs().text(), ".\n");
  if (!type.fields().empty())
    page += cat("\n", type.nested().empty() ? "" : cat("In the object `", type.nested(), "`:\n\n"),
                field_table(type.fields()));
  return page;
}

std::string metrics_entry() {
  using Better = MetricType::Better;
  std::string page =
      "## eval_metrics\n\nWhat an evaluation measures, displays and writes to metrics.jsonl and summary.json: an array "
      "of the words below. A word "
      "followed by a colon and a number, as in `AUC:0.8025`, ends training once an evaluation reaches that number or a "
      "better one. With several "
      "losses a metric stands under its own name for the first loss and as `<metric>/<top>` for each other one; "
      "AverageLoss is that of the weighted "
      "sum, and `AverageLoss/<top>` that of each loss; what ends training is the number under the metric's own name. "
      "With several labels in one "
      "loss it is the mean over the labels where it is defined. Samples whose label is below -0.5 have none and are "
      "left out.\n\n| metric | better | meaning |\n|---|---|---|\n";
  for (const MetricType& type : metric_types()) {
    std::string names = cat("`", type.name, "`");
    for (const std::string& alias : type.aliases) names += cat(", `", alias, "`");
    const char* better = type.better == Better::higher  ? "higher"
                         : type.better == Better::lower ? "lower"
                                                        : "near 1; no threshold";
    page += cat("| ", names, " | ", better, " | ", type.text, " |\n");
  }
  return page;
}

std::string compatibility_entry() {
  std::string page =
      "## compatibility\n\nWords that select HugeCTR's arithmetic where this program's differs and changes trained or "
      "reported numbers. All are off unless named.\n\n| word | effect |\n|---|---|\n";
  for (const CompatibilityWord& each : compatibility_words()) page += cat("| `", each.word, "` | ", each.text, " |\n");
  return page +
         "\nOther differences, which no word changes:\n\n"
         "- Random numbers differ. Dense weights start as in 2.2.1 to 3.1; `weight_init: XavierUniform` and "
         "`bias_init: Zero` are the start of 2.1.\n"
         "- `iteration` counts finished updates: snapshot n holds n of them, and there is one at the end.\n"
         "- A key that only evaluations have contributes nothing, as in 3.1; 2.1 and 2.2 added it to the table.\n"
         "- A tensor that several layers read gets the sum of their gradients. Slots that Reshape does not select get "
         "gradient 0, and so do the copies that "
         "Scale and Gather make: each counts.\n"
         "- BatchNorm corrects its running averages for their start at 0, so that they are right from the first batch "
         "on, and "
         "loads them again. A regularizer does not apply to gamma and beta, nor to their part of the loss.\n"
         "- ReLU passes no gradient at 0, as in 3.0; 2.x in fp32 passed it. The last column of Interaction is 0.\n"
         "- `max_eval_samples` is rounded up to whole batches, not down; a rate of 0 (`end_lr`) is no error.\n"
         "- Sums have a fixed order, also with `atomic_update`.\n";
}

/// Every section of a config and its entry, in the order of the manual.
std::vector<std::pair<std::string, std::string>> sections() {
  std::vector<std::pair<std::string, std::string>> all = {
      {"solver", entry(solver_schema(), "solver", "Length of training, devices, evaluation, snapshots and precision.")},
      {"eval_metrics", metrics_entry()},
      {"compatibility", compatibility_entry()},
      {"optimizer",
       entry(optimizer_schema(), "optimizer",
             "The rule for dense weights, and for every embedding that has no section of its own. The schedule of the "
             "rate: "
             "n / warmup_steps of it while n <= warmup_steps, then all of it; with decay_start, from there on "
             "((decay_start + decay_steps - n) / decay_steps)^decay_power of it, and end_lr at least.")},
      {"Data", entry(data_schema(), "Data", "The first layer: where the samples are and what one sample holds.")}};
  for (const std::string& type : embedding_types())
    all.emplace_back(type,
                     entry(embedding_schema(type), type, "Looks up keys and pools them to one vector for each slot."));
  return all;
}

}  // namespace

std::string config_manual() {
  std::string page =
      "# Config\n\nWritten by `huge_ctr --explain config` from the program's declarations; a test fails when this page "
      "is older than they are.\n\n"
      "A JSON object with `solver`, `optimizer` and `layers`. The first layer is `Data`; embeddings and dense layers "
      "([layers.md](layers.md)) follow in any order, connected by the names in `bottom` and `top`. A second name in a "
      "line below is an older or "
      "newer spelling of the field.\n\nAn unknown key close to a field that is not set is an error, any other unknown "
      "key a warning (`--strict`: an "
      "error). `iteration` counts finished updates; evaluations and snapshots also happen at the end.\n";
  for (const auto& [name, text] : sections()) page += "\n" + text;
  return page;
}

std::string layers_manual() {
  std::string page =
      "# Layers\n\nWritten by `huge_ctr --explain layers` from the program's declarations; a test fails when this page "
      "is older than they are.\n\n"
      "Each layer has `type`, `bottom`, `top`, and may have `name`, which is not used.\n";
  for (const LayerType& type : layer_catalog()) page += "\n" + entry(type);
  return page;
}

std::string explain(const std::string& name) {
  if (name == "config") return config_manual();
  if (name == "layers") return layers_manual();
  std::vector<std::string> names = {"config", "layers"};
  for (const auto& [section, text] : sections()) {
    if (section == name) return text;
    names.push_back(section);
  }
  for (const LayerType& type : layer_catalog()) {
    if (type.name() == name) return entry(type);
    names.push_back(type.name());
  }
  const std::string hint = did_you_mean(name, names, 3);
  throw Error(Kind::usage, cat("there is nothing called \"", name, "\" to explain",
                               hint.empty() ? "; there are " + one_of(names) : hint));
}

}  // namespace hctr
