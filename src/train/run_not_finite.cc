// Finds the cause of a loss that is NaN or infinite.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"
#include "core/base/current_error.h"
#include "score/batch_reading.h"
#include "train/not_finite_search.h"
#include "train/run.h"

namespace hctr {
namespace {

constexpr int64_t kNoRow = -1;

/// The file record of a row of a batch, for messages; empty if the reader cannot tell. `position`: the reader's
/// position before the batch.
std::string record_of_row(const Config& config, const ReaderPosition& position, int64_t row, bool repeat,
                          const std::shared_ptr<FileFeed>& feed) {
  if (config.data.shuffle > 0 || config.data.negative_sampling < 1) return "";
  const BatchLayout layout(batch_shape(config.data, 1));
  const HostBuffer buffer(Device{}, layout.bytes);
  ReaderOptions options = reader_options(config, 1);
  options.repeat = repeat;
  options.from = position;
  options.feed = feed;
  Reader reader(config.data, training_source(config.data), layout, {buffer.data()}, options, Log::silent());
  for (int64_t r = 0; r < row; ++r)
    if (const auto read = reader.next())
      reader.release(*read);
    else
      return "";
  return reader.next() ? reader.place_of_last_row() : "";
}

int64_t number(const Json& json, const char* name) { return *json.find(name)->integer(); }

/// The first finding of all ranks: the first tensor in order and, within this tensor, the first row of the global
/// batch.
std::string first_of(const std::vector<std::string>& of_ranks) {
  std::optional<Json> first;
  int64_t samples = 0;  // samples with a bad element in that tensor, over all ranks
  for (const std::string& text : of_ranks) {
    if (text.empty()) continue;
    const Json json = Json::parse(text, "the search result of a rank");
    const int64_t before = first ? number(json, "order") - number(*first, "order") : -1;
    samples = before < 0 ? number(json, "samples") : before == 0 ? samples + number(json, "samples") : samples;
    if (before < 0 || (before == 0 && number(json, "row") < number(*first, "row"))) first = json;
  }
  if (!first) return "";
  const int64_t others = samples - 1;
  return cat(*first->find("what")->string(), others > 0 ? cat(" and ", others, others == 1 ? " other" : " others") : "",
             *first->find("why")->string());
}

}  // namespace

std::string Run::place_of_not_finite(int64_t step, bool spoiled) {
  try {
    run_on_all_ranks(comm_, [&] { pipeline_->read_again(step); });
    const StepPipeline::Again again = pipeline_->run_again();
    const FinishedStep finished{config_,
                                model_->graph(),
                                again.binding,
                                again.batch,
                                model_->loss(Phase::train),
                                runtime_.compute_stream(),
                                step + spoiled};
    std::string own;
    run_on_all_ranks(comm_, [&] {
      if (const auto found = find_not_finite(finished)) own = report_of(*found, again);
    });
    const std::string text = comm_.broadcast(first_of(comm_.gather(own, 0)), 0);
    if (!text.empty()) return text;
    if (spoiled)
      return "repeating the step gave finite values: either rows have changed since the step, or an optimizer state is "
             "not finite";
    return "repeating the step gave finite values: rows or the loss scale have changed since the step";
  } catch (...) {
    return cat("the layer could not be found: ", current_error().what());
  }
}

std::string Run::report_of(const NotFinite& found, const StepPipeline::Again& again) const {
  std::string what = found.what;
  int64_t row = kNoRow;
  if (found.row) {
    const int64_t in_all = again.batch.state->first_sample + *found.row;
    row = in_all - again.first_sample;
    std::string record;
    try {
      record = record_of_row(config_, again.position, row, config_.solver.max_iter && !feed_, feed_);
    } catch (const Error& error) {
      log_.warning("the record of the sample could not be found: ", error.what());
    }
    const int64_t in_set = pipeline_->samples_estimated() ? 0 : pipeline_->samples_in_set();
    what += cat(" for sample ", row + 1, " of the batch ('", config_.data.source, "': sample ",
                (in_set > 0 ? in_all % in_set : in_all) + 1,
                config_.data.shuffle > 0 ? " in the order of training" : "", record.empty() ? "" : ", " + record, ")");
  }
  return Json(Json::Object{
                  {"order", found.order}, {"row", row}, {"samples", found.samples}, {"what", what}, {"why", found.why}})
      .text();
}

void Run::check_finite(double loss) {
  if (!trained_) return;
  // A bad step that has stopped the model counts even if later losses are finite.
  const bool stopped = !model_->skips_steps() && pipeline_->step_not_finite() >= 0;
  if (comm_.any(pipeline_->spoiled()) || stopped ||
      (!std::isfinite(loss) && pipeline_->steps_not_finite() >= most_not_finite_))
    throw_diverged();
}

void Run::throw_diverged() {
  diverged_ = true;
  // waits for queued steps, so that the failing step is known; all ranks use the step that rank 0 has found
  pipeline_->finish_and_read_loss();
  const bool spoiled = comm_.any(pipeline_->spoiled());
  int64_t step = std::stoll(comm_.broadcast(cat(pipeline_->step_not_finite()), 0));
  if (spoiled) {  // only the owner ranks of the damaged rows know the step
    step = -1;
    const std::string own = pipeline_->spoiled() ? cat(pipeline_->step_not_finite()) : "";
    for (const std::string& text : comm_.gather(own, 0))
      if (!text.empty() && (step < 0 || std::stoll(text) < step)) step = std::stoll(text);
    step = std::stoll(comm_.broadcast(cat(step), 0));
  }
  const std::string place = place_of_not_finite(step, spoiled);
  const Error error(Kind::data,
                    cat(spoiled                        ? "an update made the model infinite or NaN"
                        : pipeline_->loss_not_finite() ? "the loss is not a number"
                                                       : "a gradient is infinite or NaN",
                        " at iteration ", step + 1, ": ", place,
                        ". Training diverged: try a smaller learning_rate, or warmup_steps; if training diverges at "
                        "once, look for infinite or huge dense values in the data; \"on_nan\": \"skip\" skips such "
                        "steps, up to ",
                        kMostSkipped, " consecutive ones. The model is not saved; ", saver_.describe_last()));
  if (comm_.size() == 1) throw error;
  throw CollectiveError(error);
}

}  // namespace hctr
