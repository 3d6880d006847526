// Decides which config differences are permitted: in a resumed run, and between processes that train together.
#include <algorithm>
#include <array>
#include <set>

#include "core/base/expect.h"
#include "core/base/host_name.h"
#include "core/comm/collective_error.h"
#include "train/resume.h"

namespace hctr {
namespace {

enum class Verdict { allowed, without_effect, warned, refused };

struct Change {
  std::string pointer, was, is;
  Verdict verdict;
};

/// The verdict on fields whose JSON pointer begins with `start`. The first matching rule decides.
struct Rule {
  std::string_view start;
  Verdict verdict;
};
constexpr std::array kRules = {
    Rule{"/solver/max_iter", Verdict::allowed},
    Rule{"/solver/num_epochs", Verdict::allowed},
    Rule{"/solver/display", Verdict::allowed},
    Rule{"/solver/tensorboard", Verdict::allowed},
    Rule{"/solver/eval_interval", Verdict::allowed},
    Rule{"/solver/eval_metrics", Verdict::allowed},
    Rule{"/solver/group_by", Verdict::allowed},
    Rule{"/solver/early_stopping", Verdict::allowed},
    Rule{"/solver/max_eval_batches", Verdict::allowed},
    Rule{"/solver/max_eval_samples", Verdict::allowed},
    Rule{"/solver/batchsize_eval", Verdict::allowed},
    Rule{"/solver/export_predictions_prefix", Verdict::allowed},
    Rule{"/solver/snapshot", Verdict::allowed},  // also matches snapshot_prefix and snapshot_opt_states
    Rule{"/solver/replace_models", Verdict::allowed},
    Rule{"/solver/model_format", Verdict::allowed},
    Rule{"/solver/final_snapshot", Verdict::allowed},
    Rule{"/solver/checkpoint", Verdict::allowed},
    Rule{"/solver/publish", Verdict::allowed},
    Rule{"/solver/cuda_graph", Verdict::allowed},
    Rule{"/solver/algorithm_file", Verdict::allowed},  // checkpoints store the algorithms
    Rule{"/solver/gpu", Verdict::allowed},
    Rule{"/solver/placement", Verdict::allowed},  // also placement_file
    Rule{"/solver/table_memory", Verdict::allowed},
    Rule{"/solver/dense_model_file", Verdict::without_effect},
    Rule{"/solver/sparse_model_file", Verdict::without_effect},
    Rule{"/solver/dense_opt_states_file", Verdict::without_effect},
    Rule{"/solver/load_layers", Verdict::without_effect},
    Rule{"/solver/combine_models", Verdict::without_effect},
    Rule{"/solver/pretrained", Verdict::without_effect},
    Rule{"/solver/sparse_opt_states_file", Verdict::without_effect},
    Rule{"/layers/0/source", Verdict::allowed},  // the data files are compared instead
    Rule{"/layers/0/bad_records_file", Verdict::allowed},
    Rule{"/layers/0/eval_source", Verdict::allowed},
    Rule{"/layers/0/eval_num_samples", Verdict::allowed},
    Rule{"/layers/0/cache_eval_data", Verdict::allowed},
    Rule{"/layers/0/num_workers", Verdict::allowed},
    Rule{"/layers/0/follow_idle", Verdict::allowed},
};
/// Learning rate fields of any optimizer.
const std::set<std::string_view> kRateWords = {"learning_rate", "warmup_steps", "decay_start", "decay_steps",
                                               "decay_power",   "end_lr",       "decay",       "decay_factor"};

Verdict verdict_of(const Change& change) {
  const std::string& pointer = change.pointer;
  // With max_iter, a batch may contain samples of two passes; with num_epochs it may not.
  if ((pointer == "/solver/max_iter" || pointer == "/solver/num_epochs") && (change.was.empty() || change.is.empty()))
    return Verdict::refused;
  for (const Rule& rule : kRules)
    if (pointer.starts_with(rule.start)) return rule.verdict;
  if (pointer.starts_with("/layers/") && pointer.find("/table_memory") != pointer.npos) return Verdict::allowed;
  if (pointer.starts_with("/optimizer/") &&
      kRateWords.contains(std::string_view(pointer).substr(pointer.rfind('/') + 1)))
    return Verdict::warned;
  return Verdict::refused;
}

void compare(const Json* was, const Json* is, const std::string& pointer, std::vector<Change>& changes) {
  const std::string before = was ? was->text() : "", now = is ? is->text() : "";
  if (before == now) return;
  if (was && is && was->object() && is->object()) {
    for (const auto& [name, value] : *was->object()) compare(&value, is->find(name), pointer + "/" + name, changes);
    for (const auto& [name, value] : *is->object())
      if (!was->find(name)) compare(nullptr, &value, pointer + "/" + name, changes);
  } else if (was && is && was->array() && is->array() && was->array()->size() == is->array()->size()) {
    for (size_t i = 0; i < was->array()->size(); ++i)
      compare(&(*was->array())[i], &(*is->array())[i], cat(pointer, "/", i), changes);
  } else {
    changes.push_back({pointer, before, now, Verdict::refused});
    changes.back().verdict = verdict_of(changes.back());
  }
}

std::string value_text(const std::string& text) {
  constexpr size_t kMost = 80;
  return text.empty() ? "not set" : text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

std::string describe(const Change& change) {
  return cat(change.pointer, " was ", value_text(change.was), " and is ", value_text(change.is));
}

/// The host and config of a rank, as text for rank 0.
std::string config_of_rank(const Config& config) {
  return Json(Json::Object{{"host", host_name()}, {"config", config.effective}}).text();
}

/// Whether a field contains a file path that may differ between hosts.
bool names_data(const Change& change) {
  return change.pointer == "/layers/0/source" || change.pointer == "/layers/0/eval_source";
}

}  // namespace

void expect_one_config(Communicator& comm, const Config& config) {
  if (comm.size() == 1) return;
  const std::vector<std::string> all = comm.gather(config_of_rank(config), 0);
  run_on_all_ranks(comm, [&] {
    for (size_t r = 1; r < all.size(); ++r) {
      if (all[r] == all[0]) continue;
      const Json other = Json::parse(all[r], "the config of another rank");
      std::vector<Change> changes;
      compare(&config.effective, other.find("config"), "", changes);
      std::erase_if(changes, names_data);
      std::string differences;
      for (const Change& change : changes)
        differences += cat("\n  ", change.pointer, " is ", value_text(change.was), " for rank 0 and ",
                           value_text(change.is), " for rank ", r, " on ", *other.find("host")->string());
      if (!differences.empty())
        throw Error(Kind::config, cat("the processes have read different configs:", differences));
    }
  });
}

void expect_same_run(const ResumePoint& point, const Config& config, const Log& log) {
  const Json* was = point.manifest.about.find("config");
  if (!was) throw Error(Kind::data, cat("the checkpoint '", point.folder.string(), "' does not contain its config"));
  std::vector<Change> changes;
  compare(was, &config.effective, "", changes);
  std::string refused;
  for (const Change& change : changes) {
    const std::string text = describe(change);
    if (change.verdict == Verdict::allowed) log.info("The config has changed: ", text, ".");
    if (change.verdict == Verdict::without_effect)
      log.info("The config has changed, without effect on a resumed run: ", text, ".");
    if (change.verdict == Verdict::warned)
      log.warning("the learning rate has changed: ", text, "; the run continues with the new rate");
    if (change.verdict == Verdict::refused) refused += "\n  " + text;
  }
  if (!refused.empty())
    throw Error(Kind::config, cat("the config differs from the config of the checkpoint '", point.folder.string(),
                                  "' in fields that affect the model or its results:", refused,
                                  "\nRestore these fields, or start a new run without --resume (a saved model can "
                                  "be loaded with \"dense_model_file\" and \"sparse_model_file\")"));
}

}  // namespace hctr
