// CUTLASS: the wgrads of a model's layers, as one grouped GEMM. The result is f32.
#pragma once

#include <cutlass/epilogue/thread/activation.h>
#include <cutlass/gemm/group_array_problem_shape.hpp>

#include "cutlass_gemm.cuh"

namespace hctr::gemm_bench {

using Copied = fusion::Sm90EVT<fusion::Sm90Compute<cutlass::epilogue::thread::Identity, float, float, kNearest>,
                               fusion::Sm90AccFetch>;

/// All GEMMs of a set in one kernel.
template <class Config, class T>
class GroupedGemms : public Candidate {
  using Problem = cutlass::gemm::GroupProblemShape<Shape<int, int, int>>;
  using Device =
      typename KernelTypes<Config, Problem, T, ColumnMajor*, RowMajor*, void, float, RowMajor*, Copied>::Device;
  using Kernel = typename Device::GemmKernel;

  /// The arguments of one GEMM, in device memory as one array per member.
  struct Arrays {
    static constexpr size_t kMost = 16;
    Shape<int, int, int> shapes[kMost];
    const T *a[kMost], *b[kMost];
    float* result[kMost];
    typename Kernel::InternalStrideA stride_a[kMost];
    typename Kernel::InternalStrideB stride_b[kMost];
    typename Kernel::InternalStrideD stride_result[kMost];
  };
  struct Set {
    Arrays host{};
    DeviceMemory arrays;
    PreparedGemm<Device> gemm;
  };

 public:
  std::string name() const override { return Config::name(); }
  std::string add_set(const std::vector<Gemm>& gemms, int) override {
    Set& set = sets_.emplace_back();
    if (gemms.size() > Arrays::kMost) return "too many GEMMs";
    for (size_t i = 0; i < gemms.size(); ++i) {
      const Gemm& gemm = gemms[i];
      set.host.shapes[i] = {row_stride(gemm.m), gemm.n, gemm.k};
      set.host.a[i] = static_cast<const T*>(gemm.a);
      set.host.b[i] = static_cast<const T*>(gemm.b);
      set.host.result[i] = static_cast<float*>(gemm.result);
      set.host.stride_a[i] = stride_of<typename Kernel::InternalStrideA>(row_stride(gemm.m));
      set.host.stride_b[i] = stride_of<typename Kernel::InternalStrideB>(row_stride(gemm.n));
      set.host.stride_result[i] = stride_of<typename Kernel::InternalStrideD>(gemm.n);
    }
    if (std::string failed = allocate(set.arrays, sizeof(Arrays)); !failed.empty()) return failed;
    auto* const arrays = static_cast<Arrays*>(set.arrays.get());
    if (std::string failed =
            failure("cudaMemcpy", cudaMemcpy(arrays, &set.host, sizeof(Arrays), cudaMemcpyHostToDevice));
        !failed.empty())
      return failed;
    typename Device::Arguments arguments{};
    arguments.mode = cutlass::gemm::GemmUniversalMode::kGrouped;
    arguments.problem_shape = {static_cast<int>(gemms.size()), arrays->shapes, set.host.shapes};
    arguments.mainloop.ptr_A = arrays->a;
    arguments.mainloop.ptr_B = arrays->b;
    arguments.mainloop.dA = arrays->stride_a;
    arguments.mainloop.dB = arrays->stride_b;
    arguments.epilogue.ptr_D = arrays->result;
    arguments.epilogue.dD = arrays->stride_result;
    arguments.hw_info = hardware<Kernel>();
    return set.gemm.prepare(arguments);
  }
  void drop_sets() override { sets_.clear(); }
  std::string launch(int set, cudaStream_t stream, bool) override {
    return failure("run", sets_.at(static_cast<size_t>(set)).gemm.device.run(stream));
  }

 private:
  std::deque<Set> sets_;
};

template <class T, class Config>
std::unique_ptr<Candidate> cutlass_wgrad() {
  return std::make_unique<GroupedGemms<Config, T>>();
}

}  // namespace hctr::gemm_bench
