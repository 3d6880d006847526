#include "data/norm/norm_file.h"

#include <algorithm>

#include "base/error.h"
#include "data/norm/norm_walk.h"

namespace hctr {
namespace {

constexpr size_t kChunkBytes = 512 << 10;  // fits the second-level cache together with the parsed samples
constexpr size_t kMostBytes = 1 << 30;     // of a chunk: its offsets have 32 bits

}  // namespace

NormFile::NormFile(std::shared_ptr<const NormInfo> info, Place from)
    : info_(std::move(info)), file_(info_->path), record_(from.record) {
  file_.seek(from.offset == 0 ? info_->first_block : from.offset);
}

bool NormFile::next(Chunk& chunk) {
  chunk.begin = {.record = record_, .offset = file_.position() - static_cast<int64_t>(rest_.size())};
  if (record_ == info_->header.number_of_records) {
    if (chunk.begin.offset != info_->bytes)
      throw Error(Kind::data,
                  cat("'", info_->path.string(), "': its header promises ", record_, " records, which end at byte ",
                      chunk.begin.offset, ", but the file has ", info_->bytes, " bytes"));
    return false;
  }
  // Room for two of the largest records; no more than the file holds, as limits may be set very high.
  const auto left = static_cast<size_t>(std::max<int64_t>(info_->bytes - chunk.begin.offset, 0));
  const size_t room = std::min({std::max(kChunkBytes, 2 * (info_->sizes.most + 8)), left, kMostBytes});
  if (chunk.buffer.size() < std::max(room, rest_.size())) chunk.buffer.resize(std::max(room, rest_.size()));
  std::copy(rest_.begin(), rest_.end(), chunk.buffer.begin());
  size_t used = rest_.size();
  if (used < room) used += file_.read(chunk.buffer.data() + used, room - used);
  cut(chunk, used);
  const auto rest = chunk.buffer.begin() + chunk.begins.back();
  rest_.assign(rest, chunk.buffer.begin() + static_cast<ptrdiff_t>(used));
  record_ += chunk.records;
  chunk.bytes = chunk.begins.back();
  if (chunk.records == 0)
    fail(chunk, chunk.buffer.data(), cat("is cut off: only ", used, " bytes of it are in the file"));
  return true;
}

void NormFile::cut(Chunk& chunk, size_t used) {
  chunk.begins.assign(1, 0);
  const RecordWalk walk =
      walk_records(*info_, {chunk.buffer.data(), used}, used, info_->header.number_of_records - record_, chunk.begins);
  chunk.records = static_cast<int64_t>(chunk.begins.size()) - 1;
  if (walk.end == RecordWalk::End::bad) fail(chunk, chunk.buffer.data() + chunk.begins.back(), walk.problem);
}

void NormFile::fail(const Chunk& chunk, const std::byte* at, const std::string& problem) const {
  throw Error(Kind::data, cat("'", info_->path.string(), "': record ", chunk.begin.record + chunk.records + 1, " of ",
                              info_->header.number_of_records, ", at byte ",
                              chunk.begin.offset + (at - chunk.buffer.data()), ": ", problem));
}

SampleBlock read_norm_file(const fs::path& path, const NormDemands& demands, int64_t* skipped) {
  const auto info = std::make_shared<const NormInfo>(read_norm_info(path, demands));
  NormFile file(info, {});
  Chunk all, piece;
  all.begin.offset = info->first_block;
  all.begins.assign(1, 0);
  HCTR_EXPECT(info->bytes < int64_t{kMostBytes}, "read_norm_file is for small files");
  while (file.next(piece)) {
    const auto base = static_cast<uint32_t>(all.buffer.size());
    all.buffer.insert(all.buffer.end(), piece.buffer.begin(), piece.buffer.begin() + piece.begins.back());
    for (size_t i = 1; i < piece.begins.size(); ++i) all.begins.push_back(base + piece.begins[i]);
    all.records += piece.records;
  }
  ParseScratch scratch;
  SampleBlock block;
  const BadRecords bad = parse_norm_chunk(*info, all, {}, scratch, block);
  if (skipped) *skipped = bad.count;
  return block;
}

}  // namespace hctr
