// Lists the calls of a step in queue order, according to the choices.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "net/plan/step_plan.h"

namespace hctr {

class StepLayout {
 public:
  explicit StepLayout(StepPlan& plan) : plan_(plan), facts_(plan.facts), choices_(plan.choices) {}
  /// Adds all calls of the step to the plan.
  void lay_out();

 private:
  using Part = StepPart;
  using On = StepStream;
  static constexpr On kCompute = On::compute, kExchange = On::exchange, kElements = On::elements;

  // The following functions add calls to the plan.
  PlannedCall& add(Part, On = kCompute, size_t index = 0);
  // adds a call that is recorded only if exchanges are recorded
  PlannedCall& add_exchange(Part, On = kExchange, size_t index = 0);
  size_t record(On, bool outside = false);
  void wait(On, size_t event, bool outside = false);
  /// Makes `to` wait for all work queued on `from`.
  void order(On from, On to, bool outside = false) { wait(to, record(from, outside), outside); }
  void end_piece();
  size_t group(std::vector<size_t> tables, bool merged);
  /// Adds a call for all tables. Tables in choices_.element_tables run on the elements stream.
  void add_tables(Part);
  bool is_apart(size_t table) const;

  // Defined in step_layout_forward.cc:
  void begin_alone();
  void begin_on_ranks();
  void send_vectors();
  void early_weight_copies();
  void forward();
  void weight_copies();
  void before_forward(size_t node);
  void forward_layer(size_t node);
  void end_forward();

  // Defined in step_layout_backward.cc:
  void backward();
  void backward_layer(size_t node);
  void reduce_embeddings(size_t node);
  void add_wgrads(size_t node);
  void flush_wgrads();
  void start_grouped();
  void flush_apart();
  void finish_wgrads();
  void know_skip_early();
  void update();
  void update_tables();
  void wait_all_reduces() {
    if (!facts_.alone()) add(Part::wait_all_reduces);
  }
  void update_rows(bool may_skip, On decided_on);

  StepPlan& plan_;
  const StepFacts& facts_;
  const StepChoices& choices_;
  std::vector<std::optional<size_t>> summed_;  // [table] the event recorded after the table's sum_replicated
  struct Recorded {
    bool outside;
    size_t piece;
  };
  std::vector<Recorded> recorded_;  // [event] where the event is recorded
  size_t piece_ = 0;
  std::vector<size_t> all_, main_;    // all_: all tables; main_: tables that are not on the elements stream
  std::vector<size_t> vectors_sent_;  // [table] the event after the table's vectors are sent
  size_t loss_known_ = 0;             // the event after report_loss
  std::optional<size_t> skip_known_;  // event after the skip decision; none: the decision follows the last gradient
  // forward_joins_: layers that wait for the layers stream. started_: layers whose backward pass runs on the layers
  // stream.
  std::set<size_t> forward_joins_, started_;
  // Layers whose wgrads are not queued yet.
  struct Waiting {
    size_t node;
    bool grouped;
  };
  std::vector<Waiting> waiting_;
  std::vector<size_t> apart_;  // layers whose wgrads run on the weights stream; it already waits for the operands
  bool holds_ = false, uses_weights_stream_ = false;
  size_t grouped_ = 0;  // number of GEMMs deferred to the end of the backward pass
};

}  // namespace hctr
