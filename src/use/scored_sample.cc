#include "use/scored_sample.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "core/device/copy_bytes.h"
#include "metrics/auc.h"
#include "score/batch_reading.h"
#include "score/batch_ring.h"
#include "score/key_matches.h"
#include "use/hottest_keys.h"
#include "use/model_use.h"
#include "use/permuted_batch.h"

namespace hctr {
namespace {

constexpr int64_t kLeastBatch = 1024;  // minimum batch size, because features are permuted within a batch

double auc_of(const ScoredLabel& label, const std::vector<float>& scores) {
  std::vector<double> known;
  const auto positive = std::make_unique<bool[]>(scores.size());
  for (size_t r = 0; r < scores.size(); ++r)
    if (label.labels[r] >= -0.5f) {
      positive[known.size()] = label.labels[r] > 0.5f;
      known.push_back(scores[r]);
    }
  return area_under_roc(known, {positive.get(), known.size()});
}

/// Reads batches into its own buffers and scores them, unchanged and with permuted features.
class SampleScorer {
 public:
  SampleScorer(ModelOnRank& on, const SampleOptions& options)
      : on_(on),
        options_(options),
        read_(on.layout, 2, Device{}),
        scored_(on.layout, 1, on.model.device()),
        tensors_(batch_tensors(scored_, 0, on.config().data.sparse.size())),
        binding_(on.replica().bind(Phase::evaluate, tensors_)),
        keys_(on.config(), on.saved()),
        matches_(on.config(), on.comm(), on.replica()) {}

  /// Returns false if a stop was requested.
  bool run(ScoredSample& sample) {
    const std::vector<InputFeature> features =
        options_.importance ? features_of(on_.config().data) : std::vector<InputFeature>();
    std::vector<std::vector<float>> permuted(features.size());
    const ReaderOptions reading = reader_options(on_.config(), on_.comm(), on_.config().solver.eval_batch(), false);
    reader_ = std::make_unique<Reader>(on_.config().data, evaluation_source(on_.config().data), on_.layout,
                                       read_.host_blocks(), reading, on_.log);
    const auto stopped = [&] { return options_.stop && *options_.stop != 0; };
    for (int64_t batch = 0; sample.rows < options_.rows; ++batch) {
      if (wait_for_batch(*reader_, options_.stop) == Waited::stopped) {
        leave_behind_if_stuck(reader_, read_);
        return false;
      }
      const std::optional<int> buffer = stopped() ? std::nullopt : reader_->next();
      if (!buffer) break;
      std::byte* block = read_.device_block(*buffer);
      const int64_t rows = std::min<int64_t>(read_.state(*buffer).valid_samples, options_.rows - sample.rows);
      std::copy_n(block, read_.used_bytes(*buffer), scored_host());
      keys_.add(on_.layout, block, rows);
      matches_.add(BatchView(on_.layout, block), rows);
      score();
      add(rows, sample);
      const std::vector<int64_t> order = random_order(read_.state(*buffer).valid_samples, static_cast<uint64_t>(batch));
      for (size_t f = 0; f < features.size() && !stopped(); ++f) {
        permute_feature(on_.layout, block, features[f], order, scored_host());
        score();
        const std::vector<float> column = first_column(rows);
        permuted[f].insert(permuted[f].end(), column.begin(), column.end());
      }
      sample.rows += rows;
      reader_->release(*buffer);
    }
    sample.skipped_records = reader_->skipped_records();
    if (stopped()) return false;
    sample.hottest = keys_.hottest();
    sample.matches = matches_.count();
    if (sample.labels.empty()) return true;
    sample.auc = auc_of(sample.labels[0], sample.labels[0].scores);
    for (size_t f = 0; f < features.size(); ++f)
      sample.importance.push_back({features[f].name, auc_of(sample.labels[0], permuted[f]),
                                   mean_distance(sample.labels[0].scores, permuted[f])});
    return true;
  }

 private:
  std::byte* scored_host() { return scored_.host_blocks()[0]; }

  void score() {
    scored_.state(0).step = on_.saved().iteration;
    const StreamRef stream = on_.runtime().compute_stream();
    scored_.upload(stream, 0);
    Context ctx(on_.runtime(), stream, tensors_.state);
    scored_.unpack(ctx, 0);
    on_.replica().evaluate(ctx, tensors_, binding_);
    stream.synchronize();
  }

  std::vector<float> first_column(int64_t rows) const {
    const Tensor prediction = on_.replica().predictions(Phase::evaluate)[0];
    const auto values = to_host<float>(on_.runtime().compute_stream(), prediction);
    std::vector<float> column;
    for (int64_t r = 0; r < rows; ++r) column.push_back(values[static_cast<size_t>(r * prediction.row_elements())]);
    return column;
  }

  void add(int64_t rows, ScoredSample& sample) const {
    const std::vector<Tensor> predictions = on_.replica().predictions(Phase::evaluate),
                              labels = on_.replica().labels(Phase::evaluate, binding_);
    const std::vector<std::string> tasks = on_.replica().tasks();
    const bool fresh = sample.labels.empty();
    size_t at = 0;
    for (size_t t = 0; t < predictions.size(); ++t) {
      const auto scores = to_host<float>(on_.runtime().compute_stream(), predictions[t]);
      const auto truth = to_host<float>(on_.runtime().compute_stream(), labels[t]);
      const int64_t columns = std::min(predictions[t].row_elements(), labels[t].row_elements());
      for (int64_t c = 0; c < columns; ++c, ++at) {
        if (fresh) sample.labels.push_back({columns > 1 ? cat(tasks[t], "[", c, "]") : tasks[t], {}, {}});
        for (int64_t r = 0; r < rows; ++r) {
          sample.labels[at].scores.push_back(scores[static_cast<size_t>(r * predictions[t].row_elements() + c)]);
          sample.labels[at].labels.push_back(truth[static_cast<size_t>(r * labels[t].row_elements() + c)]);
        }
      }
    }
  }

  static double mean_distance(const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    return a.empty() ? 0 : sum / static_cast<double>(a.size());
  }

  ModelOnRank& on_;
  const SampleOptions& options_;
  BatchRing read_, scored_;
  BatchTensors tensors_;
  Network::Binding binding_;
  KeyCounter keys_;
  KeyMatches matches_;
  std::unique_ptr<Reader> reader_;  // destroyed before its buffers
};

}  // namespace

ScoredSample score_sample(const SampleOptions& options) {
  ScoredSample sample;
  const auto one_rank = [&](Config& config) {
    config.solver.gpu = {};
    if (!options.data.empty()) choose_data(options, config);
    if (options.importance) config.solver.batchsize_eval = std::max(kLeastBatch, config.solver.eval_batch());
  };
  const auto score_rank = [&](ModelOnRank& on) {
    const auto start = std::chrono::steady_clock::now();
    SampleScorer scorer(on, options);
    sample.interrupted = !scorer.run(sample);
    describe_use(on, start, sample);
  };
  sample.rank = use_model(options, "scoring", one_rank, score_rank);
  return sample;
}

}  // namespace hctr
