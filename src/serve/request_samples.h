// Samples of a request, in any of the forms in which a client may send them, as arrays that a model scores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "formats/data/source.h"
#include "hctr/model.h"
#include "infer/sample_arrays.h"
#include "serve/infer_request.h"

namespace hctr::serve {

/// An input as metadata describe it; -1: any size.
struct TensorDescription {
  std::string name;
  Datatype type;
  std::vector<int64_t> shape;
  bool operator==(const TensorDescription&) const = default;
};

/// A column that the model's config names, for requests with a tensor a column.
struct RequestColumn {
  enum class Use { dense, slot, ignored };
  std::string name;
  Use use;
  bool has_default = false;  ///< the config states a value for what is missing
  bool optional = false;     ///< no layer reads it
};

/// Reads requests for one model. Inputs are found by name. Forms:
///   packed   the dense input [n, columns]; each keys input [n, slots], or its keys one behind the other [keys] and
///            "<name>.counts" [n, slots]
///   columns  a tensor for each column of the data: [n] values, [n, k] lists, or values [any] and "<column>.counts" [n]
///   DES      DES, CATCOLUMN and ROWINDEX, as NVIDIA's backend takes them
/// Any thread.
class RequestSamples {
 public:
  /// The config outlives it.
  RequestSamples(const Config&, std::vector<ModelTensor> inputs);

  /// Inputs of the packed form.
  const std::vector<TensorDescription>& inputs() const { return described_; }
  const std::vector<RequestColumn>& columns() const { return columns_; }
  /// Whether a request's first sizes are its samples.
  bool samples_lead() const { return samples_lead_; }

  /// Errors: Refusal naming the input, the value and what is expected; Error(data) for a value that does not fit its
  /// column.
  SampleArrays read(const InferRequest&) const;

 private:
  enum class Form { packed, columns, backend };
  Form form_of(const InferRequest&) const;
  SampleArrays empty() const;
  SampleArrays read_packed(const InferRequest&) const;
  SampleArrays read_columns(const InferRequest&) const;
  SampleArrays read_backend_form(const InferRequest&) const;
  void read_dense(const NamedTensor&, SampleArrays&) const;
  void read_keys(const NamedTensor&, const NamedTensor* counts, size_t input, SampleArrays&) const;
  /// Refuses a bag with more keys than its slot takes.
  void expect_bags(const SampleArrays&) const;

  Config config_;  // that of the model, but for how its data are read
  Source source_;
  std::vector<ModelTensor> inputs_;
  std::vector<TensorDescription> described_;
  std::vector<RequestColumn> columns_;
  bool samples_lead_ = true;
};

/// Refuses more samples than a request may have: of those whose lists are all empty a short request could have any
/// number.
void expect_few_samples(const NamedTensor&, int64_t samples);

/// Appends the samples of one request to those of others for the same model.
void append_samples(SampleArrays& to, const SampleArrays& from);

}  // namespace hctr::serve
