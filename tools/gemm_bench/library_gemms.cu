// cuBLASLt is column-major. It computes the transpose of a row-major result, with b as the first operand.
#include "library_gemms.h"

#include <cublasLt.h>

#include <algorithm>
#include <deque>

#include "core/base/expect.h"

namespace hctr::gemm_bench {
namespace {

constexpr int kProposals = 8;
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

std::string failure(const char* what, cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "" : cat(what, ": ", cublasLtGetStatusString(status));
}

/// The handle and the workspace of all library GEMMs.
struct Library {
  cublasLtHandle_t handle = nullptr;
  DeviceMemory workspace;

  Library() {
    if (const std::string failed = failure("cublasLtCreate", cublasLtCreate(&handle)); !failed.empty())
      throw Error(Kind::device, failed);
    void* found = nullptr;
    if (cudaMalloc(&found, kWorkspaceBytes) != cudaSuccess) throw Error(Kind::device, "no memory for cuBLASLt");
    workspace.reset(found);
  }
  ~Library() { cublasLtDestroy(handle); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

struct LibraryGemm {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t first, second, result;
  cublasLtMatmulAlgo_t algorithm;
  Gemm gemm;
};

class LibraryGemms : public Candidate {
 public:
  LibraryGemms(std::shared_ptr<Library> library, int proposal, Operator op, Type type)
      : library_(std::move(library)),
        proposal_(proposal),
        op_(op),
        type_(type == Type::f16 ? CUDA_R_16F : CUDA_R_16BF) {}
  std::string name() const override { return cat("cuBLASLt proposal ", proposal_ + 1); }
  std::string add_set(const std::vector<Gemm>& gemms, int) override {
    std::deque<LibraryGemm>& set = sets_.emplace_back();
    for (const Gemm& gemm : gemms)
      if (const std::string failed = plan(gemm, set.emplace_back()); !failed.empty()) return failed;
    return {};
  }
  void drop_sets() override { sets_.clear(); }
  std::string launch(int set, cudaStream_t stream, bool) override {
    const float one = 1, zero = 0;
    for (LibraryGemm& p : sets_.at(static_cast<size_t>(set))) {
      const cublasStatus_t status = cublasLtMatmul(library_->handle, &p.operation, &one, p.gemm.b, &p.first, p.gemm.a,
                                                   &p.second, &zero, p.gemm.result, &p.result, p.gemm.result, &p.result,
                                                   &p.algorithm, library_->workspace.get(), kWorkspaceBytes, stream);
      if (status != CUBLAS_STATUS_SUCCESS) return failure("cublasLtMatmul", status);
    }
    return {};
  }

 private:
  std::string plan(const Gemm& gemm, LibraryGemm& p) const {
    p.gemm = gemm;
    const bool wgrad = op_ == Operator::wgrad;
    const auto size = [](int extent) { return static_cast<uint64_t>(row_stride(extent)); };
    const uint64_t m = wgrad ? size(gemm.m) : static_cast<uint64_t>(gemm.m), n = size(gemm.n), k = size(gemm.k);
    std::string failed;
    const auto check = [&](const char* what, cublasStatus_t status) {
      if (failed.empty()) failed = failure(what, status);
    };
    check("cublasLtMatmulDescInit", cublasLtMatmulDescInit(&p.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
      check("cublasLtMatmulDescSetAttribute",
            cublasLtMatmulDescSetAttribute(&p.operation, attribute, &value, sizeof value));
    };
    if (wgrad) {
      set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
    } else {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU_BIAS);
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, gemm.bias);
    }
    const auto layout = [&](cublasLtMatrixLayoutOpaque_t& to, cudaDataType_t type, uint64_t rows, uint64_t columns) {
      check("cublasLtMatrixLayoutInit", cublasLtMatrixLayoutInit(&to, type, rows, columns, static_cast<int64_t>(rows)));
    };
    layout(p.first, type_, n, k);
    layout(p.second, type_, wgrad ? m : k, wgrad ? k : m);
    layout(p.result, wgrad ? CUDA_R_32F : type_, n, m);
    cublasLtMatmulPreferenceOpaque_t preference;
    check("cublasLtMatmulPreferenceInit", cublasLtMatmulPreferenceInit(&preference));
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check("cublasLtMatmulPreferenceSetAttribute",
            cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
    // as in ops/gemm/blas_proposals.cuh
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    if (!failed.empty()) return failed;
    cublasLtMatmulHeuristicResult_t found[kProposals] = {};
    int count = 0;
    check("cublasLtMatmulAlgoGetHeuristic",
          cublasLtMatmulAlgoGetHeuristic(library_->handle, &p.operation, &p.first, &p.second, &p.result, &p.result,
                                         &preference, kProposals, found, &count));
    if (failed.empty() && count == 0) return "cuBLASLt has no algorithm";
    // If a GEMM of the set has fewer proposals than the other GEMMs, use its last proposal.
    p.algorithm = found[std::min(proposal_, std::max(count - 1, 0))].algo;
    return failed;
  }

  std::shared_ptr<Library> library_;
  int proposal_;
  Operator op_;
  cudaDataType_t type_;
  std::deque<std::deque<LibraryGemm>> sets_;
};

}  // namespace

Candidates library_gemms(Operator op, Type type) {
  Candidates all;
  if (op == Operator::dgrad) return all;
  const auto library = std::make_shared<Library>();
  for (int i = 0; i < kProposals; ++i) all.push_back(std::make_unique<LibraryGemms>(library, i, op, type));
  return all;
}

}  // namespace hctr::gemm_bench
