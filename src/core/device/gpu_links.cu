#include "core/device/gpu_links.h"

#include <cstdio>

#include "core/device/cuda_check.cuh"

namespace hctr::cuda {
namespace {

std::string id_of(int index) {
  cudaDeviceProp prop{};
  HCTR_CHECK(cudaGetDeviceProperties(&prop, index));
  std::string id;
  for (const char byte : prop.uuid.bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    id += digits;
  }
  return id;
}

bool can_access(int device, int peer) {
  int can = 0;
  HCTR_CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
  return can != 0;
}

bool has_atomics(int device, int peer) {
  int has = 0;
  HCTR_CHECK(cudaDeviceGetP2PAttribute(&has, cudaDevP2PAttrNativeAtomicSupported, device, peer));
  return has != 0;
}

}  // namespace

GpuLinks gpu_links(int index) {
  GpuLinks links{id_of(index), {}, {}};
  int count = 0;
  HCTR_CHECK(cudaGetDeviceCount(&count));
  for (int other = 0; other < count; ++other) {
    if (other == index) continue;
    if (!(can_access(index, other) && can_access(other, index)))
      links.unreachable.push_back(id_of(other));
    else if (has_atomics(index, other))
      links.nvlink.push_back(id_of(other));
  }
  return links;
}

}  // namespace hctr::cuda
