#include "train/not_finite_search.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/expect.h"
#include "core/device/copy_bytes.h"

namespace hctr {
namespace {

constexpr int64_t kPieceElements = int64_t{1} << 24;  // elements per copy to the host
constexpr int64_t kShownKeys = 4;

struct Scan {
  int64_t count = 0, samples = 0;  // count: elements that are not finite; samples: samples with such an element
  int64_t row = 0, column = 0;     // position of the first such element
  float value = 0;                 // value of the first such element
  float largest = 0;               // largest magnitude of the finite elements
};

/// Returns whether all elements of the row are finite.
bool scan_row(const float* values, int64_t width, int64_t row, Scan& scan) {
  bool finite = true;
  for (int64_t c = 0; c < width; ++c) {
    if (std::isfinite(values[c])) {
      scan.largest = std::max(scan.largest, std::abs(values[c]));
      continue;
    }
    if (scan.count++ == 0) {
      scan.row = row;
      scan.column = c;
      scan.value = values[c];
    }
    finite = false;
  }
  return finite;
}

std::string text_of(float value) { return std::isnan(value) ? "nan" : cat(value); }  // omits the sign of a NaN

template <class T>
std::vector<float> floats(StreamRef stream, const Tensor& tensor) {
  const std::vector<T> values = to_host<T>(stream, tensor);
  std::vector<float> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = static_cast<float>(values[i]);
  return result;
}

std::vector<float> floats(StreamRef stream, const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::f32:
      return floats<float>(stream, tensor);
    case DType::f16:
      return floats<Half>(stream, tensor);
    case DType::bf16:
      return floats<BFloat16>(stream, tensor);
    default:
      return {};  // integers are always finite
  }
}

/// Scans the rows [begin, end). `of_sample`: number of rows per sample.
Scan scan(StreamRef stream, const Tensor& tensor, int64_t begin, int64_t end, int64_t of_sample = 1) {
  Scan found;
  int64_t last_sample = -1;  // the last sample with an element that is not finite
  const int64_t width = tensor.row_elements();
  const int64_t step = std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, width));
  for (int64_t first = begin; first < end && width > 0; first += step) {
    const int64_t last = std::min(first + step, end);
    const std::vector<float> values = floats(stream, tensor.row_range(first, last));
    if (values.empty()) return found;
    for (int64_t r = first; r < last; ++r)
      if (!scan_row(values.data() + (r - first) * width, width, r, found) && r / of_sample != last_sample) {
        last_sample = r / of_sample;
        ++found.samples;
      }
  }
  return found;
}

std::string limit_of(DType dtype) {
  if (dtype == DType::f32) return "";
  return cat("; ", name_of(dtype), " represents numbers up to ", dtype == DType::f16 ? "65504" : "3.4e38");
}

class Search {
 public:
  explicit Search(const FinishedStep& step) : step_(step), state_(*step.batch.state), seen_(step.graph.edges.size()) {}

  std::optional<NotFinite> run() {
    const size_t nodes = step_.graph.nodes.size();
    for (size_t n = 0; n < nodes && !found_; ++n) forward(n);
    if (!found_) {
      if (const Scan loss = look(step_.loss); loss.count > 0)
        report(cat("the sum of all losses and penalties is ", text_of(loss.value)),
               " although each loss is finite: an overflow");
    }
    for (size_t n = nodes; n-- > 0 && !found_;) backward(n);
    return found_;
  }

 private:
  std::string layer(const Node& node) const {
    return cat("layer '", node.entry->tops[0], "' (", node.entry->type->name(), ")");
  }
  std::string weight(const Node& node, size_t w) const {
    return cat("'", node.entry->tops[0], "/", node.spec.weights[w].name, "'");
  }

  /// The number of the tensor's rows per sample; 0 if its rows do not belong to samples.
  int64_t rows_of_sample(const Tensor& tensor) const {
    const int64_t samples = state_.samples;
    return samples > 0 && tensor.rows() % samples == 0 ? tensor.rows() / samples : 0;
  }
  Scan look(const Tensor& tensor) {
    ++order_;
    return scan(step_.stream, tensor, 0, tensor.rows());
  }
  /// Scans only the rows that belong to samples.
  Scan look_at_samples(const Tensor& tensor) {
    const int64_t of_sample = rows_of_sample(tensor);
    if (of_sample == 0) return look(tensor);
    ++order_;
    return scan(step_.stream, tensor, 0, of_sample * state_.valid_samples, of_sample);
  }
  void report(std::string what, std::string why, std::optional<int64_t> row = std::nullopt) {
    found_ = NotFinite{order_, row, 0, std::move(what), std::move(why)};
  }
  void report_samples(const Tensor& tensor, const Scan& scan, std::string what, std::string why) {
    const int64_t of_sample = rows_of_sample(tensor);
    if (of_sample == 0) return report(std::move(what), std::move(why));
    report(std::move(what), std::move(why), scan.row / of_sample);
    found_->samples = scan.samples;
  }

  void forward(size_t n) {
    const Node& node = step_.graph.nodes[n];
    const LayerIo& io = step_.binding.calls[n];
    for (size_t i = 0; i < node.in.size() && !found_; ++i) source(node.in[i], io.in[i]);
    for (size_t w = 0; w < io.weights.size() && !found_; ++w)
      if (const Scan bad = look(io.weights[w]); bad.count > 0)
        report(cat("weights ", weight(node, w), " of ", layer(node), " hold ", text_of(bad.value), " at row ", bad.row,
                   ", column ", bad.column, " (", bad.count, " of ", io.weights[w].elements(), " are not finite)"),
               spoiled(io.weights[w].dtype()));
    for (size_t o = 0; o < io.out.size() && !found_; ++o)
      if (const Scan bad = look_at_samples(io.out[o]); bad.count > 0)
        report_samples(io.out[o], bad, cat(layer(node), " gives ", text_of(bad.value)), overflow(io, io.out[o], bad));
  }

  /// Scans a tensor that no layer computes. Call before the tensor's first reader; later calls do nothing.
  void source(TensorId id, const Tensor& tensor) {
    if (step_.graph.edges[id].producer || seen_[id]) return;
    seen_[id] = true;
    const Scan bad = look_at_samples(tensor);
    if (bad.count == 0) return;
    const auto& embeddings = step_.graph.embeddings;
    const auto embedding = std::find(embeddings.begin(), embeddings.end(), id);
    if (embedding != embeddings.end()) return vectors(static_cast<size_t>(embedding - embeddings.begin()), tensor, bad);
    if (id != step_.graph.dense)
      return report_samples(tensor, bad, cat("'", step_.graph.edges[id].name, "' is ", text_of(bad.value)),
                            " in the data");
    const float value = step_.batch.dense[bad.row * tensor.row_elements() + bad.column];
    report_samples(tensor, bad, cat("dense value ", bad.column, " is ", text_of(value)),
                   cat(" in the data", std::isfinite(value) ? limit_of(tensor.dtype()) : ""));
  }

  void vectors(size_t e, const Tensor& tensor, const Scan& bad) {
    const Edge& edge = step_.graph.edges[step_.graph.embeddings[e]];
    const size_t input = step_.graph.embedding_inputs[e];
    const int64_t slots = step_.config.data.sparse[input].slot_num, columns = tensor.rank() == 3 ? tensor.dim(1) : 1;
    const int64_t slot = bad.column / (tensor.row_elements() / columns);
    std::string of = cat("the vector of slot ", slot);
    if (columns != slots) {
      of = cat("vector ", slot);  // not pooled, so the table has one vector per key
    } else {
      const BatchView::Table& table = step_.batch.tables[input];
      const int64_t bag = slot * state_.samples + bad.row;
      const int64_t begin = table.offset(bag), end = table.offset(bag + 1);
      std::string keys;
      for (int64_t k = begin; k < end && k < begin + kShownKeys; ++k) keys += cat(k > begin ? ", " : "", table.key(k));
      if (end - begin > kShownKeys) keys += ", ...";
      if (end - begin == 1) of = cat("the row of key ", keys, " in slot ", slot);
      if (end - begin > 1) of += cat(" (the rows of keys ", keys, ")");
    }
    report_samples(tensor, bad, cat(of, " of embedding '", edge.name, "' holds ", text_of(bad.value)),
                   spoiled(tensor.dtype()));
  }

  std::string spoiled(DType dtype) const {
    return cat(step_.updates > 0 ? cat(": caused by an update at or before iteration ", step_.updates) : "",
               limit_of(dtype));
  }

  /// Explains why a layer's output is not finite while its inputs and weights are finite.
  std::string overflow(const LayerIo& io, const Tensor& out, const Scan& bad) const {
    float inputs = 0, weights = 0;
    const int64_t of_sample = rows_of_sample(out), sample = of_sample > 0 ? bad.row / of_sample : 0;
    for (const Tensor& in : io.in) {
      const int64_t rows = rows_of_sample(in);
      const Scan scanned = rows > 0 && of_sample > 0 ? scan(step_.stream, in, sample * rows, (sample + 1) * rows)
                                                     : scan(step_.stream, in, 0, in.rows());
      inputs = std::max(inputs, scanned.largest);
    }
    for (const Tensor& weight : io.weights)
      weights = std::max(weights, scan(step_.stream, weight, 0, weight.rows()).largest);
    return cat(": an overflow, with inputs up to ", inputs,
               io.weights.empty() ? "" : cat(" and weights up to ", weights), limit_of(out.dtype()));
  }

  void backward(size_t n) {
    const Node& node = step_.graph.nodes[n];
    const LayerIo& io = step_.binding.calls[n];
    for (size_t i = 0; i < io.d_in.size() && !found_; ++i) {
      if (!io.d_in[i]) continue;
      if (const Scan bad = look_at_samples(*io.d_in[i]); bad.count > 0)
        report_samples(*io.d_in[i], bad,
                       cat("the gradient of '", step_.graph.edges[node.in[i]].name, "' that ", layer(node),
                           " computes is ", text_of(bad.value)),
                       limit_of(io.d_in[i]->dtype()));
    }
    for (size_t w = 0; w < io.d_weights.size() && !found_; ++w)
      if (const Scan bad = look(io.d_weights[w]); bad.count > 0)
        report(cat("the gradient of weights ", weight(node, w), " of ", layer(node), " is ", text_of(bad.value)), "");
  }

  const FinishedStep& step_;
  const StepState& state_;
  std::vector<bool> seen_;  // [edge]
  int64_t order_ = 0;
  std::optional<NotFinite> found_;
};

}  // namespace

std::optional<NotFinite> find_not_finite(const FinishedStep& step) { return Search(step).run(); }

}  // namespace hctr
