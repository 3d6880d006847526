// Reads the samples of a request, in any of the supported forms, into arrays that a model can score.
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

/// An input as described by the model's metadata; -1: any size.
struct TensorDescription {
  std::string name;
  Datatype type;
  std::vector<int64_t> shape;
  bool operator==(const TensorDescription&) const = default;
};

/// A column of the model's config, for requests with one tensor per column.
struct RequestColumn {
  enum class Use { dense, slot, ignored };
  std::string name;
  Use use;
  bool has_default = false;  ///< whether the config has a default for missing values
  bool optional = false;     ///< requests may omit the column: no layer reads it
};

/// Reads requests for one model. The names of the inputs decide the form of a request:
///   packed   the dense input [n, columns]; each keys input [n, slots], or its keys concatenated, [keys], and
///            "<name>.counts" [n, slots]
///   columns  a tensor for each column of the data: [n] values, [n, k] lists, or values [any] and "<column>.counts" [n]
///   DES      DES, CATCOLUMN and ROWINDEX, as in NVIDIA's backend
/// Thread-safe.
class RequestSamples {
 public:
  /// The config must outlive this object.
  RequestSamples(const Config&, std::vector<ModelTensor> inputs);

  /// The inputs of the packed form.
  const std::vector<TensorDescription>& inputs() const { return described_; }
  const std::vector<RequestColumn>& columns() const { return columns_; }
  /// Whether the first dimension of every input is the number of samples.
  bool samples_lead() const { return samples_lead_; }

  /// Whether the request has inputs of serve/key_look_up.h instead of samples.
  bool asks_for_vectors(const InferRequest&) const;
  /// Errors: Refusal naming the input, its value and the expected value; Error(data) for a value that is invalid in its
  /// column.
  SampleArrays read(const InferRequest&) const;

 private:
  enum class Form { packed, columns, backend };
  /// How many keys a sample may have.
  struct BagLimits {
    int64_t kept;                   ///< maximum keys that the model keeps of a bag
    std::vector<int64_t> of_slots;  ///< [slot] maximum kept keys of a bag; more are an error
    int64_t of_sample;              ///< maximum kept keys of a sample
    bool allow_one_each;            ///< whether these limits allow one key in each slot
  };
  static BagLimits limits_of(const SparseInput&);
  Form form_of(const InferRequest&) const;
  bool is_packed(std::string_view name) const;
  bool is_column(std::string_view name) const;
  [[noreturn]] void refuse_names(const InferRequest&) const;
  SampleArrays empty() const;
  SampleArrays read_packed(const InferRequest&) const;
  SampleArrays read_columns(const InferRequest&) const;
  SampleArrays read_backend_form(const InferRequest&) const;
  void read_dense(const NamedTensor&, SampleArrays&) const;
  void read_keys(const NamedTensor&, const NamedTensor* counts, size_t input, SampleArrays&) const;
  /// Throws a Refusal for a bag with more keys than its slot accepts.
  void expect_bags(const SampleArrays&) const;

  Config config_;  // the model's config, except for data reading options
  Source source_;
  std::vector<ModelTensor> inputs_;
  std::vector<TensorDescription> described_;
  std::vector<RequestColumn> columns_;
  std::vector<BagLimits> limits_;  // [keys input]
  bool samples_lead_ = true;
};

/// Throws a Refusal for more samples than the limit. The limit is lower for tensors without data, because a short
/// request could claim any number of samples with empty lists.
void expect_few_samples(const NamedTensor&, int64_t samples);

/// Appends the samples of one request to those of another request for the same model.
void append_samples(SampleArrays& to, const SampleArrays& from);

}  // namespace hctr::serve
