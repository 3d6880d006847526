#include "checkpoint/state_writer.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/file_checksum.h"
#include "device/copy.h"

namespace hctr {
namespace {

constexpr int64_t kCopyBytes = int64_t{64} << 20;  // of a copy; bounds the memory where pieces are written at once

StateWriter::Copy copy_of(const void* from) {
  return [from](StreamRef stream, int64_t first, std::span<std::byte> to) {
    copy_bytes(stream, to.data(), static_cast<const std::byte*>(from) + first, to.size());
  };
}

}  // namespace

StateWriter StateWriter::in(std::string_view scope) const {
  StateWriter inner = *this;
  inner.scope_ += std::string(scope) + "/";
  return inner;
}

void StateWriter::tensor(std::string_view name, const Tensor& from) {
  HCTR_EXPECT(from.dense(), "the state '", name, "' is no dense tensor");
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
  copy_pieces(copy, add({scope_ + std::string(name), std::string(type), shape}).bytes());
}

void StateWriter::changes(std::string_view name, std::string_view type, const std::vector<int64_t>& shape,
                          const Changes& changes, const Copy& added) {
  StateArray array{scope_ + std::string(name), std::string(type), shape};
  array.from_base = {changes.base_rows, changes.list.empty() ? "" : scope_ + changes.list, changes.count};
  const int64_t row_bytes = add(std::move(array)).row_bytes();
  const int64_t block = std::max<int64_t>(1, kCopyBytes / std::max<int64_t>(1, row_bytes));
  for (int64_t first = 0; *sink_ && first < changes.count; first += block) {
    const int64_t rows = std::min(block, changes.count - first);
    const auto bytes = static_cast<size_t>(rows * row_bytes);
    HostBytes piece{std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
    changes.copy(first, rows, piece.data.get());
    (*sink_)(std::move(piece));
  }
  copy_pieces(added, (shape.at(0) - changes.base_rows) * row_bytes);
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

void StateWriter::copy_pieces(const Copy& copy, int64_t all) {
  if (!*sink_) return;
  for (int64_t first = 0; first < all; first += kCopyBytes) {
    const auto bytes = static_cast<size_t>(std::min(kCopyBytes, all - first));
    HostBytes piece{std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
    copy(stream_, first, {piece.data.get(), bytes});
    stream_.synchronize();
    (*sink_)(std::move(piece));
  }
}

void StateFileWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes.data(), bytes.size());
  crc_ = crc32_of(bytes, crc_);
  bytes_ += static_cast<int64_t>(bytes.size());
}

void StateFileWriter::commit(StateIndex& index) {
  HCTR_EXPECT(index.bytes == bytes_, "the file of a checkpoint got ", bytes_, " bytes of ", index.bytes);
  file_.commit();
  index.crc = crc_;
}

}  // namespace hctr
