#include <algorithm>
#include <iterator>
#include <vector>

#include "core/base/expect.h"
#include "core/base/file_checksum.h"
#include "formats/checkpoint/state_writer.h"

namespace hctr {
namespace {

constexpr int64_t kSumBytes = int64_t{4} << 20;         // bytes per block when threads compute checksums
constexpr int64_t kLaterBlockBytes = int64_t{8} << 20;  // bytes per block when deferred rows are read

}  // namespace

StateFileWriter::Piece& StateFileWriter::piece_before(int64_t offset) {
  const auto behind = pieces_.upper_bound(offset);
  if (behind != pieces_.begin())
    if (const auto before = std::prev(behind); before->first + before->second.bytes == offset) return before->second;
  return pieces_[offset];
}

void StateFileWriter::put(int64_t offset, std::span<const std::byte> bytes) {
  if (offset == position_)
    file_.write(bytes.data(), bytes.size());
  else
    file_.write_at(offset, bytes.data(), bytes.size());  // write_at() also seeks to the end of the file
  end_ = std::max(end_, offset + static_cast<int64_t>(bytes.size()));
  position_ = end_;
}

void StateFileWriter::write_at(int64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  put(offset, bytes);
  Piece& piece = piece_before(offset);
  piece.crc = crc32_of(bytes, piece.crc);
  piece.bytes += static_cast<int64_t>(bytes.size());
}

void StateFileWriter::write_at(int64_t offset, std::span<const std::byte> bytes, ThreadPool& threads) {
  const auto all = static_cast<int64_t>(bytes.size()), parts = (all + kSumBytes - 1) / kSumBytes;
  if (threads.threads() == 1 || parts < 2) return write_at(offset, bytes);
  const auto part = [&](int64_t i) {
    return bytes.subspan(static_cast<size_t>(i * kSumBytes),
                         static_cast<size_t>(std::min(kSumBytes, all - i * kSumBytes)));
  };
  std::vector<uint32_t> sums(static_cast<size_t>(parts));
  threads.parallel_for(1 + parts, 1, [&](int64_t i, int64_t) {  // one thread writes, the others compute checksums
    if (i == 0)
      put(offset, bytes);
    else
      sums[static_cast<size_t>(i - 1)] = crc32_of(part(i - 1));
  });
  Piece& piece = piece_before(offset);
  for (int64_t i = 0; i < parts; ++i)
    piece.crc = joined_crc32(piece.crc, sums[static_cast<size_t>(i)], static_cast<int64_t>(part(i).size()));
  piece.bytes += all;
}

void StateFileWriter::write(const LaterRows& later) {
  int64_t row_bytes = 0;
  for (const LaterRows::Part& part : later.parts) row_bytes += part.row_bytes;
  const int64_t block = std::max<int64_t>(1, kLaterBlockBytes / std::max<int64_t>(1, row_bytes));
  std::vector<std::byte> values(static_cast<size_t>(std::min(block, later.rows) * row_bytes));
  for (int64_t first = 0; first < later.rows; first += block) {
    const int64_t count = std::min(block, later.rows - first);
    std::vector<std::byte*> to;
    std::byte* next = values.data();
    for (const LaterRows::Part& part : later.parts) {
      to.push_back(next);
      next += count * part.row_bytes;
    }
    later.read(first, count, to);
    for (size_t p = 0; p < to.size(); ++p) {
      const LaterRows::Part& part = later.parts[p];
      write_at(part.offset + first * part.row_bytes, {to[p], static_cast<size_t>(count * part.row_bytes)});
    }
  }
}

void StateFileWriter::commit(StateIndex& index) {
  uint32_t crc = 0;
  int64_t bytes = 0;
  for (const auto& [offset, piece] : pieces_) {
    HCTR_EXPECT(offset == bytes, "the file of a checkpoint has ", bytes, " bytes, but its next piece starts at ",
                offset);
    crc = joined_crc32(crc, piece.crc, piece.bytes);
    bytes += piece.bytes;
  }
  HCTR_EXPECT(index.bytes == bytes, "the file of a checkpoint has ", bytes, " bytes, expected ", index.bytes);
  file_.commit();
  index.crc = crc;
}

}  // namespace hctr
