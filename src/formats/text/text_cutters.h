// Cuts text files into chunks of whole records.
#pragma once

#include <memory>

#include "formats/data/sample_set.h"
#include "formats/data/text_grammar.h"
#include "formats/io/byte_file.h"
#include "formats/io/byte_stream.h"

namespace hctr {

/// Maximum length of a record. Bounds the memory until an unclosed quote is detected.
inline constexpr int64_t kLongestRecord = 16 << 20;

/// Cuts plain text without quotes into byte ranges that end at a line end. The parser reads the bytes.
class RangeCutter : public Cutter {
 public:
  RangeCutter(const fs::path& path, int64_t from) : file_(path), at_(from) {}
  bool next(Chunk& chunk) override;

 private:
  ByteFile file_;
  int64_t at_;
};

/// Cuts any text. The cutter reads the text sequentially and stores the bytes in the chunks.
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
  std::vector<std::byte> rest_;  // bytes read that do not form a complete record yet
};

}  // namespace hctr
