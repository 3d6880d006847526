#include "config/sections/config_manual.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>
#include <vector>

#include "config/field_table.h"
#include "config/sections/config.h"
#include "config/sections/config_schema.h"
#include "config/sections/metric_hint.h"
#include "config/sections/optimizer_catalog.h"
#include "core/base/expect.h"
#include "formats/catalog/data_schema.h"
#include "formats/catalog/format_table.h"
#include "net/layers/layer_catalog.h"

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

std::string entry(const OptimizerType& type) {
  const Schema<HyperParameters> schema = type.schema();
  return cat("## ", type.name, "\n\nAn optimizer: ", type.formula, "\n\nIn the object `", type.object, "`:\n\n",
             field_table(schema.fields()));
}

std::string names_of(const std::string& name, const std::vector<std::string>& others) {
  std::string names = cat("`", name, "`");
  for (const std::string& other : others) names += cat(", `", other, "`");
  return names;
}

std::string better_of(const MetricType& type) {
  return type.better == MetricType::Better::higher  ? "higher"
         : type.better == MetricType::Better::lower ? "lower"
                                                    : "near 1; no threshold";
}

std::string entry(const MetricType& type) {
  return cat("## ", type.name, "\n\nA metric, named ", names_of(type.name, type.aliases),
             " in eval_metrics: ", type.text, "\n\nBetter: ", better_of(type), ".\n");
}

std::string entry(const FormatType& type) {
  const std::string name(type.format.name);
  return cat("## ", name, "\n\nA data format, named ", names_of(name, type.aliases), " in the Data layer. `source` is ",
             type.source_text, ".\n");
}

std::string metrics_entry() {
  std::string page =
      "## eval_metrics\n\nThe metrics that an evaluation computes, displays and writes to metrics.jsonl and "
      "summary.json: an array of the words below. A word followed by a colon and a number, as in `AUC:0.8025`, "
      "ends training once an evaluation reaches that number or a better one. With several losses, `<metric>` is "
      "the metric of the first loss and `<metric>/<top>` the metric of each further loss; `AverageLoss` is the "
      "weighted sum of all losses and `AverageLoss/<top>` a single loss. Thresholds apply to names without "
      "`/<top>`. With several labels in one loss, a metric is the mean over the labels for which it is defined. "
      "Samples with a label below -0.5 count as unlabelled and are skipped.\n\n| metric | better | meaning "
      "|\n|---|---|---|\n";
  for (const MetricType& type : metric_types())
    page += cat("| ", names_of(type.name, type.aliases), " | ", better_of(type), " | ", type.text, " |\n");
  return page;
}

std::string compatibility_entry() {
  std::string page =
      "## compatibility\n\nEach word selects HugeCTR's arithmetic where this program computes differently and the "
      "difference changes trained or reported numbers. All words are off unless named.\n\n| word | effect "
      "|\n|---|---|\n";
  for (const CompatibilityWord& each : compatibility_words()) page += cat("| `", each.word, "` | ", each.text, " |\n");
  return page +
         "\nOther differences, which no word changes:\n\n- Random numbers differ. Dense weights start as in 2.2.1 "
         "to 3.1; `weight_init: XavierUniform` and `bias_init: Zero` are the start of 2.1.\n- `iteration` counts "
         "finished updates: snapshot n contains n updates, and training ends with a snapshot.\n- A key that occurs "
         "only in evaluation data contributes nothing, as in 3.1; 2.1 and 2.2 added such keys to the table.\n- A "
         "tensor that several layers read gets the sum of their gradients. Slots that Reshape does not select get "
         "gradient 0. The gradients of all copies that Scale and Gather make are summed.\n- BatchNorm corrects its "
         "running averages for the start at 0, which makes them exact from the first batch on, and loads saved "
         "averages. A regularizer does not apply to gamma and beta: they add nothing to the penalty in the loss, and "
         "get no gradient from the penalty.\n- ReLU passes "
         "no gradient at 0, as in 3.0; 2.x in fp32 passed the gradient. The last column of Interaction is 0.\n- "
         "`max_eval_samples` is rounded up to whole batches, not down; a rate of 0 (`end_lr`) is not an error.\n- "
         "Sums have a fixed order, also with `atomic_update`.\n";
}

/// The name and manual entry of every config section, in manual order.
std::vector<std::pair<std::string, std::string>> sections() {
  std::vector<std::pair<std::string, std::string>> all = {
      {"solver", entry(solver_schema(), "solver", "Length of training, devices, evaluation, snapshots and precision.")},
      {"eval_metrics", metrics_entry()},
      {"compatibility", compatibility_entry()},
      {"optimizer",
       entry(optimizer_schema(), "optimizer",
             "The rule for dense weights, and for every embedding without its own optimizer section. In step n the "
             "learning rate is multiplied by n / warmup_steps while n <= warmup_steps, afterwards by 1. With "
             "decay_start, the factor from decay_start on is ((decay_start + decay_steps - n) / "
             "decay_steps)^decay_power, and the rate is at least end_lr; `decay` selects other schedules. A "
             "fraction of the run refers to max_iter, or to the steps of num_epochs passes; for text files without "
             "num_samples the number of samples is estimated.")},
      {"Data",
       entry(data_schema(), "Data", "The first layer: the location of the samples and the content of a sample.")}};
  for (const std::string& type : embedding_types())
    all.emplace_back(type, entry(embedding_schema(type), type,
                                 "Looks up keys and pools their vectors to one vector for "
                                 "each slot."));
  return all;
}

/// A manual entry and the names by which `--explain` finds the entry.
struct Entry {
  std::vector<std::string> names;
  std::function<std::string()> text;
};

std::vector<Entry> entries() {
  std::vector<Entry> all = {{{"config"}, config_manual}, {{"layers"}, layers_manual}, {{"schema"}, config_schema_text}};
  for (const auto& section : sections()) all.push_back({{section.first}, [text = section.second] { return text; }});
  for (const LayerType& type : layer_catalog()) all.push_back({{type.name()}, [&type] { return entry(type); }});
  for (const OptimizerType& type : optimizer_catalog()) all.push_back({{type.name}, [&type] { return entry(type); }});
  const auto add_with_aliases = [&all](const auto& name, const auto& type) {
    all.push_back({{std::string(name)}, [&type] { return entry(type); }});
    all.back().names.insert(all.back().names.end(), type.aliases.begin(), type.aliases.end());
  };
  for (const MetricType& type : metric_types()) add_with_aliases(type.name, type);
  for (const FormatType& type : format_types()) add_with_aliases(type.format.name, type);
  return all;
}

template <class SameLetter>
bool contains(const std::vector<std::string>& names, const std::string& name, SameLetter same) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& each) {
    return std::equal(each.begin(), each.end(), name.begin(), name.end(), same);
  });
}

}  // namespace

std::string config_manual() {
  std::string page =
      "# Config\n\nWritten by `huge_ctr --explain config` from the program's declarations; a test fails when this "
      "page is out of date.\n\nA JSON object with `solver`, `optimizer` and `layers`. The first layer is `Data`; "
      "embeddings and dense layers ([layers.md](layers.md)) follow in any order, connected by the names in "
      "`bottom` and `top`. A second name in a table row is an older or newer spelling of the field.\n\nAn unknown "
      "key of `solver` is an error, unless it starts with `_` or `//`. In other sections an unknown key that "
      "resembles an unset field is an error, and any other unknown key is a warning (`--strict`: an error). Files "
      "may [include other files and use environment variables](config_files.md). `iteration` counts finished "
      "updates; evaluations and snapshots also happen at the end.\n";
  for (const auto& [name, text] : sections()) page += "\n" + text;
  return page;
}

std::string layers_manual() {
  std::string page =
      "# Layers\n\nWritten by `huge_ctr --explain layers` from the program's declarations; a test fails when this page "
      "is out of date.\n\nEach layer has `type`, `bottom`, `top`, and may have `name`, which is not used.\n";
  for (const LayerType& type : layer_catalog()) page += "\n" + entry(type);
  return page;
}

std::string explain(const std::string& name, const ManualEntries& others) {
  std::vector<Entry> all = entries();
  for (const auto& [other, text] : others) all.push_back({{other}, text});
  for (const Entry& each : all)
    if (contains(each.names, name, std::equal_to<char>())) return each.text();
  const auto same_letter = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  std::vector<std::string> names;
  for (const Entry& each : all) {
    if (contains(each.names, name, same_letter)) return each.text();
    names.insert(names.end(), each.names.begin(), each.names.end());
  }
  const std::string metric = metric_elsewhere(name);
  const std::string hint = metric.empty() ? did_you_mean(name, names, 3) : cat("; did you mean \"", metric, "\"?");
  throw Error(Kind::usage,
              cat("unknown name \"", name, "\" to explain", hint.empty() ? "; there are " + one_of(names) : hint));
}

}  // namespace hctr
