// Prints a plan as text.
#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "core/base/expect.h"
#include "net/plan/step_plan.h"

namespace hctr {
namespace {

struct PartName {
  const char* name;
  enum class Of { model, group, table, layer } of = Of::model;
};

PartName describe_part(StepPart part) {
  using Of = PartName::Of;
  switch (part) {
    case StepPart::record_event:
      return {"record an event"};
    case StepPart::wait_event:
      return {"wait for an event"};
    case StepPart::end_piece:
      return {"end of a recorded piece"};
    case StepPart::begin_scale:
      return {"begin of the loss scale"};
    case StepPart::copy_weights:
      return {"transposed copies of weights"};
    case StepPart::look_up:
      return {"look-up", Of::group};
    case StepPart::send_vectors:
      return {"send vectors", Of::group};
    case StepPart::expect_gradients:
      return {"expect gradients", Of::group};
    case StepPart::receive_gradients:
      return {"sum gradients by row", Of::group};
    case StepPart::update_rows:
      return {"update rows", Of::group};
    case StepPart::fill_vectors:
      return {"vectors of this rank", Of::table};
    case StepPart::combine_vectors:
      return {"received vectors", Of::table};
    case StepPart::sum_contributions:
      return {"dgrad, all contributions", Of::table};
    case StepPart::sum_replicated:
      return {"all-reduce of replicated rows", Of::table};
    case StepPart::send_gradients:
      return {"check and send gradients", Of::table};
    case StepPart::forward:
      return {"forward", Of::layer};
    case StepPart::backward:
      return {"backward", Of::layer};
    case StepPart::weight_gradients:
      return {"wgrad", Of::layer};
    case StepPart::penalty_gradients:
      return {"penalty's gradient", Of::layer};
    case StepPart::all_reduce_weights:
      return {"begin all-reduce, of wgrads from", Of::layer};
    case StepPart::bag_lengths:
      return {"lengths of bags"};
    case StepPart::convert_dense:
      return {"convert dense values"};
    case StepPart::sum_losses:
      return {"sum of losses"};
    case StepPart::penalty:
      return {"penalty"};
    case StepPart::all_reduce_loss:
      return {"all-reduce of the loss"};
    case StepPart::report_loss:
      return {"report the loss"};
    case StepPart::prefetch_point:
      return {"prefetch point"};
    case StepPart::grouped_all:
      return {"grouped sums and wgrads"};
    case StepPart::grouped_sums:
      return {"grouped bias gradients"};
    case StepPart::grouped_products:
      return {"grouped wgrads"};
    case StepPart::wait_all_reduces:
      return {"wait for all-reduces of wgrads"};
    case StepPart::search_operands:
      return {"overflow check of operands"};
    case StepPart::search_gradients:
      return {"overflow check of gradients"};
    case StepPart::update_fp8_scales:
      return {"scales of FP8"};
    case StepPart::update_weights:
      return {"update weights"};
  }
  throw Error(Kind::bug, "every part of a step needs a name");
}

std::string tables_text(const StepPlan& plan, const TableGroup& group) {
  std::string names;
  for (const size_t e : group.tables) names += (names.empty() ? "" : ", ") + plan.facts.tables[e].name;
  return names + (group.merged && group.tables.size() > 1 ? " (merged)" : "");
}

std::string call_text(const StepPlan& plan, const PlannedCall& call) {
  const PartName part = describe_part(call.part);
  std::string text = part.name;
  if (part.of == PartName::Of::layer) text += cat(" ", plan.facts.layers[call.index].name);
  if (part.of == PartName::Of::table) text += cat(" ", plan.facts.tables[call.index].name);
  if (part.of == PartName::Of::group) text += cat(" ", tables_text(plan, plan.groups[call.index]));
  if (call.part == StepPart::copy_weights && call.index < call.end)
    text += cat(", ", plan.facts.layers[call.index].name, " to ", plan.facts.layers[call.end - 1].name);
  if (call.grouped) text += " (grouped)";
  if (call.multiprocessors > 0) text += cat(" (", call.multiprocessors, " multiprocessors)");
  return text;
}

class TableOfCalls {
 public:
  explicit TableOfCalls(const StepPlan& plan) : plan_(plan), recorded_(plan.event_crosses.size(), "the begin") {}

  std::string text() {
    for (const PlannedCall& call : plan_.calls) add(call);
    for (const StepStream stream : {StepStream::exchange, StepStream::compute})
      if (!waits_[stream].empty()) add_row({name_of(stream), "end of the step", waits_[stream]});
    std::array<size_t, 2> widths{};
    for (const Row& row : rows_)
      for (size_t c = 0; c < widths.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    std::string text;
    for (const Row& row : rows_) {
      std::string line;
      for (size_t c = 0; c < widths.size(); ++c) line += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
      line += row[2];
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }

 private:
  using Row = std::array<std::string, 3>;

  void add(const PlannedCall& call) {
    if (call.part == StepPart::record_event) {
      recorded_[call.index] = cat(name_of(call.stream), ": ", last_of(call.stream));
    } else if (call.part == StepPart::wait_event) {
      std::string& waits = waits_[call.stream];
      waits += (waits.empty() ? "" : "; ") + recorded_[call.index];
    } else if (call.part == StepPart::end_piece) {
      add_row({"", cat("-- ", describe_part(call.part).name, " --"), ""});
    } else {
      const std::string what = call_text(plan_, call);
      add_row({name_of(call.stream), what + (call.outside ? " (not recorded)" : ""), waits_[call.stream]});
      waits_[call.stream].clear();
      last_[call.stream] = what;
      if (call.part == StepPart::sum_replicated) recorded_[call.end] = what;
    }
  }
  std::string last_of(StepStream stream) const {
    const auto last = last_.find(stream);
    return last == last_.end() ? "begin" : last->second;
  }
  void add_row(Row row) { rows_.push_back(std::move(row)); }

  const StepPlan& plan_;
  std::vector<Row> rows_ = {{"stream", "call", "waits for (besides earlier calls on the same stream)"}};
  std::vector<std::string> recorded_;  // [event] the name of the call before the event
  std::map<StepStream, std::string> waits_, last_;
};

/// Wraps the text into lines that begin with four spaces.
std::string wrapped(std::string_view text) {
  constexpr size_t kWidth = 106;
  std::string lines;
  while (text.size() > kWidth) {
    const size_t end = text.rfind(' ', kWidth);
    lines += cat("    ", text.substr(0, end), "\n");
    text.remove_prefix(end + 1);
  }
  return lines + cat("    ", text, "\n");
}

std::string preparation_text(const StepPlan& plan) {
  const bool alone = plan.facts.alone();
  std::string text = cat("Batch k+", plan.choices.keys_ahead ? 2 : 1, " is uploaded",
                         alone ? "" : ", and its keys are sent to the owner ranks,", " on the ",
                         plan.choices.keys_ahead ? "key" : "prepare",
                         " stream once its buffer is free.\nBatch k+1 is looked up and sorted on the prepare stream");
  text += plan.has_prefetch_point ? " after the prefetch point of step k.\n" : " once its keys have arrived.\n";
  return text;
}

}  // namespace

const char* name_of(StepPart part) { return describe_part(part).name; }

const char* name_of(StepStream stream) {
  constexpr const char* kNames[kStepStreams] = {"compute", "exchange", "elements", "weights", "layers", "signal"};
  return kNames[static_cast<size_t>(stream)];
}

std::string calls_table(const StepPlan& plan) { return preparation_text(plan) + "\n" + TableOfCalls(plan).text(); }

std::string step_table(const StepPlan& plan) {
  std::string text = "Rules that apply:\n";
  for (const StepRule* rule : plan.rules)
    text += cat("- ", rule->name, "\n", wrapped(rule->reason), wrapped(cat("Measured: ", rule->gain, ".")));
  return cat(text, "\nStep k, in the order in which it is queued:\n", calls_table(plan));
}

}  // namespace hctr
