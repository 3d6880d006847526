#include "ops/gemm/operand_memory.cuh"

#include "core/device/cuda_check.cuh"
#include "core/device/cuda_libraries.cuh"

namespace hctr::ops::cuda {
namespace {

constexpr size_t kMostBytes = size_t{1} << 38;

/// Allows an allocation during stream capture, which CUDA otherwise forbids. A GEMM allocates operand memory when it
/// first runs, possibly while a step is being recorded.
class WhileRecording {
 public:
  WhileRecording() { HCTR_CHECK(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~WhileRecording() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  WhileRecording(const WhileRecording&) = delete;
  WhileRecording& operator=(const WhileRecording&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

float* operand_memory(Runtime& runtime, int64_t elements) {
  auto& memory = runtime.cuda_libraries()->operands;
  const size_t bytes = static_cast<size_t>(elements) * sizeof(float);
  if (!memory || memory->bytes() < bytes) {
    const WhileRecording allowed;
    if (!memory) memory.emplace(runtime.device(), kMostBytes);
    memory->grow(bytes);
  }
  return reinterpret_cast<float*>(memory->data());
}

}  // namespace hctr::ops::cuda
