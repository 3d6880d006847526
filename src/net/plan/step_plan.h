// The plan of a training step: the queued calls in order, with their streams and the events that they wait for.
// plan_step() makes the plan once, when a model is bound. Replica::train_step() queues the calls in order.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "net/plan/step_choices.h"

namespace hctr {

/// The streams of a step. On the CPU, all are the caller's stream. All-reduces of GradientExchange have their own
/// stream.
enum class StepStream {
  compute,
  exchange,  ///< for tables: exchanges between ranks, gradient sums, row updates
  elements,  ///< like `exchange`, for StepChoices::element_tables
  weights,   ///< wgrads
  layers,    ///< for layers that run concurrently with others
  signal     ///< for the prefetch point only
};
inline constexpr size_t kStepStreams = 6;
const char* name_of(StepStream);

/// The work of a call. The `index` of a call is a layer, a table, a group of tables or an event.
enum class StepPart {
  record_event,
  wait_event,
  end_piece,  ///< ends a recorded piece; later calls wait until all earlier calls outside of the recording are queued
  begin_scale,
  copy_weights,  ///< writes transposed copies for the layers [index, end)
  // Calls of several tables; `index` is the group of tables:
  look_up,
  send_vectors,
  expect_gradients,
  receive_gradients,
  update_rows,
  // Calls of one table; `index` is the table:
  fill_vectors,
  combine_vectors,
  sum_contributions,
  sum_replicated,  ///< runs on the stream of all-reduces, and records the event `end` on that stream
  send_gradients,
  // Calls of one layer; `index` is the layer:
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
  report_loss,     ///< calls StepCallbacks::loss_known
  prefetch_point,  ///< calls StepCallbacks::prefetch_point
  grouped_all,     ///< runs all launches deferred to the end of the backward pass: bias gradients and GEMMs
  grouped_sums,
  grouped_products,
  wait_all_reduces,
  search_operands,  ///< checks the operands of deferred GEMMs for inf/NaN, and so decides whether the step is skipped
  search_gradients,
  update_fp8_scales,
  update_weights
};

const char* name_of(StepPart);

struct PlannedCall {
  StepPart part;
  StepStream stream = StepStream::compute;
  size_t index = 0, end = 0;
  bool outside = false;     ///< whether the call is outside of the recording
  bool grouped = false;     ///< for StepPart::weight_gradients: whether the GEMM is deferred to grouped_products
  int multiprocessors = 0;  ///< maximum number of multiprocessors for the call; 0: all
};

/// The tables of a call. `merged`: if several of these tables need the same kernel, one launch runs it for all of them.
struct TableGroup {
  std::vector<size_t> tables;
  bool merged = false;
};

struct StepPlan {
  StepFacts facts;
  StepChoices choices;
  std::vector<const StepRule*> rules;  ///< the rules that apply to the step
  std::vector<PlannedCall> calls;
  std::vector<TableGroup> groups;
  /// [event] whether the event connects two recorded pieces, or the recording and a call outside of it
  std::vector<bool> event_crosses;
  bool has_prefetch_point = false;  ///< whether one of the calls is the prefetch point
};

StepPlan plan_step(const StepFacts&);

/// The table groups for evaluations and for the preparation of a batch, where all tables run on one stream.
std::vector<TableGroup> evaluation_groups(const StepFacts&);
std::vector<TableGroup> preparation_groups(const StepFacts&);

/// The plan as text: the rules that apply, then calls_table().
std::string step_table(const StepPlan&);
/// A line for each call, in queue order, with its stream and the events that it waits for.
std::string calls_table(const StepPlan&);

}  // namespace hctr
