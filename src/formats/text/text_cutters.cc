#include "formats/text/text_cutters.h"

#include <algorithm>
#include <cstring>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr int64_t kTextChunkBytes = 256 << 10;  // text and samples of a chunk fit the L2 cache together

[[noreturn]] void fail_long(const fs::path& path, int64_t at, const char* why) {
  throw Error(Kind::data,
              cat("'", path.string(), "': no record ends within ", kLongestRecord, " bytes after byte ", at, why));
}

}  // namespace

bool RangeCutter::next(Chunk& chunk) {
  if (at_ >= file_.size()) return false;
  int64_t end = at_ + kTextChunkBytes;
  for (std::byte piece[1024]; end < file_.size();) {
    const auto count = static_cast<size_t>(std::min<int64_t>(sizeof piece, file_.size() - end));
    file_.read_at(end, piece, count);
    if (const void* newline = std::memchr(piece, '\n', count)) {
      end += static_cast<const std::byte*>(newline) - piece + 1;
      break;
    }
    end += static_cast<int64_t>(count);
    if (end - at_ > kLongestRecord) fail_long(file_.path(), at_, "");
  }
  end = std::min(end, file_.size());
  chunk.begin = {.record = 0, .offset = at_};
  chunk.bytes = end - at_;
  at_ = end;
  return true;
}

StreamCutter::StreamCutter(const fs::path& path, TextGrammar grammar, int64_t from)
    : path_(path), grammar_(std::move(grammar)), stream_(open_stream(path)), at_(from) {
  if (from > 0) stream_->skip_to(from);
}

bool StreamCutter::next(Chunk& chunk) {
  chunk.begin = {.record = 0, .offset = at_};
  size_t used = rest_.size();
  // Only the first `room` bytes decide where the chunk ends, even if more were read ahead. A reader that resumes here
  // cuts the same chunks.
  for (size_t room = kTextChunkBytes;; room *= 2) {
    if (chunk.buffer.size() < std::max(room, used)) chunk.buffer.resize(std::max(room, used));
    if (!rest_.empty()) std::copy(rest_.begin(), rest_.end(), chunk.buffer.begin());
    rest_.clear();
    if (used < room) used += stream_->read(chunk.buffer.data() + used, room - used);
    if (used == 0) return false;
    const bool last = used < room;
    const size_t end =
        last ? used : end_of_last_record({reinterpret_cast<const char*>(chunk.buffer.data()), room}, grammar_);
    if (end > 0) {
      rest_.assign(chunk.buffer.begin() + static_cast<ptrdiff_t>(end),
                   chunk.buffer.begin() + static_cast<ptrdiff_t>(used));
      chunk.bytes = static_cast<int64_t>(end);
      at_ += chunk.bytes;
      return true;
    }
    if (static_cast<int64_t>(room) > kLongestRecord)
      fail_long(path_, at_, grammar_.quote ? "; is a quote never closed?" : "");
  }
}

}  // namespace hctr
