#include "train/known_gpus.h"

#include <array>

namespace hctr {
namespace {

constexpr double kGiga = 1e9, kTera = 1e12;

// SXM modules have NVLink and are the default; the other GPUs use PCI Express.
constexpr std::array<KnownGpu, 7> kGpus = {{
    {"H100", 80, 3350 * kGiga, 67 * kTera, 494.7 * kTera, 989.4 * kTera, 450 * kGiga},
    {"H100-PCIe", 80, 2039 * kGiga, 51.2 * kTera, 378 * kTera, 756 * kTera, 64 * kGiga},
    {"H200", 141, 4800 * kGiga, 67 * kTera, 494.7 * kTera, 989.4 * kTera, 450 * kGiga},
    {"A100", 80, 2039 * kGiga, 19.5 * kTera, 156 * kTera, 312 * kTera, 300 * kGiga},
    {"A100-40GB", 40, 1555 * kGiga, 19.5 * kTera, 156 * kTera, 312 * kTera, 300 * kGiga},
    {"L40S", 48, 864 * kGiga, 91.6 * kTera, 183 * kTera, 362 * kTera, 32 * kGiga},
    {"L4", 24, 300 * kGiga, 30.3 * kTera, 60 * kTera, 121 * kTera, 32 * kGiga},
}};

// Measured on an H100, where a copy moves 2.8 TB/s, and a large bf16 GEMM runs at 798 TFLOP/s.
constexpr double kOfMemory = 0.83, kOfProducts = 0.8;

bool contains(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

}  // namespace

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  for (const KnownGpu& gpu : kGpus) names.emplace_back(gpu.name);
  return names;
}

std::optional<KnownGpu> find_known_gpu(std::string_view name) {
  for (const KnownGpu& gpu : kGpus)
    if (gpu.name == name) return gpu;
  // driver names such as "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB", "NVIDIA H100 PCIe"
  const auto known = [&](std::string_view wanted) { return find_known_gpu(wanted); };
  if (contains(name, "H200")) return known("H200");
  if (contains(name, "H100")) return known(contains(name, "PCIe") ? "H100-PCIe" : "H100");
  if (contains(name, "A100")) return known(contains(name, "40GB") ? "A100-40GB" : "A100");
  if (contains(name, "L40S")) return known("L40S");
  if (contains(name, "L4") && !contains(name, "L40")) return known("L4");
  return std::nullopt;
}

Ceilings expected_ceilings(const KnownGpu& gpu, DType products, bool tf32) {
  const double flops = products != DType::f32 ? gpu.half : tf32 ? gpu.tf32 : gpu.f32;
  return {kOfMemory * gpu.memory_bytes_a_second, kOfProducts * flops, products};
}

}  // namespace hctr
