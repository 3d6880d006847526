#include "net/plan/step_layout.h"

#include <algorithm>
#include <utility>

namespace hctr {

void StepLayout::lay_out() {
  summed_.resize(facts_.tables.size());
  vectors_sent_.resize(facts_.tables.size());
  for (size_t e = 0; e < facts_.tables.size(); ++e) {
    all_.push_back(e);
    if (!is_apart(e)) main_.push_back(e);
  }
  facts_.alone() ? begin_alone() : begin_on_ranks();
  forward();
  end_forward();
  backward();
  update();
}

PlannedCall& StepLayout::add(Part part, On stream, size_t index) {
  plan_.calls.push_back({.part = part, .stream = stream, .index = index});
  return plan_.calls.back();
}

PlannedCall& StepLayout::add_exchange(Part part, On stream, size_t index) {
  PlannedCall& call = add(part, stream, index);
  call.outside = choices_.outside;
  return call;
}

size_t StepLayout::record(On stream, bool outside) {
  const size_t event = plan_.event_crosses.size();
  plan_.event_crosses.push_back(false);
  recorded_.push_back({outside, piece_});
  add(Part::record_event, stream, event).outside = outside;
  return event;
}

void StepLayout::wait(On stream, size_t event, bool outside) {
  const Recorded& recorded = recorded_[event];
  if (recorded.outside != outside || (!outside && recorded.piece != piece_)) plan_.event_crosses[event] = true;
  add(Part::wait_event, stream, event).outside = outside;
}

void StepLayout::end_piece() {
  if (!choices_.outside) return;
  add(Part::end_piece);
  ++piece_;
}

size_t StepLayout::group(std::vector<size_t> tables, bool merged) {
  plan_.groups.push_back({std::move(tables), merged});
  return plan_.groups.size() - 1;
}

bool StepLayout::is_apart(size_t table) const { return std::ranges::count(choices_.element_tables, table) > 0; }

void StepLayout::add_tables(Part part) {
  const bool merges = facts_.alone()
                          ? choices_.tables_merged
                          : choices_.tables_merged && std::ranges::none_of(facts_.tables, &TableFacts::on_disk);
  if (!choices_.element_tables.empty()) {
    const auto add_main = [&] { add_exchange(part, kExchange, group(main_, true)); };
    if (facts_.alone()) add_main();
    add_exchange(part, kElements, group(choices_.element_tables, true));
    if (!facts_.alone()) add_main();
  } else if (merges) {
    add_exchange(part, kExchange, group(all_, true));
  } else {
    for (const size_t e : all_) {
      if (part == Part::update_rows && summed_[e]) wait(kExchange, *summed_[e], choices_.outside);
      add_exchange(part, kExchange, group({e}, false));
    }
  }
}

StepPlan plan_step(const StepFacts& facts) {
  StepPlan plan{.facts = facts, .choices = {}, .rules = {}, .calls = {}, .groups = {}, .event_crosses = {}};
  for (const StepRule* rule : step_rules())
    if (rule->decide(plan.facts, plan.choices)) plan.rules.push_back(rule);
  StepLayout(plan).lay_out();
  return plan;
}

std::vector<TableGroup> evaluation_groups(const StepFacts& facts) {
  std::vector<TableGroup> groups;
  std::vector<size_t> merged;
  for (size_t e = 0; e < facts.tables.size(); ++e) {
    // A table with rows on disk is not merged with others, because the host reads results of its kernels during
    // evaluation.
    if (facts.alone() && !facts.tables[e].on_disk)
      merged.push_back(e);
    else
      groups.push_back({{e}, false});  // in table order, because every rank runs collectives in the same order
  }
  if (!merged.empty()) groups.push_back({merged, true});
  return groups;
}

std::vector<TableGroup> preparation_groups(const StepFacts& facts) {
  const auto merges = [](const TableFacts& table) { return table.exchanges_by_kernels && !table.on_disk; };
  if (facts.alone() || !std::ranges::all_of(facts.tables, merges)) return evaluation_groups(facts);
  std::vector<size_t> all;
  for (size_t e = 0; e < facts.tables.size(); ++e) all.push_back(e);
  return all.empty() ? std::vector<TableGroup>() : std::vector{TableGroup{all, true}};
}

}  // namespace hctr
