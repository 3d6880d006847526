// Measures GEMM algorithms. A candidate is measured as a CUDA graph of several runs, as in a step. The graph excludes
// the launch time of the host.
#include "ops/gemm/product_search.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "core/device/launch.cuh"
#include "core/device/program.h"
#include "ops/gemm/blas_proposals.cuh"

namespace hctr::ops {
namespace {

constexpr int kMostProposals = 8, kRunsOfGraph = 10, kMeasurements = 5;
constexpr double kBetter = 0.97;  // another algorithm must take at most this fraction of the first proposal's time

/// Sizes of the tensors of c = op(a) op(b) + addend, decoded from a key of ops/gemm/linear.cu.
struct ProductMemory {
  DType dtype, result;
  int64_t a, b, c, bias, addend;  // numbers of elements; 0: no bias or addend
  cuda::ProductAlignment alignment;
  uint32_t bias_alignment;
  bool adds;

  explicit ProductMemory(const ProductKey& key)
      : dtype(static_cast<DType>(key[9])),
        result(static_cast<DType>(key[10])),
        a(key[0] * key[2]),
        b(key[3] * key[5]),
        c(key[key[7] ? 1 : 0] * key[6]),
        bias(key[14] ? key[key[8] ? 3 : 4] : 0),
        addend(key[key[7] ? 1 : 0] * (key[16] / 8)),
        alignment{static_cast<uint32_t>(key[11]), static_cast<uint32_t>(key[12]), static_cast<uint32_t>(key[13]),
                  static_cast<uint32_t>(addend > 0 ? key[15] : key[13])},
        bias_alignment(static_cast<uint32_t>(key[15])),
        adds(key[16] & 4) {}
};

/// Fills memory with values in [-0.5, 0.5). With zeros, the GPU would need less power than with real data, and run
/// faster.
template <class T>
__global__ void fill_for_search_kernel(T* to, int64_t count) {
  for (int64_t i = hctr::cuda::thread_index(); i < count; i += hctr::cuda::thread_count())
    to[i] = static_cast<T>(static_cast<float>(static_cast<uint32_t>(i) * 2654435761u >> 20) / 4096.0f - 0.5f);
}

/// Memory for one operand, large enough for every measured GEMM.
class SearchTensor {
 public:
  static constexpr int64_t kMostAlignment = 256;
  void need(int64_t elements, DType dtype) {
    bytes_ = std::max(bytes_, static_cast<size_t>(elements) * size_of(dtype));
  }
  void allocate(Device device) {
    if (bytes_ > 0) memory_ = Buffer(device, bytes_ + kMostAlignment);
  }
  /// Fills the memory and returns an address with exactly this alignment. For alignments of kMostAlignment or more, the
  /// alignment is at least kMostAlignment.
  std::byte* filled(Context& ctx, int64_t elements, DType dtype, uint32_t alignment) const {
    std::byte* const at = memory_.data() + (alignment < kMostAlignment ? alignment : 0);
    dispatch_float(dtype, [&]<class T>() {
      launch(ctx, "fill_for_search", hctr::cuda::grid_for(elements), fill_for_search_kernel<T>,
             reinterpret_cast<T*>(at), elements);
    });
    return at;
  }

 private:
  size_t bytes_ = 0;
  Buffer memory_;
};

class TimingEvent {
 public:
  explicit TimingEvent(Device device) : event_(hctr::cuda::create_timing_event(device.index)) {}
  ~TimingEvent() { hctr::cuda::destroy_event(event_); }
  TimingEvent(const TimingEvent&) = delete;
  TimingEvent& operator=(const TimingEvent&) = delete;
  void* get() const { return event_; }

 private:
  void* event_;
};

struct SearchOperands {
  std::byte *a, *b, *c, *addend;
  bool adds;
};

/// Returns the median time of several graphs.
double seconds_of(Context& ctx, BlasProduct& product, const cublasLtMatmulAlgo_t& algorithm, const SearchOperands& on) {
  auto& libraries = *ctx.runtime().cuda_libraries();
  const float one = 1, of_addend = on.adds ? 1 : 0;
  Program runs(ctx.stream(), true, [&] {
    for (int i = 0; i < kRunsOfGraph; ++i)
      HCTR_CHECK(cublasLtMatmul(libraries.blas, &product.operation, &one, on.b, &product.first, on.a, &product.second,
                                &of_addend, on.addend, &product.addend, on.c, &product.result, &algorithm,
                                libraries.blas_workspace.data(), libraries.blas_workspace.bytes(),
                                hctr::cuda::stream_of(ctx.stream())));
  });
  const TimingEvent begin(ctx.device()), end(ctx.device());
  runs.run();
  std::vector<double> seconds;
  for (int i = 0; i < kMeasurements; ++i) {
    hctr::cuda::mark(begin.get(), ctx.stream());
    runs.run();
    hctr::cuda::mark(end.get(), ctx.stream());
    ctx.stream().synchronize();
    seconds.push_back(hctr::cuda::seconds_between(begin.get(), end.get()).value());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kMeasurements / 2, seconds.end());
  return seconds[kMeasurements / 2];
}

/// Returns the fastest of the library's proposals.
cublasLtMatmulAlgo_t fastest(Context& ctx, BlasProduct& product, const ProductMemory& memory,
                             const SearchOperands& operands) {
  auto& libraries = *ctx.runtime().cuda_libraries();
  std::array<cublasLtMatmulHeuristicResult_t, kMostProposals> proposals{};
  const int count = cuda::propose(libraries, product, memory.alignment, proposals);
  cublasLtMatmulAlgo_t best = product.algorithm;
  double least = seconds_of(ctx, product, best, operands) * kBetter;
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& proposal = proposals[static_cast<size_t>(i)];
    if (proposal.state != CUBLAS_STATUS_SUCCESS || !cuda::accepts(libraries, product, proposal.algo)) continue;
    const double seconds = seconds_of(ctx, product, proposal.algo, operands);
    if (seconds >= least) continue;
    least = seconds;
    best = proposal.algo;
  }
  return best;
}

}  // namespace

void cuda::describe_product_library(Context& ctx, std::string& library) {
  library = cat(hctr::cuda::describe(ctx.device().index), ", cuBLASLt ", cublasLtGetVersion());
}

void cuda::use_algorithms(Context& ctx, const ProductAlgorithms& algorithms, ProductAlgorithms& refused) {
  auto& libraries = *ctx.runtime().cuda_libraries();
  libraries.chosen.clear();
  for (const auto& [key, algorithm] : algorithms) {
    const auto chosen = std::bit_cast<cublasLtMatmulAlgo_t>(algorithm);
    if (const auto met = libraries.products.find(key); met != libraries.products.end()) {
      if (!accepts(libraries, met->second, chosen)) {
        refused.emplace(key, algorithm);
        continue;
      }
      met->second.algorithm = chosen;
    }
    libraries.chosen.emplace(key, chosen);
  }
}

void cuda::search_algorithms(Context& ctx, ProductAlgorithms& found) {
  auto& libraries = *ctx.runtime().cuda_libraries();
  HCTR_EXPECT(ctx.stream().handle == ctx.runtime().compute_stream().handle,
              "the search for GEMM algorithms must "
              "run on the compute stream");
  std::vector<ProductKey> missing;
  SearchTensor a, b, c, bias, addend;
  for (const auto& [key, product] : libraries.products) {
    if (libraries.chosen.contains(key)) continue;
    missing.push_back(key);
    const ProductMemory memory(key);
    a.need(memory.a, memory.dtype);
    b.need(memory.b, memory.dtype);
    c.need(memory.c, memory.result);
    bias.need(memory.bias, memory.dtype);
    addend.need(memory.addend, memory.result);
  }
  if (missing.empty()) return;
  ctx.stream().synchronize();
  for (SearchTensor* tensor : {&a, &b, &c, &bias, &addend}) tensor->allocate(ctx.device());
  for (const ProductKey& key : missing) {
    BlasProduct& product = libraries.products.at(key);
    const ProductMemory memory(key);
    SearchOperands operands{a.filled(ctx, memory.a, memory.dtype, memory.alignment.a),
                            b.filled(ctx, memory.b, memory.dtype, memory.alignment.b),
                            c.filled(ctx, memory.c, memory.result, memory.alignment.c), nullptr,
                            memory.adds || memory.addend > 0};
    operands.addend =
        memory.addend > 0 ? addend.filled(ctx, memory.addend, memory.result, memory.alignment.addend) : operands.c;
    if (memory.bias > 0) {  // each run sets its own bias pointer
      const void* at = bias.filled(ctx, memory.bias, memory.dtype, memory.bias_alignment);
      HCTR_CHECK(cublasLtMatmulDescSetAttribute(&product.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at, sizeof at));
    }
    product.algorithm = fastest(ctx, product, memory, operands);
    libraries.chosen.emplace(key, product.algorithm);
    found[key] = std::bit_cast<ProductAlgorithm>(product.algorithm);
  }
  ctx.stream().synchronize();
}

}  // namespace hctr::ops
