#include "core/base/expect.h"

#include <charconv>

#include "core/base/source_place.h"

namespace hctr {

TextPiece::TextPiece(double value) {
  const auto end = std::to_chars(number_, number_ + sizeof number_, value, std::chars_format::general, 6).ptr;
  text_ = {number_, static_cast<size_t>(end - number_)};
}

TextPiece::TextPiece(long long value) {
  text_ = {number_, static_cast<size_t>(std::to_chars(number_, number_ + sizeof number_, value).ptr - number_)};
}

TextPiece::TextPiece(unsigned long long value) {
  text_ = {number_, static_cast<size_t>(std::to_chars(number_, number_ + sizeof number_, value).ptr - number_)};
}

std::string join(std::initializer_list<TextPiece> pieces) {
  size_t size = 0;
  for (const TextPiece& piece : pieces) size += piece.text().size();
  std::string text;
  text.reserve(size);
  for (const TextPiece& piece : pieces) text += piece.text();
  return text;
}

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::usage:
      return "usage";
    case Kind::config:
      return "config";
    case Kind::data:
      return "data";
    case Kind::io:
      return "io";
    case Kind::device:
      return "device";
    case Kind::comm:
      return "comm";
    case Kind::bug:
      return "bug";
    case Kind::interrupted:
      return "interrupted";
  }
  return "bug";
}

int exit_code(Kind kind) {
  switch (kind) {
    case Kind::usage:
      return 2;
    case Kind::config:
      return 3;
    case Kind::data:
      return 4;
    case Kind::io:
      return 5;
    case Kind::device:
      return 6;
    case Kind::comm:
      return 7;
    case Kind::interrupted:
      return 130;
    case Kind::bug:
      break;
  }
  return 1;
}

Error Error::with_context(std::string_view what) const { return Error(kind_, cat(this->what(), "\n  while ", what)); }

std::string source_place(std::string_view file, int line) {
  constexpr std::string_view kRoot = "/src/";
  const size_t at = file.rfind(kRoot);
  return cat(at == file.npos ? file : file.substr(at + 1), ":", line);
}

void broken_promise(const char* file, int line, const std::string& message) {
  throw Error(Kind::bug, cat(message, "; ", source_place(file, line)));
}

}  // namespace hctr
