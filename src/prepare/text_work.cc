#include "prepare/text_work.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "formats/io/byte_file.h"
#include "formats/io/byte_stream.h"

namespace hctr {
namespace {

/// A unit of work for a thread: bytes [begin, end) of a plain file. If `end` is 0, one thread reads the whole file in
/// order.
struct Piece {
  std::string file;
  int64_t begin = 0, end = 0;
  bool last = false;  // whether this is the last piece of its file
};

struct Counting {
  Piece piece;
  std::vector<std::byte> bytes;
};

std::vector<Piece> pieces_of(const std::vector<std::string>& files, bool quotes, int64_t piece) {
  std::vector<Piece> pieces;
  for (const std::string& file : files) {
    const int64_t size = quotes || is_packed(file) ? 0 : stream_bytes(file);
    int64_t begin = 0;
    do {
      const int64_t end = std::min(begin + piece, size);
      pieces.push_back({file, begin, end, end == size});
      begin = end;
    } while (begin < size);
  }
  return pieces;
}

/// Number of bytes that are also read, before the start of a piece. They show whether the first line that ends in the
/// piece is blank: the line may start before the piece, or consist of a byte order mark or carriage returns there.
constexpr int64_t kBytesBefore = 64;

/// Counts the non-blank lines that end in the piece.
int64_t rows_ending_in(const Piece& piece, std::vector<std::byte>& bytes) {
  const int64_t from = std::max<int64_t>(piece.begin - kBytesBefore, 0);
  bytes.resize(static_cast<size_t>(piece.end - from));
  ByteFile(piece.file).read_at(from, bytes.data(), bytes.size());
  const char* const text = reinterpret_cast<const char*>(bytes.data());
  const char* const end = text + bytes.size();
  const char* const mark =
      from == 0 && std::string_view(text, bytes.size()).starts_with("\xEF\xBB\xBF") ? text + 3 : text;
  const auto starts_line = [&](const char* p) { return p == text || p == mark ? from == 0 : p[-1] == '\n'; };
  const auto blank = [&](const char* line_end) {
    while (line_end > text && line_end[-1] == '\r') --line_end;
    return starts_line(line_end);
  };
  int64_t rows = 0;
  for (const char* p = text + (piece.begin - from); p < end; ++p) {
    p = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(end - p)));
    if (!p) break;
    rows += !blank(p);
  }
  if (piece.last && end[-1] != '\n' && end != mark) rows += !blank(end);  // counts a last line without a newline
  return rows;
}

/// Progress of all threads, in bytes.
class CountProgress {
 public:
  CountProgress(const ShowProgress& show, int64_t bytes) : progress_(show, "counting rows", "bytes", bytes) {}
  void add(int64_t bytes) {
    const std::lock_guard turn(mutex_);
    progress_.update(done_ += bytes);
  }
  void finish() { progress_.finish(); }

 private:
  std::mutex mutex_;
  Progress progress_;
  int64_t done_ = 0;
};

int64_t rows_in_order(const Piece& piece, const std::optional<std::string>& header, const TextGrammar& grammar,
                      CountProgress& progress) {
  TextSource source({piece.file}, header, grammar);
  int64_t before = 0;
  for (TextBlock block; source.next(block); before = block.bytes_done) progress.add(block.bytes_done - before);
  return source.rows();
}

}  // namespace

int64_t count_rows(const std::vector<std::string>& files, const std::optional<std::string>& header,
                   const TextGrammar& grammar, int threads, const ShowProgress& show, int64_t piece) {
  const std::vector<Piece> pieces = pieces_of(files, grammar.quote != 0, piece);
  int64_t all_bytes = 0;
  for (const std::string& file : files) all_bytes += stream_bytes(file);
  CountProgress progress(show, all_bytes);
  size_t next = 0;
  OrderedWorkers<Counting, int64_t> workers(
      threads,
      [&](Counting& mine) {
        if (next == pieces.size()) return false;
        mine.piece = pieces[next++];
        return true;
      },
      [&](Counting& mine) -> int64_t {
        const Piece& now = mine.piece;
        if (now.end == 0) return rows_in_order(now, header, grammar, progress);
        const int64_t rows = rows_ending_in(now, mine.bytes) - (header && now.begin == 0);
        progress.add(now.end - now.begin);
        return rows;
      });
  int64_t rows = 0;
  while (const std::optional<int64_t> counted = workers.next()) rows += *counted;
  progress.finish();
  return rows;
}

}  // namespace hctr
