#include "core/device/address_ranges.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core/device/cuda_runtime_calls.h"
#include "core/device/driver_function.cuh"

namespace hctr::cuda {
namespace {

CUmemAllocationProp pinned_on(int index) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, index};
  return prop;
}

CUmemLocation host_near(int index) {
  int node = 0;  // the NUMA node nearest to the GPU
  HCTR_CHECK(cudaDeviceGetAttribute(&node, cudaDevAttrHostNumaId, index));
  return {CU_MEM_LOCATION_TYPE_HOST_NUMA, std::max(node, 0)};
}

/// Maps physical memory at `at` with access for `users`. Frees the physical memory on failure.
void map_for(void* at, size_t bytes, CUmemGenericAllocationHandle handle, std::span<const CUmemLocation> users) {
  static const auto map = driver<decltype(cuMemMap)>("cuMemMap");
  static const auto unmap_range = driver<decltype(cuMemUnmap)>("cuMemUnmap");
  static const auto set_access = driver<decltype(cuMemSetAccess)>("cuMemSetAccess");
  static const auto release = driver<decltype(cuMemRelease)>("cuMemRelease");
  const auto address = reinterpret_cast<CUdeviceptr>(at);
  const CUresult mapped = map(address, bytes, 0, handle, 0);
  if (mapped != CUDA_SUCCESS) release(handle);
  HCTR_CHECK(mapped);
  std::vector<CUmemAccessDesc> access;
  for (const CUmemLocation& user : users) {
    CUmemAccessDesc one{};
    one.location = user;
    one.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    access.push_back(one);
  }
  const CUresult allowed = set_access(address, bytes, access.data(), access.size());
  if (allowed != CUDA_SUCCESS) {
    unmap_range(address, bytes);
    release(handle);
  }
  HCTR_CHECK(allowed);
}

}  // namespace

size_t granularity(int index) {
  const CUmemAllocationProp prop = pinned_on(index);
  size_t bytes = 0;
  static const auto get = driver<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  HCTR_CHECK(get(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  return bytes;
}

void* reserve(int index, size_t bytes) {
  HCTR_CHECK(cudaSetDevice(index));
  CUdeviceptr address = 0;
  static const auto call = driver<decltype(cuMemAddressReserve)>("cuMemAddressReserve");
  HCTR_CHECK(call(&address, bytes, 0, 0, 0));
  return reinterpret_cast<void*>(address);
}

void unreserve(void* address, size_t bytes) noexcept {
  driver<decltype(cuMemAddressFree)>("cuMemAddressFree")(reinterpret_cast<CUdeviceptr>(address), bytes);
}

uint64_t map_zeroed(int index, void* at, size_t bytes) {
  HCTR_CHECK(cudaSetDevice(index));
  static const auto create = driver<decltype(cuMemCreate)>("cuMemCreate");
  const CUmemAllocationProp prop = pinned_on(index);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult created = create(&handle, bytes, &prop, 0);
  if (created == CUDA_ERROR_OUT_OF_MEMORY)
    throw Error(Kind::device, cat("out of memory on GPU ", index, ": ", bytes, " more bytes requested, ",
                                  free_memory(index), " free"));
  HCTR_CHECK(created);
  map_for(at, bytes, handle, {&prop.location, 1});
  HCTR_CHECK(cudaMemset(at, 0, bytes));
  HCTR_CHECK(cudaStreamSynchronize(nullptr));
  return handle;
}

uint64_t allocate_host_chunk(int index, size_t bytes) {
  HCTR_CHECK(cudaSetDevice(index));
  static const auto create = driver<decltype(cuMemCreate)>("cuMemCreate");
  CUmemAllocationProp prop = pinned_on(index);
  prop.location = host_near(index);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult created = create(&handle, bytes, &prop, 0);
  if (created != CUDA_SUCCESS)
    throw Error(Kind::device,
                cat(bytes, " bytes of page-locked host memory for rows of GPU ", index, " were refused (driver error ",
                    static_cast<int>(created), created == CUDA_ERROR_OUT_OF_MEMORY ? ", out of memory" : "",
                    "); \"table_memory\": {\"host\": ...} sets a lower limit"));
  return handle;
}

void map_host_chunk(int index, void* at, size_t bytes, uint64_t handle) {
  HCTR_CHECK(cudaSetDevice(index));
  const CUmemLocation users[] = {pinned_on(index).location, host_near(index)};
  map_for(at, bytes, handle, users);
}

uint64_t map_host_zeroed(int index, void* at, size_t bytes) {
  const uint64_t handle = allocate_host_chunk(index, bytes);
  map_host_chunk(index, at, bytes, handle);
  std::memset(at, 0, bytes);  // cudaMemset does not support this memory
  return handle;
}

void unmap(void* at, size_t bytes, uint64_t handle) noexcept {
  driver<decltype(cuMemUnmap)>("cuMemUnmap")(reinterpret_cast<CUdeviceptr>(at), bytes);
  driver<decltype(cuMemRelease)>("cuMemRelease")(handle);
}

}  // namespace hctr::cuda
