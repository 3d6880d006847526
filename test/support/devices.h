// The devices for tests, with one Runtime per device for the whole program.
#pragma once

#include <string>
#include <vector>

#include "core/device/context.h"

namespace hctr::test {

/// The CPU, and GPU 0 if there is one.
std::vector<Device> devices();

/// The reason why no GPU can be tested; empty if there is a GPU.
std::string why_no_gpu();

/// The Runtime of a device with seed 7. `threads`: CPU threads. `tf32`: RuntimeOptions::tf32.
Runtime& runtime_of(Device, int threads = 4, bool tf32 = false);

inline constexpr Device kCpu{DeviceKind::cpu, 0};
inline constexpr Device kGpu{DeviceKind::cuda, 0};

}  // namespace hctr::test

/// Skips the test with a message if there is no GPU.
#define HCTR_SKIP_WITHOUT_GPU() \
  if (const std::string why_ = ::hctr::test::why_no_gpu(); !why_.empty()) GTEST_SKIP() << "no CUDA device: " << why_
