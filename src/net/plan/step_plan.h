// The plan of a training step: what is queued, in which order, on which stream, and what it waits for. It is made when
// a model is bound (plan_step), and does not change. Replica::train_step() queues its calls one after the other.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "net/plan/step_choices.h"

namespace hctr {

/// Streams of a step. On the CPU all are the caller's. The all-reduces of GradientExchange have another one.
enum class StepStream {
  compute,
  exchange,  ///< of tables: exchanges between ranks; sums of gradients and updates of rows
  elements,  ///< the same of StepChoices::element_tables
  weights,   ///< gradients of weights
  layers,    ///< layers concurrent with others
  signal     ///< nothing but the prefetch point
};
inline constexpr size_t kStepStreams = 6;
const char* name_of(StepStream);

/// What a call does. `index` of a call is a layer, a table, a group of tables or an event.
enum class StepPart {
  record_event,
  wait_event,
  end_piece,  ///< of the recording: what follows is queued behind the calls outside of it so far
  begin_scale,
  copy_weights,  ///< transposed copies, for the layers [index, end)
  // Of tables, by group:
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
  // Of the model:
  bag_lengths,
  convert_dense,
  sum_losses,
  penalty,
  all_reduce_loss,
  report_loss,     ///< StepCallbacks::loss_known
  prefetch_point,  ///< StepCallbacks::prefetch_point
  grouped_all,     ///< the launches that wait for the end of the backward pass: sums of biases, and products
  grouped_sums,
  grouped_products,
  wait_all_reduces,
  search_operands,  ///< for infinite numbers, of what is grouped; then it is known whether the step is skipped
  search_gradients,
  update_fp8_scales,
  update_weights
};

const char* name_of(StepPart);

struct PlannedCall {
  StepPart part;
  StepStream stream = StepStream::compute;
  size_t index = 0, end = 0;
  bool outside = false;     ///< of the recording
  bool grouped = false;     ///< weight_gradients: its product waits for grouped_products
  int multiprocessors = 0;  ///< that it may take; 0: all
};

/// Tables that a call is for. `merged`: their kernels of one kind start as one.
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
  std::vector<bool> event_crosses;  ///< [event] between the recording and what is outside of it, or between two pieces
  bool has_prefetch_point = false;  ///< one of the calls is it
};

StepPlan plan_step(const StepFacts&);

/// Of calls in which all tables take part on one stream: of an evaluation, and of the preparation of a batch.
std::vector<TableGroup> evaluation_groups(const StepFacts&);
std::vector<TableGroup> preparation_groups(const StepFacts&);

/// The plan as text: the rules that apply, and calls_table().
std::string step_table(const StepPlan&);
/// A line for each call, in the order in which they are queued, with its stream and what it waits for.
std::string calls_table(const StepPlan&);

}  // namespace hctr
