// Cuts text files into chunks of whole records.
#pragma once

#include <memory>

#include "formats/data/sample_set.h"
#include "formats/data/text_grammar.h"
#include "formats/io/byte_file.h"
#include "formats/io/byte_stream.h"

namespace hctr {

/// The longest allowed record, so that a quote that is never closed is detected in bounded memory.
inline constexpr int64_t kLongestRecord = 16 << 20;

/// Plain text without quotes. Chunks are byte ranges that end with a line. The parser reads them.
class RangeCutter : public Cutter {
 public:
  RangeCutter(const fs::path& path, int64_t from) : file_(path), at_(from) {}
  bool next(Chunk& chunk) override;

 private:
  ByteFile file_;
  int64_t at_;
};

/// Any text. The cutter reads it in order, and the chunks hold the bytes.
class StreamCutter : public Cutter {
 public:
  StreamCutter(const fs::path&, TextGrammar, int64_t from);
  bool next(Chunk& chunk) override;
  std::optional<int64_t> consumed() const override { return stream_->consumed(); }

 private:
  fs::path path_;
  TextGrammar grammar_;
  std::unique_ptr<ByteStream> stream_;
  int64_t at_;                   // file offset of rest_
  std::vector<std::byte> rest_;  // bytes read that are not yet a whole record
};

}  // namespace hctr
