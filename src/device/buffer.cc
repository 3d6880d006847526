#include "device/buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/platform.h"
#include "device/cuda_runtime_calls.h"

namespace hctr {
namespace {

std::byte* allocate_host(size_t bytes) {
  void* data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!data) throw Error(Kind::device, cat("out of memory: ", bytes, " bytes requested on the CPU"));
  std::memset(data, 0, bytes);
  return static_cast<std::byte*>(data);
}

}  // namespace

Buffer::Buffer(Device device, size_t bytes) : device_(device), bytes_(bytes) {
  expect_built(device);
  if (bytes == 0) return;
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) data_ = static_cast<std::byte*>(cuda::allocate(device.index, bytes));
  } else {
    data_ = allocate_host(bytes);
  }
}

Buffer::~Buffer() {
  if (!data_) return;
  if (device_.is_cuda()) {
    if constexpr (kCudaBuild) cuda::free(device_.index, data_);
  } else {
    std::free(data_);
  }
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostBuffer::HostBuffer(Device near, size_t bytes) : near_(near), bytes_(bytes) {
  expect_built(near);
  if (near.is_cuda()) {
    if constexpr (kCudaBuild) data_ = static_cast<std::byte*>(cuda::allocate_pinned(bytes));
  } else {
    data_ = allocate_host(bytes);
  }
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : near_(other.near_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

HostBuffer::~HostBuffer() {
  if (!data_) return;
  if (near_.is_cuda()) {
    if constexpr (kCudaBuild) cuda::free_pinned(data_);
  } else {
    std::free(data_);
  }
}

struct ReservedBuffer::Chunks {
  struct Chunk {
    size_t offset, bytes;
    uint64_t handle;
  };
  std::vector<Chunk> mapped;
};

namespace {

size_t granularity_of(Device device) {
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) return cuda::granularity(device.index);
  }
  return 1 << 16;
}

size_t rounded_up(size_t bytes, size_t granularity) { return (bytes + granularity - 1) / granularity * granularity; }

}  // namespace

ReservedBuffer::ReservedBuffer(Device device, size_t most_bytes)
    : device_(device),
      most_bytes_(rounded_up(most_bytes, granularity_of(device))),
      chunks_(std::make_unique<Chunks>()) {
  expect_built(device);
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) data_ = static_cast<std::byte*>(cuda::reserve(device.index, most_bytes_));
  } else {
    void* range = ::mmap(nullptr, most_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
      throw Error(Kind::device, cat("cannot reserve ", most_bytes_, " bytes of addresses: ", std::strerror(errno),
                                    "; a table reserves addresses for all rows it may grow to, and uses memory for "
                                    "those it has: raise the limit of addresses (`ulimit -v`)"));
    data_ = static_cast<std::byte*>(range);
  }
}

ReservedBuffer::ReservedBuffer(ReservedBuffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      most_bytes_(other.most_bytes_),
      chunks_(std::move(other.chunks_)) {}

ReservedBuffer::~ReservedBuffer() {
  if (!data_) return;
  release();
  if (device_.is_cuda()) {
    if constexpr (kCudaBuild) cuda::unreserve(data_, most_bytes_);
  } else {
    ::munmap(data_, most_bytes_);
  }
}

void ReservedBuffer::grow(size_t wanted) {
  wanted = rounded_up(wanted, granularity_of(device_));
  if (wanted <= bytes_) return;
  if (wanted > most_bytes_)
    throw Error(Kind::device, cat("a range of ", most_bytes_, " bytes was reserved, but ", wanted, " are needed"));
  const size_t more = wanted - bytes_;
  if (device_.is_cuda()) {
    if constexpr (kCudaBuild)
      chunks_->mapped.push_back({bytes_, more, cuda::map_zeroed(device_.index, data_ + bytes_, more)});
  } else if (::mprotect(data_ + bytes_, more, PROT_READ | PROT_WRITE) != 0) {
    throw Error(Kind::device, cat("out of memory: ", more, " more bytes requested on the CPU: ", std::strerror(errno)));
  }
  // Embedding rows are read at random: huge pages halve the time of a lookup. Only a hint, so its failure is ignored.
  if (!device_.is_cuda()) ::madvise(data_, wanted, MADV_HUGEPAGE);
  bytes_ = wanted;
}

void ReservedBuffer::release() {
  if (device_.is_cuda()) {
    if constexpr (kCudaBuild)
      for (const Chunks::Chunk& chunk : chunks_->mapped) cuda::unmap(data_ + chunk.offset, chunk.bytes, chunk.handle);
    chunks_->mapped.clear();
  } else if (bytes_ > 0) {
    // A new mapping drops the pages, and later ones are zero.
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (::mmap(data_, bytes_, PROT_NONE, kFlags, -1, 0) == MAP_FAILED) std::memset(data_, 0, bytes_);
  }
  bytes_ = 0;
}

}  // namespace hctr
