#include "use/scored_inputs.h"

#include <algorithm>

#include "core/base/expect.h"
#include "export/onnx_model.h"
#include "infer/prediction_source.h"
#include "score/scorer.h"

namespace hctr {
namespace {

/// Collects the keys of one sparse input, [rows, slots, width]. Bags shorter than `width` are padded with the graph's
/// no_key. The width is the graph's fixed width or, without one, the length of the longest bag so far.
class InputKeys {
 public:
  InputKeys(const SparseInput& input, OnnxKeys form, int64_t no_key)
      : input_(input), form_(form), width_(form.fixed ? form.most : 1), no_key_(no_key) {}

  void append(const BatchView::Table& table, int64_t samples, int64_t rows) {
    const auto bag = [&](int64_t b, int64_t s) { return s * samples + b; };
    const auto length = [&](int64_t at) { return table.offset(at + 1) - table.offset(at); };
    int64_t longest = width_;
    for (int64_t s = 0; s < input_.slot_num; ++s)
      for (int64_t b = 0; b < rows; ++b) longest = std::max<int64_t>(longest, length(bag(b, s)));
    widen(longest);
    for (int64_t b = 0; b < rows; ++b)
      for (int64_t s = 0; s < input_.slot_num; ++s) {
        const int64_t at = bag(b, s);
        for (int64_t k = table.offset(at); k < table.offset(at + 1); ++k) {
          if (table.key(k) == no_key_)
            throw Error(Kind::data, cat("a row of --rows has the key ", no_key_, " in '", input_.top,
                                        "', which the exported graph reserves for missing keys"));
          keys_.push_back(table.key(k));
        }
        keys_.insert(keys_.end(), static_cast<size_t>(width_ - length(at)), no_key_);
      }
  }

  StoredArray array(int64_t rows) {
    std::vector<int64_t> dims = {rows, input_.slot_num};
    if (form_.most > 1) dims.push_back(width_);
    return stored(input_.top, std::move(dims), std::move(keys_));
  }

 private:
  void widen(int64_t width) {
    if (width == width_) return;
    std::vector<int64_t> wider;
    for (size_t begin = 0; begin < keys_.size(); begin += static_cast<size_t>(width_)) {
      const auto from = keys_.begin() + static_cast<std::ptrdiff_t>(begin);
      wider.insert(wider.end(), from, from + width_);
      wider.insert(wider.end(), static_cast<size_t>(width - width_), no_key_);
    }
    keys_ = std::move(wider);
    width_ = width;
  }

  const SparseInput& input_;
  OnnxKeys form_;
  int64_t width_;
  int64_t no_key_;
  std::vector<int64_t> keys_;
};

}  // namespace

std::optional<ScoredInputs> score_inputs(ModelOnRank& on, int64_t most, int64_t no_key, const std::atomic<int>* stop) {
  const DataSection& data = on.config().data;
  const Source source = prediction_source(on.config());
  const int64_t batch = on.config().solver.eval_batch();
  Scorer scorer(on.config(), on.comm(), on.replica(), on.layout,
                {.source = source, .batches = (most + batch - 1) / batch, .losses = false, .check_labels = false},
                on.log);
  std::vector<InputKeys> inputs;
  for (const SparseInput& input : data.sparse) inputs.emplace_back(input, onnx_keys(on.config(), input), no_key);
  const std::vector<std::string> tasks = on.replica().tasks();
  std::vector<std::vector<float>> scores(tasks.size());
  std::vector<int64_t> widths(tasks.size(), 0);
  std::vector<float> dense;
  ScoredInputs result;
  const bool whole = scorer.run(on.saved().iteration, stop, [&](ScoredBatch& scored) {
    const int64_t rows = std::min(scored.rows, most - result.rows);
    const BatchView& view = *scored.inputs;
    dense.insert(dense.end(), view.dense, view.dense + rows * data.dense.dense_dim);
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].append(view.tables[i], on.layout.shape.samples, rows);
    for (size_t t = 0; t < tasks.size(); ++t) {
      widths[t] = scored.predictions[t].size(1);
      for (int64_t r = 0; r < rows; ++r)
        scores[t].insert(scores[t].end(), scored.predictions[t].row(r), scored.predictions[t].row(r) + widths[t]);
    }
    result.rows += rows;
  });
  if (!whole) return std::nullopt;
  if (data.dense.dense_dim > 0)
    result.arrays.push_back(stored(data.dense.top, {result.rows, data.dense.dense_dim}, std::move(dense)));
  for (InputKeys& input : inputs) result.arrays.push_back(input.array(result.rows));
  for (size_t t = 0; t < tasks.size(); ++t)
    result.arrays.push_back(
        stored(tasks.size() == 1 ? "score" : "score_" + tasks[t], {result.rows, widths[t]}, std::move(scores[t])));
  result.skipped_records = scorer.reader().skipped_records();
  return result;
}

}  // namespace hctr
