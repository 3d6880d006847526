// Plain functions that reserve address ranges for ReservedBuffer and map memory to the ranges. Only CUDA builds define
// (address_ranges.cu) and call these functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hctr::cuda {

size_t granularity(int index);
void* reserve(int index, size_t bytes);
void unreserve(void* address, size_t bytes) noexcept;
uint64_t map_zeroed(int index, void* at, size_t bytes);  // returns the handle of the physical allocation
// like map_zeroed(), but maps host memory, which the CPU can access too
uint64_t map_host_zeroed(int index, void* at, size_t bytes);
// allocate_host_chunk() and map_host_chunk() are the two steps of map_host_zeroed(), but without zeroing. Only
// allocate_host_chunk() can run out of memory.
uint64_t allocate_host_chunk(int index, size_t bytes);
void map_host_chunk(int index, void* at, size_t bytes, uint64_t handle);
void unmap(void* at, size_t bytes, uint64_t handle) noexcept;

}  // namespace hctr::cuda
