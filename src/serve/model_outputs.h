// The outputs that requests may select by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "infer/served_model.h"
#include "serve/request_samples.h"

namespace hctr::serve {

/// An output consists of adjacent elements in each row of a result of the model.
struct ServedOutput {
  enum class Kind { scores, logits, vectors };
  std::string name;
  Kind kind = Kind::scores;
  size_t result = 0;  ///< index of the result, in ServedModel::outputs() for scores, else in ServedModel::internals()
  int64_t first = 0, elements = 0, row_elements = 0;  ///< row_elements: elements in a row of the result
  std::vector<int64_t> shape{};                       ///< -1: the number of samples

  bool whole_rows() const { return elements == row_elements; }
};

/// The names of outputs:
///   <loss>              probabilities, [-1, labels]
///   <loss>.logits       logits, [-1, columns]
///   <loss>.<label>, <loss>.<label>.logits    one label of a loss with several labels, [-1, 1]
///   <embedding>         vectors of all slots, [-1, slots, dim]; without pooling [-1, keys, dim]
///   <embedding>.<slot>  vectors of one slot, [-1, dim]; without pooling [-1, keys of the slot, dim]
///   OUTPUT0             the first loss, as in NVIDIA's backends
/// Labels and slots have the names of their columns; otherwise, and if a name is taken, their numbers. Immutable after
/// offer_only(), and then thread-safe.
class ModelOutputs {
 public:
  explicit ModelOutputs(const ServedModel&);
  ModelOutputs(const ModelOutputs&) = delete;
  ModelOutputs& operator=(const ModelOutputs&) = delete;

  /// Restricts the outputs to those that the "output" entries of a config name, in that order. `batches`: the shapes of
  /// the config lack the number of samples. Fills shapes that the config omits. Errors: Error(config) for unknown
  /// names, and datatypes and shapes that differ from the model's.
  void offer_only(std::vector<TensorDescription>& stated, bool batches, const std::string& where);

  /// The outputs for requests that select none: the outputs that the config names. If the config names none, the
  /// probabilities of each loss.
  const std::vector<const ServedOutput*>& defaults() const { return defaults_; }
  /// The outputs in metadata: the outputs that the config names. If the config names none, all probabilities and
  /// logits.
  std::vector<const ServedOutput*> listed() const;
  /// The names of the outputs that are embedding vectors.
  std::vector<std::string> vectors() const;
  /// Errors: Refusal for an unknown name.
  const ServedOutput& find(const std::string& name, const std::string& model) const;

 private:
  void add(ServedOutput, const std::string& other_name = {});
  void add_loss(const ServedModel&, size_t loss, const std::vector<std::string>& labels);
  void add_embedding(const ServedModel&, size_t internal);

  std::vector<ServedOutput> all_;
  std::vector<const ServedOutput*> offered_, defaults_;  // pointers to elements of all_
  bool stated_ = false;                                  // whether a config names the outputs
};

}  // namespace hctr::serve
