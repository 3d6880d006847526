// The operands of a benchmark case, and the check of a candidate's results.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "candidate.h"

namespace hctr::gemm_bench {

struct Extents {
  int m, n, k;
};

/// One operator at one batch size. wgrad has one GEMM per layer, the other operators have one GEMM.
struct Case {
  Operator op;
  Type type;
  std::string name;  ///< name of the model or the layer
  int batch;
  std::vector<Extents> gemms;
};
double flops_of(const Case&);
std::string name_of(const Case&);

/// Random operands in device memory, in several sets. Errors: Error(device).
class Operands {
 public:
  explicit Operands(const Case&);
  const std::vector<std::vector<Gemm>>& sets() const { return sets_; }
  /// Fills the results of set 0 with NaN.
  void spoil();
  /// Compares the results of set 0 with a plain f32 GEMM. dgrad: compares d_bias with the sums of the result's columns.
  /// Returns an empty string, or what differs.
  std::string check();

 private:
  void* allocate(size_t bytes);
  Case case_;
  std::vector<DeviceMemory> memory_;
  std::vector<std::vector<Gemm>> sets_;
  std::vector<float*> expected_;  ///< results of the plain GEMMs of set 0, without the epilogue
  struct Difference* difference_ = nullptr;
};

}  // namespace hctr::gemm_bench
