#include "formats/features/feature_cutter.h"

#include <algorithm>
#include <cstring>

#include "core/base/expect.h"
#include "core/base/foreign_content.h"
#include "formats/io/byte_file.h"

namespace hctr {
namespace {

constexpr size_t kPiece = 256 << 10, kLongestLine = 1 << 20;
constexpr int64_t kFeatureChunkBytes = 512 << 10, kMostRows = 16384, kFewestRows = 64;

/// Rows per chunk, chosen so that a chunk fits the L2 cache but reads of narrow columns stay large.
int64_t rows_of_a_chunk(const FeaturePlan& plan) {
  int64_t bytes = 0;
  for (const FeatureGroup& group : plan.groups)
    bytes += static_cast<int64_t>(group.binary() ? group.width : 8 * group.width);
  return std::clamp(kFeatureChunkBytes / bytes, kFewestRows, kMostRows);
}

}  // namespace

CsvLines::CsvLines(const fs::path& path) : path_(path), stream_(open_stream(path)) {}

int64_t CsvLines::ready(int64_t rows) {
  while (static_cast<int64_t>(ends_.size() - taken_) < rows && read_on()) continue;
  return std::min(rows, static_cast<int64_t>(ends_.size() - taken_));
}

bool CsvLines::read_on() {
  if (!stream_) return false;
  ends_.erase(ends_.begin(), ends_.begin() + static_cast<ptrdiff_t>(taken_));
  for (End& end : ends_) end.at -= begin_;
  text_.erase(0, begin_);
  seen_ -= begin_;
  taken_ = begin_ = 0;
  const size_t before = text_.size();
  text_.resize(before + kPiece);
  text_.resize(before + stream_->read(reinterpret_cast<std::byte*>(text_.data()) + before, kPiece));
  consumed_ = stream_->consumed();
  if (lines_ == 0 && before == 0) look_at_start();
  if (text_.size() < before + kPiece) {
    stream_.reset();
    if (!text_.empty() && text_.back() != '\n') text_ += '\n';
  }
  for (size_t newline; (newline = text_.find('\n', seen_)) != std::string::npos; seen_ = newline + 1) {
    ++lines_;
    if (text_.find_first_not_of('\r', seen_) < newline) ends_.push_back({newline + 1, lines_});
  }
  if (text_.size() - seen_ > kLongestLine)
    throw Error(Kind::data, cat("'", path_.string(), "' line ", lines_ + 1, ": more than ", kLongestLine,
                                " bytes without a line end"));
  return true;
}

/// Skips a byte order mark. Errors: Error(data) for a file that is not text.
void CsvLines::look_at_start() {
  if (const std::string why = why_no_rows(text_); !why.empty())
    throw Error(Kind::data, cat("'", path_.string(), "': ", why));
  if (text_.starts_with("\xEF\xBB\xBF")) text_.erase(0, 3);
}

std::string_view CsvLines::take(int64_t rows) {
  taken_ += static_cast<size_t>(rows);
  const End& end = ends_[taken_ - 1];
  const std::string_view text(text_.data() + begin_, end.at - begin_);
  begin_ = end.at;
  line_ = end.lines;
  return text;
}

FeatureCutter::FeatureCutter(const FeaturePlan& plan, int64_t from, std::optional<int64_t> most)
    : plan_(plan),
      tracks_(plan.groups.size()),
      ready_(plan.groups.size()),
      row_(from),
      chunk_rows_(rows_of_a_chunk(plan)),
      most_(most) {
  for (size_t g = 0; g < tracks_.size(); ++g)
    for (int64_t left = from; left > 0;) {
      const int64_t rows = std::min(left, ready(g, std::min(left, kMostRows)));
      if (rows == 0)
        throw Error(Kind::data,
                    cat("a reader cannot resume at row ", from + 1, " of mapping \"", plan.mapping,
                        "\": the chunk of '", plan.groups[g].files[0].string(), "' has only ", from - left, " rows"));
      if (tracks_[g].lines) tracks_[g].lines->take(rows);
      tracks_[g].row += rows;
      left -= rows;
    }
}

int64_t FeatureCutter::ready(size_t g, int64_t rows) {
  const FeatureGroup& group = plan_.groups[g];
  Track& track = tracks_[g];
  for (; track.file < group.files.size(); ++track.file) {
    if (group.binary()) {
      if (const int64_t left = group.rows[track.file] - track.row; left > 0) {
        if (!track.open) track.open = std::make_shared<const ByteFile>(group.files[track.file]);
        return left;
      }
    } else {
      if (!track.lines) track.lines = std::make_unique<CsvLines>(group.files[track.file]);
      if (const int64_t there = track.lines->ready(rows); there > 0) return there;
    }
    track.before += consumed(g);
    track.lines.reset();
    track.open.reset();
    track.row = 0;
  }
  return 0;
}

int64_t FeatureCutter::consumed(size_t g) const {
  const Track& track = tracks_[g];
  return track.lines ? track.lines->consumed() : track.row * static_cast<int64_t>(plan_.groups[g].width);
}

std::optional<int64_t> FeatureCutter::consumed() const {
  int64_t sum = 0;
  for (size_t g = 0; g < tracks_.size(); ++g) sum += tracks_[g].before + consumed(g);
  return sum;
}

bool FeatureCutter::next(Chunk& chunk) {
  const int64_t wanted = most_ ? std::min(chunk_rows_, *most_ - row_) : chunk_rows_;
  if (wanted <= 0) return false;
  for (size_t g = 0; g < tracks_.size(); ++g) ready_[g] = ready(g, wanted);
  const int64_t rows = std::min(wanted, *std::min_element(ready_.begin(), ready_.end()));
  if (rows == 0) return finish(ready_), false;
  chunk.begin = {.record = row_, .offset = 0};
  chunk.records = rows;
  chunk.bytes = 0;
  chunk.parts.resize(tracks_.size());
  size_t used = 0;
  for (size_t g = 0; g < tracks_.size(); ++g) {
    Track& track = tracks_[g];
    ChunkPart& part = chunk.parts[g];
    part = {.file = track.file,
            .first = track.lines ? track.lines->line() : track.row,
            .begin = used,
            .end = used,
            .open = track.open};
    track.row += rows;
    if (track.lines) {
      const std::string_view text = track.lines->take(rows);
      if (chunk.buffer.size() < used + text.size()) chunk.buffer.resize(used + text.size());
      std::memcpy(chunk.buffer.data() + used, text.data(), text.size());
      part.end = used += text.size();
      chunk.bytes += static_cast<int64_t>(text.size());
    } else {
      chunk.bytes += rows * static_cast<int64_t>(plan_.groups[g].width);
    }
  }
  row_ += rows;
  return true;
}

void FeatureCutter::finish(const std::vector<int64_t>& ready) const {
  const auto name = [&](auto group) {
    return plan_.groups[static_cast<size_t>(group - ready.begin())].files[0].string();
  };
  const auto ended = std::find(ready.begin(), ready.end(), 0);
  const auto longer = std::find_if(ready.begin(), ready.end(), [](int64_t rows) { return rows > 0; });
  if (longer != ready.end())
    throw Error(Kind::data,
                cat("the chunks of mapping \"", plan_.mapping, "\" differ in length: the chunk of '", name(ended),
                    "' ends after ", row_, " rows, the chunk of '", name(longer), "' has more"));
  if (most_)
    throw Error(Kind::data, cat("mapping \"", plan_.mapping, "\" holds ", row_, " rows, but the Data layer expects ",
                                *most_, " (\"num_samples\" and \"eval_num_samples\")"));
}

}  // namespace hctr
