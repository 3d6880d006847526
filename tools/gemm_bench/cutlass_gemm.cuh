// A CUTLASS GEMM for compute capability 9.0 as a Candidate. A configuration is a tile, a cluster and a schedule.
#pragma once

#include <cutlass/cutlass.h>
// The order of these headers matters to CUTLASS.
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cute/tensor.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/epilogue/fusion/sm90_callbacks_tma_warpspecialized.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/dispatch_policy.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/gemm/kernel/tile_scheduler.hpp>
#include <cutlass/kernel_hardware_info.hpp>
#include <deque>
#include <utility>

#include "candidate.h"

namespace hctr::gemm_bench {

using cute::_1;
using cute::_2;
using cute::Int;
using cute::Shape;
using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;
namespace fusion = cutlass::epilogue::fusion;

constexpr auto kNearest = cutlass::FloatRoundStyle::round_to_nearest;

/// The schedules, with their names in reports.
struct Cooperative {
  static constexpr const char* kName = "cooperative";
  using Kernel = cutlass::gemm::KernelTmaWarpSpecializedCooperative;
  using Epilogue = cutlass::epilogue::TmaWarpSpecializedCooperative;
  using Scheduler = cutlass::gemm::PersistentScheduler;
};
struct Pingpong {
  static constexpr const char* kName = "pingpong";
  using Kernel = cutlass::gemm::KernelTmaWarpSpecializedPingpong;
  using Epilogue = cutlass::epilogue::TmaWarpSpecialized;
  using Scheduler = cutlass::gemm::PersistentScheduler;
};
struct OneTile {
  static constexpr const char* kName = "one tile";
  using Kernel = cutlass::gemm::KernelTmaWarpSpecialized;
  using Epilogue = cutlass::epilogue::TmaWarpSpecialized;
  using Scheduler = void;
};
struct GroupedCooperative {
  static constexpr const char* kName = "grouped cooperative";
  using Kernel = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedCooperative;
  using Epilogue = cutlass::epilogue::PtrArrayTmaWarpSpecializedCooperative;
  using Scheduler = void;
};
struct GroupedPingpong {
  static constexpr const char* kName = "grouped pingpong";
  using Kernel = cutlass::gemm::KernelPtrArrayTmaWarpSpecializedPingpong;
  using Epilogue = cutlass::epilogue::PtrArrayTmaWarpSpecializedPingpong;
  using Scheduler = void;
};

/// A tile of kM x kN, kK deep, in clusters of kClusterM x kClusterN blocks.
template <class Schedule_, int kM, int kN, int kK, int kClusterM, int kClusterN>
struct Config {
  using Schedule = Schedule_;
  using Tile = Shape<Int<kM>, Int<kN>, Int<kK>>;
  using Cluster = Shape<Int<kClusterM>, Int<kClusterN>, _1>;
  static constexpr int kRows = kM, kColumns = kN;
  static std::string name() {
    return std::string(Schedule::kName) + " " + std::to_string(kM) + "x" + std::to_string(kN) + "x" +
           std::to_string(kK) + " cluster " + std::to_string(kClusterM) + "x" + std::to_string(kClusterN);
  }
};

/// The kernel types of a configuration. A layout is a pointer type for grouped GEMMs.
template <class Config, class Problem, class T, class LayoutA, class LayoutB, class C, class D, class LayoutD,
          class Fusion>
struct KernelTypes {
  using Schedule = typename Config::Schedule;
  static constexpr int kOperandUnit = 16 / sizeof(T), kResultUnit = 16 / sizeof(D);
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, typename Config::Tile, typename Config::Cluster,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, C, LayoutD, kResultUnit, D, LayoutD, kResultUnit,
      typename Schedule::Epilogue, Fusion>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, T, LayoutA, kOperandUnit, T, LayoutB, kOperandUnit, float,
      typename Config::Tile, typename Config::Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
      typename Schedule::Kernel>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Problem, Mainloop, Epilogue, typename Schedule::Scheduler>;
  using Device = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;
};

/// Returns the row stride of a matrix as a CUTLASS stride. One mode of a CUTLASS stride is a compile-time constant,
/// because elements are contiguous in it; the other mode gets `row_stride`.
template <class Stride>
Stride stride_of(int64_t row_stride) {
  Stride stride{};
  if constexpr (cute::is_static_v<std::remove_cvref_t<decltype(cute::get<0>(stride))>>)
    cute::get<1>(stride) = row_stride;
  else
    cute::get<0>(stride) = row_stride;
  return stride;
}

inline std::string failure(const char* what, cutlass::Status status) {
  return status == cutlass::Status::kSuccess ? "" : std::string(what) + ": " + cutlassGetStatusString(status);
}
inline std::string failure(const char* what, cudaError_t status) {
  return status == cudaSuccess ? "" : std::string(what) + ": " + cudaGetErrorString(status);
}

inline std::string allocate(DeviceMemory& memory, size_t bytes) {
  void* found = nullptr;
  std::string failed = failure("cudaMalloc", bytes ? cudaMalloc(&found, bytes) : cudaSuccess);
  memory.reset(found);
  return failed;
}

template <class Kernel>
cutlass::KernelHardwareInfo hardware() {
  cutlass::KernelHardwareInfo info;
  if (cudaGetDevice(&info.device_id) != cudaSuccess) return info;
  info.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(info.device_id);
  return info;
}

/// A prepared CUTLASS GEMM and its workspace.
template <class Device>
struct PreparedGemm {
  Device device;
  DeviceMemory workspace;

  std::string prepare(const typename Device::Arguments& arguments) {
    if (std::string failed = failure("can_implement", Device::can_implement(arguments)); !failed.empty()) return failed;
    if (std::string failed = allocate(workspace, Device::get_workspace_size(arguments)); !failed.empty()) return failed;
    if (std::string failed = failure("initialize", device.initialize(arguments, workspace.get())); !failed.empty())
      return failed;
    return failure("cudaDeviceSynchronize", cudaDeviceSynchronize());
  }
};

/// A candidate that runs each GEMM of a set in its own kernel. Policy::types: KernelTypes; Policy::epilogue(Gemm,
/// from): sets the epilogue arguments; Policy::shape(Gemm): the extents, padded to 16 bytes; Policy::stride_a(Gemm) and
/// stride_b(Gemm): row strides of the operands.
template <class Config, class Policy>
class SingleGemms : public Candidate {
  using Device = typename Policy::template Types<Config>::Device;
  using Kernel = typename Device::GemmKernel;

 public:
  std::string name() const override { return Config::name(); }
  std::string add_set(const std::vector<Gemm>& gemms, int swizzle) override {
    auto& set = sets_.emplace_back();
    for (const Gemm& gemm : gemms) {
      typename Device::Arguments arguments{};
      arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
      arguments.problem_shape = Policy::shape(gemm);
      arguments.mainloop.ptr_A = static_cast<const typename Policy::T*>(gemm.a);
      arguments.mainloop.ptr_B = static_cast<const typename Policy::T*>(gemm.b);
      arguments.mainloop.dA = stride_of<typename Kernel::StrideA>(Policy::stride_a(gemm));
      arguments.mainloop.dB = stride_of<typename Kernel::StrideB>(Policy::stride_b(gemm));
      arguments.epilogue.ptr_D = static_cast<typename Policy::D*>(gemm.result);
      arguments.epilogue.dD = stride_of<typename Kernel::StrideD>(gemm.n);
      Policy::set_epilogue(gemm, arguments.epilogue);
      arguments.hw_info = hardware<Kernel>();
      if constexpr (requires { arguments.scheduler.max_swizzle_size; }) arguments.scheduler.max_swizzle_size = swizzle;
      if (std::string failed = set.emplace_back().prepare(arguments); !failed.empty()) return failed;
    }
    return {};
  }
  void drop_sets() override { sets_.clear(); }
  std::string launch(int set, cudaStream_t stream, bool early) override {
    for (PreparedGemm<Device>& gemm : sets_.at(static_cast<size_t>(set)))
      if (std::string failed = failure("run", gemm.device.run(stream, nullptr, early)); !failed.empty()) return failed;
    return {};
  }
  bool can_start_early() const override { return true; }
  bool has_swizzle() const override { return !std::is_void_v<typename Config::Schedule::Scheduler>; }
  SumLayout sums(int n) const override {
    constexpr int kN = Config::kColumns;
    return {Config::kRows, (n + kN - 1) / kN * kN};
  }

 private:
  std::deque<std::deque<PreparedGemm<Device>>> sets_;
};

}  // namespace hctr::gemm_bench
