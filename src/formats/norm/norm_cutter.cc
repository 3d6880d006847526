#include "formats/norm/norm_cutter.h"

#include <algorithm>
#include <future>
#include <utility>

#include "core/base/expect.h"
#include "formats/norm/norm_pattern.h"
#include "formats/norm/norm_walk.h"

namespace hctr {
namespace {

// Bytes to read past a range for the record that crosses its end. If the record is longer, more() reads the rest.
constexpr size_t kTail = 4 << 10;
constexpr size_t kMostBytes = 1 << 30;  // maximum bytes of a range and its tail, because offsets within it have 32 bits
constexpr size_t kNormPage = 4096;

/// A byte range for one parser. Destroying the promise `after` without a value makes all later ranges fail.
struct ByteRange {
  std::shared_ptr<const ByteFile> file;
  int64_t begin, end;                // byte range in the file; empty at the end of the file
  std::future<FilePosition> before;  // end of the preceding range's last record
  std::promise<FilePosition> after;  // end of this range's last record
};

[[noreturn]] void fail(const NormInfo& info, const FilePosition& at, const std::string& problem) {
  throw Error(Kind::data, cat("'", info.path.string(), "': record ", at.record + 1, " of ",
                              info.header.number_of_records, ", at byte ", at.offset, ": ", problem));
}

FilePosition wait_for(const NormInfo& info, ByteRange& range) try {
  return range.before.get();
} catch (const std::future_error&) {
  throw EarlierChunkFailed(Kind::data,
                           cat("'", info.path.string(), "': records before byte ", range.begin, " could not be read"));
}

void check_end(const NormInfo& info, const FilePosition& end) {
  const int64_t records = info.header.number_of_records;
  if (end.record < records)
    fail(info, end,
         cat("is truncated: only ", std::max<int64_t>(0, info.bytes - end.offset), " of its bytes are in the file"));
  if (end.offset != info.bytes)
    throw Error(Kind::data,
                cat("'", info.path.string(), "': its header promises ", records, " records, which end at byte ",
                    end.offset, ", but the file has ", info.bytes, " bytes"));
}

/// The bytes of a range and of the record that crosses its end. The buffer has the same page offset as the file, so
/// that the kernel copies whole pages, which is nearly twice as fast.
class RangeBytes {
 public:
  RangeBytes(const NormInfo& info, const ByteRange& range, std::vector<std::byte>& buffer)
      : range_(range), buffer_(buffer), most_(std::min(static_cast<size_t>(info.bytes - range.begin), kMostBytes)) {
    const size_t size = std::min(static_cast<size_t>(range.end - range.begin) + kTail, most_);
    if (buffer_.size() < kNormPage + size + kPatternSlack) buffer_.resize(kNormPage + size + kPatternSlack);
    lead_ = (static_cast<size_t>(range.begin) - reinterpret_cast<uintptr_t>(buffer_.data())) % kNormPage;
    read_up_to(size);
  }
  /// Number of buffer bytes before the range.
  size_t lead() const { return lead_; }
  /// The buffer, up to the last byte read.
  std::span<const std::byte> buffer() const { return {buffer_.data(), lead_ + used_}; }
  /// Doubles the number of bytes read. Returns false at the end of the file.
  bool more() { return used_ < most_ && read_up_to(2 * used_); }

 private:
  bool read_up_to(size_t size) {
    size = std::min(size, most_);
    if (buffer_.size() < lead_ + size + kPatternSlack) buffer_.resize(lead_ + size + kPatternSlack);
    range_.file->read_at(range_.begin + static_cast<int64_t>(used_), buffer_.data() + lead_ + used_, size - used_);
    used_ = size;
    return true;
  }
  const ByteRange& range_;
  std::vector<std::byte>& buffer_;
  size_t most_, lead_ = 0, used_ = 0;
};

}  // namespace

NormCutter::NormCutter(std::shared_ptr<const NormInfo> info, FilePosition from, int64_t range)
    : info_(std::move(info)), file_(std::make_shared<const ByteFile>(info_->path)), range_(range) {
  if (from.offset == 0) from.offset = info_->first_block;
  at_ = from.offset;
  std::promise<FilePosition> start;
  before_ = start.get_future();
  start.set_value(from);
}

bool NormCutter::next(Chunk& chunk) {
  if (ended_) return false;
  ended_ = at_ >= info_->bytes;
  const int64_t end = ended_ ? at_ : std::min((at_ / range_ + 1) * range_, info_->bytes);
  auto range = std::make_shared<ByteRange>(ByteRange{file_, at_, end, std::move(before_), {}});
  before_ = range->after.get_future();
  at_ = end;
  chunk.source = std::move(range);
  return true;
}

void find_norm_records(const NormInfo& info, Chunk& chunk) {
  const auto taken = std::static_pointer_cast<ByteRange>(std::exchange(chunk.source, nullptr));
  HCTR_EXPECT(taken, "a byte range can be read only once");
  ByteRange& range = *taken;
  const auto found = [&](const FilePosition& begin, int64_t records) {
    chunk.begin = begin;
    chunk.records = records;
    chunk.bytes = chunk.begins.back() - chunk.begins.front();
  };
  if (range.begin == range.end) {
    const FilePosition end = wait_for(info, range);
    check_end(info, end);
    chunk.begins.assign(1, 0);
    return found(end, 0);
  }
  RangeBytes read(info, range, chunk.buffer);
  const size_t lead = read.lead(), stop = lead + static_cast<size_t>(range.end - range.begin);
  chunk.begins.clear();
  // no guess is needed if the preceding range is finished
  if (range.before.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    if (const auto guess = guess_record(info, read.buffer().subspan(lead), range.begin)) {
      chunk.begins.assign(1, static_cast<uint32_t>(lead) + *guess);
      walk_records(info, read.buffer(), stop, info.header.number_of_records, chunk.begins);
    }
  const FilePosition begin = wait_for(info, range);
  const int64_t most = info.header.number_of_records - begin.record;
  if (begin.offset < range.begin || begin.offset >= range.end || most == 0) {  // no record starts in this range
    range.after.set_value(begin);
    chunk.begins.assign(1, 0);
    return found(begin, 0);
  }
  const auto first = static_cast<uint32_t>(static_cast<int64_t>(lead) + begin.offset - range.begin);
  const auto records = [&] { return static_cast<int64_t>(chunk.begins.size()) - 1; };
  if (chunk.begins.empty() || chunk.begins[0] != first || records() > most) chunk.begins.assign(1, first);
  for (;;) {
    const RecordWalk walk = walk_records(info, read.buffer(), stop, most - records(), chunk.begins);
    const FilePosition end{.record = begin.record + records(),
                           .offset = range.begin + chunk.begins.back() - static_cast<int64_t>(lead)};
    if (walk.end == RecordWalk::End::bad) fail(info, end, walk.problem);
    if (walk.end == RecordWalk::End::short_of_bytes && read.more()) continue;
    range.after.set_value(end);
    return found(begin, records());
  }
}

}  // namespace hctr
