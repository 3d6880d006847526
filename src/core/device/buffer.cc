#include "core/device/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "core/base/expect.h"
#include "core/base/platform.h"
#include "core/device/address_ranges.h"
#include "core/device/copy_bytes.h"
#include "core/device/cuda_runtime_calls.h"
#include "core/device/host_parts.h"

namespace hctr {
namespace {

std::byte* allocate_host(size_t bytes) {
  void* data = nullptr;
  // Calls the new-handler on failure, as operator new does, because the handler may release reserved memory
  // (MemoryReserve).
  while (!(data = std::aligned_alloc(256, (bytes + 255) / 256 * 256)) && std::get_new_handler()) try {
      std::get_new_handler()();
    } catch (const std::bad_alloc&) {
      break;
    }
  if (!data) throw Error(Kind::device, cat("out of memory: ", bytes, " bytes requested on the CPU"));
  std::memset(data, 0, bytes);
  return static_cast<std::byte*>(data);
}

}  // namespace

Buffer::Buffer(Device device, size_t bytes) : device_(device), bytes_(bytes) {
  expect_built(device);
  if (bytes == 0) return;
  if (auto allocator = AllocatorScope::of(device)) {
    data_ = allocator->take(bytes);
    allocator_ = std::move(allocator);
  } else if (device.is_cuda()) {
    if constexpr (kCudaBuild) data_ = static_cast<std::byte*>(cuda::allocate(device.index, bytes));
  } else {
    data_ = allocate_host(bytes);
  }
}

Buffer::~Buffer() {
  if (!data_) return;
  if (allocator_) {
    allocator_->give_back(data_, bytes_);
  } else if (device_.is_cuda()) {
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
  std::swap(allocator_, other.allocator_);
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

constexpr size_t kBlockAlignment = 256;

size_t rounded_up(size_t bytes, size_t granularity) { return (bytes + granularity - 1) / granularity * granularity; }

}  // namespace

ReservedBuffer::ReservedBuffer(Device device, size_t most_bytes, RowMemory* budget)
    : device_(device),
      most_bytes_(rounded_up(most_bytes, granularity_of(device))),
      budget_(budget),
      allocator_(AllocatorScope::of_rows(device)),
      chunks_(std::make_unique<Chunks>()) {
  expect_built(device);
  if (allocator_) {
    most_bytes_ = rounded_up(most_bytes, granularity());
    data_ = allocator_->take(most_bytes_);
  } else if (device.is_cuda()) {
    if constexpr (kCudaBuild) data_ = static_cast<std::byte*>(cuda::reserve(device.index, most_bytes_));
  } else {
    void* range = ::mmap(nullptr, most_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
      throw Error(Kind::device, cat("cannot reserve ", most_bytes_, " bytes of addresses: ", std::strerror(errno),
                                    "; a table reserves addresses for the maximum number of rows, but memory only "
                                    "for existing rows: raise the address space limit (`ulimit -v`)"));
    data_ = static_cast<std::byte*>(range);
  }
}

ReservedBuffer::ReservedBuffer(ReservedBuffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      most_bytes_(other.most_bytes_),
      device_bytes_(other.device_bytes_),
      budget_(other.budget_),
      allocator_(std::move(other.allocator_)),
      chunks_(std::move(other.chunks_)) {}

ReservedBuffer::~ReservedBuffer() {
  if (!data_) return;
  if (!allocator_) release();
  if (allocator_) {
    if (budget_) budget_->take_device(-static_cast<int64_t>(bytes_));
    allocator_->give_back(data_, most_bytes_);
  } else if (device_.is_cuda()) {
    if constexpr (kCudaBuild) cuda::unreserve(data_, most_bytes_);
  } else {
    ::munmap(data_, most_bytes_);
  }
}

size_t ReservedBuffer::granularity() const { return allocator_ ? kBlockAlignment : granularity_of(device_); }

void ReservedBuffer::expect_growth(size_t wanted) const {
  if (wanted > most_bytes_)
    throw Error(Kind::device, cat("a range of ", most_bytes_, " bytes was reserved, but ", wanted, " are needed"));
}

void ReservedBuffer::grow(size_t wanted) {
  wanted = rounded_up(wanted, granularity());
  if (wanted <= bytes_) return;
  expect_growth(wanted);
  if (allocator_) {
    if (budget_) budget_->take_device(static_cast<int64_t>(wanted - bytes_));
    bytes_ = device_bytes_ = wanted;
    return;
  }
  HCTR_EXPECT(device_bytes_ == bytes_, "the buffer cannot grow on the device after it has grown by ",
              bytes_ - device_bytes_, " bytes on the host");
  constexpr size_t kMostMoved = size_t{64} << 20;
  const size_t before = bytes_, few = rounded_up(wanted / 16, granularity_of(device_)),
               piece = budget_ && budget_->has_host() ? std::min(few, kMostMoved) : wanted - before;
  for (size_t more = 0; device_.is_cuda() && bytes_ < wanted; bytes_ = device_bytes_ = bytes_ + more) {
    more = std::min(wanted - bytes_, piece);
    if constexpr (kCudaBuild)
      chunks_->mapped.push_back({bytes_, more, cuda::map_zeroed(device_.index, data_ + bytes_, more)});
    if (budget_) budget_->take_device(static_cast<int64_t>(more));
  }
  if (device_.is_cuda()) return;
  if (::mprotect(data_ + before, wanted - before, PROT_READ | PROT_WRITE) != 0)
    throw Error(Kind::device,
                cat("out of memory: ", wanted - before, " more bytes requested on the CPU: ", std::strerror(errno)));
  // Embedding rows are read in random order, and huge pages halve the lookup time. The call is only a hint; errors are
  // ignored.
  ::madvise(data_, wanted, MADV_HUGEPAGE);
  bytes_ = device_bytes_ = wanted;
  if (budget_) budget_->take_device(static_cast<int64_t>(wanted - before));
}

void ReservedBuffer::grow_on_host(size_t wanted) {
  HCTR_EXPECT(!allocator_, "a buffer from the caller's allocator cannot have rows in host memory");
  constexpr size_t kMostAtOnce = size_t{1} << 30;  // larger page-locked allocations fail more often
  wanted = rounded_up(wanted, granularity_of(device_));
  if (wanted > bytes_) expect_growth(wanted);
  while (bytes_ < wanted) {
    const size_t more = std::min(wanted - bytes_, kMostAtOnce);
    if (device_.is_cuda()) {
      if constexpr (kCudaBuild)
        chunks_->mapped.push_back({bytes_, more, cuda::map_host_zeroed(device_.index, data_ + bytes_, more)});
    } else if (::mprotect(data_ + bytes_, more, PROT_READ | PROT_WRITE) != 0) {
      throw Error(Kind::device,
                  cat("out of memory: ", more, " more bytes requested on the CPU: ", std::strerror(errno)));
    }
    if (!device_.is_cuda()) ::madvise(data_ + bytes_, more, MADV_HUGEPAGE);
    bytes_ += more;
    set_host_part(data_ + device_bytes_, bytes_ - device_bytes_);
    if (budget_) budget_->take_host(static_cast<int64_t>(more));
  }
}

void ReservedBuffer::set_device_bytes(size_t bytes) {
  const auto moved = static_cast<int64_t>(device_bytes_) - static_cast<int64_t>(bytes);
  if (bytes_ > device_bytes_) set_host_part(data_ + device_bytes_, 0);
  device_bytes_ = bytes;
  if (bytes_ > device_bytes_) set_host_part(data_ + device_bytes_, bytes_ - device_bytes_);
  if (!budget_) return;
  budget_->take_device(-moved);
  budget_->take_host(moved);
}

size_t ReservedBuffer::border_at(size_t first) const {
  if (first >= device_bytes_) return device_bytes_;
  if (!device_.is_cuda()) return first / granularity_of(device_) * granularity_of(device_);
  return std::prev(std::upper_bound(chunks_->mapped.begin(), chunks_->mapped.end(), first,
                                    [](size_t at, const Chunks::Chunk& chunk) { return at < chunk.offset; }))
      ->offset;
}

void ReservedBuffer::move_to_host(StreamRef stream, size_t first) {
  if (first >= device_bytes_) return;
  HCTR_EXPECT(!allocator_, "a buffer from the caller's allocator cannot have rows in host memory");
  if (!device_.is_cuda()) return set_device_bytes(border_at(first));
  if constexpr (kCudaBuild) {
    std::vector<std::byte> values;
    for (size_t c = chunks_->mapped.size(); c > 0 && device_bytes_ > first; --c) {
      Chunks::Chunk& chunk = chunks_->mapped[c - 1];
      if (chunk.offset >= device_bytes_) continue;  // this chunk is already host memory
      std::byte* const at = data_ + chunk.offset;
      const uint64_t on_host = cuda::allocate_host_chunk(device_.index, chunk.bytes);
      values.resize(chunk.bytes);
      copy_bytes(stream, values.data(), at, chunk.bytes);
      stream.synchronize();
      cuda::unmap(at, chunk.bytes, std::exchange(chunk.handle, 0));
      try {
        cuda::map_host_chunk(device_.index, at, chunk.bytes, on_host);
      } catch (const Error&) {
        chunk.handle = cuda::map_zeroed(device_.index, at, chunk.bytes);
        copy_bytes(stream, at, values.data(), chunk.bytes);
        stream.synchronize();
        throw;
      }
      chunk.handle = on_host;
      std::memcpy(at, values.data(), chunk.bytes);
      set_device_bytes(chunk.offset);
    }
  }
}

void ReservedBuffer::release() {
  if (bytes_ > device_bytes_) set_host_part(data_ + device_bytes_, 0);
  if (allocator_) {
    if (bytes_ > 0) zero_bytes({device_, allocator_->stream}, data_, bytes_);
  } else if (device_.is_cuda()) {
    if constexpr (kCudaBuild)
      for (const Chunks::Chunk& chunk : chunks_->mapped) cuda::unmap(data_ + chunk.offset, chunk.bytes, chunk.handle);
    chunks_->mapped.clear();
  } else if (bytes_ > 0) {
    // A new mapping over the range frees the pages. Pages that are mapped there later are zero.
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (::mmap(data_, bytes_, PROT_NONE, kFlags, -1, 0) == MAP_FAILED) std::memset(data_, 0, bytes_);
  }
  if (budget_) {
    budget_->take_device(-static_cast<int64_t>(device_bytes_));
    budget_->take_host(-static_cast<int64_t>(bytes_ - device_bytes_));
  }
  bytes_ = device_bytes_ = 0;
}

void ReservedBuffer::read(StreamRef stream, size_t first, void* to, size_t bytes) const {
  HCTR_EXPECT(first + bytes <= bytes_, "bytes ", first, " to ", first + bytes, " of ", bytes_);
  const size_t on_device = std::min(bytes, device_bytes_ - std::min(first, device_bytes_));
  copy_bytes(stream, to, data_ + first, on_device);
  if (on_device == bytes) return;
  stream.synchronize();
  std::memcpy(static_cast<std::byte*>(to) + on_device, data_ + first + on_device, bytes - on_device);
}

void ReservedBuffer::write(StreamRef stream, size_t first, const void* from, size_t bytes) {
  HCTR_EXPECT(first + bytes <= bytes_, "bytes ", first, " to ", first + bytes, " of ", bytes_);
  const size_t on_device = std::min(bytes, device_bytes_ - std::min(first, device_bytes_));
  copy_bytes(stream, data_ + first, from, on_device);
  if (on_device == bytes) return;
  stream.synchronize();
  std::memcpy(data_ + first + on_device, static_cast<const std::byte*>(from) + on_device, bytes - on_device);
}

void ReservedBuffer::zero(StreamRef stream, size_t first, size_t bytes) {
  HCTR_EXPECT(first + bytes <= bytes_, "bytes ", first, " to ", first + bytes, " of ", bytes_);
  const size_t on_device = std::min(bytes, device_bytes_ - std::min(first, device_bytes_));
  zero_bytes(stream, data_ + first, on_device);
  if (on_device == bytes) return;
  stream.synchronize();
  std::memset(data_ + first + on_device, 0, bytes - on_device);
}

}  // namespace hctr
