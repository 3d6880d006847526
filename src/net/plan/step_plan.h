// The plan of a training step: the queued calls, their order, their streams, and the events that they wait for.
// plan_step() makes it when a model is bound; it does not change. Replica::train_step() queues its calls in order.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "net/plan/step_choices.h"

namespace hctr {

/// Streams of a step. On the CPU all are the caller's. The all-reduces of GradientExchange have a separate one.
enum class StepStream {
  compute,
  exchange,  ///< of tables: exchanges between ranks, gradient sums, row updates
  elements,  ///< the same, for StepChoices::element_tables
  weights,   ///< wgrads
  layers,    ///< layers that run concurrently with others
  signal     ///< only the prefetch point
};
inline constexpr size_t kStepStreams = 6;
const char* name_of(StepStream);

/// The work of a call. `index` of a call is a layer, a table, a group of tables or an event.
enum class StepPart {
  record_event,
  wait_event,
  end_piece,  ///< ends a recorded piece: later calls are queued after the calls outside of it so far
  begin_scale,
  copy_weights,  ///< transposed copies, for the layers [index, end)
  // Calls of tables, by group:
  look_up,
  send_vectors,
  expect_gradients,
  receive_gradients,
  update_rows,
  // By table:
  fill_vectors,
  combine_vectors,
  sum_contributions,
  sum_replicated,  ///< on the stream of all-reduces; records the event `end` there
  send_gradients,
  // By layer:
  forward,
  backward,
  weight_gradients,
  penalty_gradients,
  all_reduce_weights,
  // Calls of the model:
  bag_lengths,
  convert_dense,
  sum_losses,
  penalty,
  all_reduce_loss,
  report_loss,     ///< StepCallbacks::loss_known
  prefetch_point,  ///< StepCallbacks::prefetch_point
  grouped_all,     ///< launches deferred to the end of the backward pass: bias gradients and GEMMs
  grouped_sums,
  grouped_products,
  wait_all_reduces,
  search_operands,  ///< checks grouped operands for inf/NaN; then the skip decision is known
  search_gradients,
  update_fp8_scales,
  update_weights
};

const char* name_of(StepPart);

struct PlannedCall {
  StepPart part;
  StepStream stream = StepStream::compute;
  size_t index = 0, end = 0;
  bool outside = false;     ///< outside of the recording
  bool grouped = false;     ///< weight_gradients: its GEMM is deferred to grouped_products
  int multiprocessors = 0;  ///< maximum number of multiprocessors; 0: all
};

/// Tables that a call is for. `merged`: their kernels of one kind are launched as one.
struct TableGroup {
  std::vector<size_t> tables;
  bool merged = false;
};

struct StepPlan {
  StepFacts facts;
  StepChoices choices;
  std::vector<const StepRule*> rules;  ///< that apply
  std::vector<PlannedCall> calls;
  std::vector<TableGroup> groups;
  std::vector<bool> event_crosses;  ///< [event] between the recording and calls outside of it, or between two pieces
  bool has_prefetch_point = false;  ///< whether one of the calls is the prefetch point
};

StepPlan plan_step(const StepFacts&);

/// The groups of calls in which all tables run on one stream: evaluations, and the preparation of a batch.
std::vector<TableGroup> evaluation_groups(const StepFacts&);
std::vector<TableGroup> preparation_groups(const StepFacts&);

/// The plan as text: the rules that apply, then calls_table().
std::string step_table(const StepPlan&);
/// A line for each call, in queue order, with its stream and the events that it waits for.
std::string calls_table(const StepPlan&);

}  // namespace hctr
