// The devices that tests run on, each with one Runtime for the whole program.
#pragma once

#include <string>
#include <vector>

#include "core/device/context.h"

namespace hctr::test {

/// The CPU, and GPU 0 if there is one.
std::vector<Device> devices();

/// The reason why there is no GPU to test on; empty if there is one.
std::string why_no_gpu();

/// The Runtime of a device. Its seed is 7; on the CPU it has this many threads; with `tf32`, RuntimeOptions::tf32 is
/// set.
Runtime& runtime_of(Device, int threads = 4, bool tf32 = false);

inline constexpr Device kCpu{DeviceKind::cpu, 0};
inline constexpr Device kGpu{DeviceKind::cuda, 0};

}  // namespace hctr::test

/// Skips a test that needs a GPU if there is none, with the reason.
#define HCTR_SKIP_WITHOUT_GPU() \
  if (const std::string why_ = ::hctr::test::why_no_gpu(); !why_.empty()) GTEST_SKIP() << "no CUDA device: " << why_
