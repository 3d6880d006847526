#include "formats/checkpoint/state_writer.h"

#include <algorithm>
#include <cstring>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"

namespace hctr {
namespace {

// Bytes per copy to the host. Each piece is written by the sink before the next copy, so this also bounds host memory.
constexpr int64_t kCopyBytes = int64_t{64} << 20;
// kStagedBytes: bytes in each half of the staging buffer. kSpreadBytes: bytes that one task copies from that buffer.
constexpr int64_t kStagedBytes = int64_t{16} << 20, kSpreadBytes = int64_t{1} << 20;

StateWriter::Copy copy_of(const void* from) {
  return [from](StreamRef stream, int64_t first, std::span<std::byte> to) {
    copy_bytes(stream, to.data(), static_cast<const std::byte*>(from) + first, to.size());
  };
}

}  // namespace

StagedCopies::StagedCopies(Device device, ThreadPool& threads) : device_(device), threads_(threads) {}

void StagedCopies::fill(std::span<std::byte> to, StreamRef stream,
                        const std::function<void(int64_t first, std::span<std::byte> to)>& copy) {
  if (!memory_) memory_.emplace(device_, static_cast<size_t>(2 * kStagedBytes));
  const auto all = static_cast<int64_t>(to.size());
  const auto start = [&](int64_t first) {
    std::byte* half = memory_->data() + first / kStagedBytes % 2 * kStagedBytes;
    const std::span part(half, static_cast<size_t>(std::max<int64_t>(0, std::min(kStagedBytes, all - first))));
    if (!part.empty()) copy(first, part);
    return part;
  };
  std::span<std::byte> part = start(0);
  for (int64_t first = 0; first < all; first += kStagedBytes) {
    stream.synchronize();
    const std::span<std::byte> next = start(first + kStagedBytes);
    threads_.parallel_for(static_cast<int64_t>(part.size()), kSpreadBytes, [&](int64_t begin, int64_t end) {
      std::memcpy(to.data() + first + begin, part.data() + begin, static_cast<size_t>(end - begin));
    });
    part = next;
  }
}

StateWriter StateWriter::in(std::string_view scope) const {
  StateWriter inner = *this;
  inner.scope_ += std::string(scope) + "/";
  return inner;
}

void StateWriter::tensor(std::string_view name, const Tensor& from) {
  HCTR_EXPECT(from.dense(), "the state '", name, "' is not a dense tensor");
  std::vector<int64_t> shape;
  for (int d = 0; d < from.rank(); ++d) shape.push_back(from.dim(d));
  array(name, name_of(from.dtype()), shape, from.bytes());
}

void StateWriter::array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                        const void* from) {
  array(name, type, shape, copy_of(from));
}

void StateWriter::array(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                        const Copy& copy) {
  const StateArray& array = add({scope_ + std::string(name), std::string(type), shape});
  copy_pieces(copy, array.bytes(), array.offset);
}

LaterRows::Part StateWriter::part_of_array(std::string_view name, std::string_view type,
                                           const std::vector<int64_t>& shape, const Copy& copy, int64_t rows) {
  const StateArray& array = add({scope_ + std::string(name), std::string(type), shape});
  const int64_t row_bytes = array.row_bytes(), offset = array.offset;
  copy_pieces(copy, rows * row_bytes, offset);
  return {offset + rows * row_bytes, row_bytes};
}

StateArray& StateWriter::add_changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                                     const Changes& changes) {
  StateArray array{scope_ + std::string(name), std::string(type), shape};
  array.from_base = {changes.base_rows, changes.list.empty() ? "" : scope_ + changes.list, changes.count};
  return add(std::move(array));
}

LaterRows::Part StateWriter::place_of_changes(std::string_view name, std::string_view type,
                                              const std::vector<int64_t>& shape, const Changes& changes) {
  const StateArray& array = add_changes(name, type, shape, changes);
  return {array.offset, array.row_bytes()};
}

void StateWriter::changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                          const Changes& changes, const Copy& added) {
  const StateArray& array = add_changes(name, type, shape, changes);
  const int64_t row_bytes = array.row_bytes(), offset = array.offset;
  const int64_t block = std::max<int64_t>(1, kCopyBytes / std::max<int64_t>(1, row_bytes));
  for (int64_t first = 0; *sink_ && first < changes.count; first += block) {
    const int64_t rows = std::min(block, changes.count - first);
    const auto bytes = static_cast<size_t>(rows * row_bytes);
    HostBytes piece{std::make_unique_for_overwrite<std::byte[]>(bytes), bytes, offset + first * row_bytes};
    changes.copy(first, rows, piece.data.get());
    (*sink_)(std::move(piece));
  }
  copy_pieces(added, (shape.at(0) - changes.base_rows) * row_bytes, offset + changes.count * row_bytes);
}

void StateWriter::changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                          const Changes& of_base, const void* added) {
  changes(name, type, shape, of_base, copy_of(added));
}

StateArray& StateWriter::add(StateArray array) {
  array.offset = index_->bytes;
  index_->bytes += array.stored_bytes();
  return index_->arrays.emplace_back(std::move(array));
}

void StateWriter::copy_pieces(const Copy& copy, int64_t all, int64_t offset) {
  if (!*sink_) return;
  for (int64_t first = 0; first < all; first += kCopyBytes) {
    const auto bytes = static_cast<size_t>(std::min(kCopyBytes, all - first));
    HostBytes piece{std::make_unique_for_overwrite<std::byte[]>(bytes), bytes, offset + first};
    if (staged_ && static_cast<int64_t>(bytes) > kStagedBytes)
      staged_->fill({piece.data.get(), bytes}, stream_,
                    [&](int64_t at, std::span<std::byte> to) { copy(stream_, first + at, to); });
    else
      copy(stream_, first, {piece.data.get(), bytes});
    stream_.synchronize();
    (*sink_)(std::move(piece));
  }
}

}  // namespace hctr
