// Detects a run that has trained nothing. Such a run saves no model and fails with the reason.
#include <algorithm>

#include "train/run.h"

namespace hctr {
namespace {

std::string counted_text(int64_t count, const char* one, const char* several) {
  return cat(count, " ", count == 1 ? one : several);
}

}  // namespace

std::vector<CountedSamples::Loss> Run::uncounted_losses() {
  std::vector<CountedSamples::Loss> left;
  if (!now_.counted_losses) return left;
  for (const CountedSamples::Loss& mine : pipeline_->counted().losses()) {
    std::vector<std::string>& known = *now_.counted_losses;
    if (std::find(known.begin(), known.end(), mine.top) != known.end()) continue;
    const CountedSamples::Loss all = over_all_ranks(mine, comm_);
    if (all.counted)
      known.push_back(mine.top);
    else
      left.push_back(all);
  }
  return left;
}

bool Run::has_trained() {
  trained_something_ = trained_something_ || why_untrained().empty();
  return trained_something_;
}

std::string Run::why_untrained() {
  if (now_.iterations == 0) return why_no_step();
  const auto scale = model_->loss_scale();
  if (scale && scale->skipped >= now_.iterations)
    return cat(now_.iterations == 1 ? "the only step was" : cat("all ", now_.iterations, " steps were"),
               " skipped, because gradients were infinite or NaN");
  const std::vector<CountedSamples::Loss> left = uncounted_losses();
  if (left.empty() || left.size() < pipeline_->counted().losses().size()) return "";
  std::string why = cat("none of ", counted_text(now_.samples, "sample", "samples"), " counts: ");
  for (const CountedSamples::Loss& loss : left)
    why += cat(&loss == &left.front() ? "" : "; ", left.size() > 1 ? cat("of loss '", loss.top, "' ") : "",
               why_none_counts(loss, config_.data.sample_weight.column));
  return why;
}

std::string Run::why_no_step() const {
  if (stopping_) return "the run was stopped before its first step";
  if (feed_) return feed_->size() == 0 ? "no file has arrived" : "the files so far contain no complete batch";
  const int64_t left_over = pipeline_->rows_left_over(), rows = left_over > 0 ? left_over : pipeline_->samples_in_set(),
                batch = config_.solver.batchsize;
  if (config_.solver.compatibility.drop_partial_batches && rows < batch)
    return cat("the set has ", counted_text(rows, "sample", "samples"),
               config_.data.negative_sampling < 1 ? " after \"negative_sampling\"" : "", ", fewer than \"batchsize\" ",
               batch, ": no batch is full, and \"drop_partial_batches\" drops the last one");
  return "the set has no batch";
}

void Run::expect_trained() {
  if (has_trained()) return;
  throw Error(Kind::data,
              cat("'", config_.data.source, "': nothing was trained: ", why_untrained(), "; no model is saved"));
}

void Run::warn_of_uncounted_losses() {
  const std::vector<CountedSamples::Loss> left = uncounted_losses();
  // If no loss has a counted sample, expect_trained() throws an error, unless the run was stopped.
  if (left.size() == pipeline_->counted().losses().size()) return;
  for (const CountedSamples::Loss& loss : left)
    log_.warning("no sample contributes to loss '", loss.top,
                 "': ", why_none_counts(loss, config_.data.sample_weight.column),
                 "; the layers of this loss were "
                 "not trained");
}

}  // namespace hctr
