#include "serve/proto_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "core/base/expect.h"

namespace hctr::serve {
namespace {

constexpr int kDeepest = 50;

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

class ProtoText {
 public:
  ProtoText(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Json read() {
    Json message = read_fields('\0', 0);
    return message;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    throw Error(Kind::config, cat(name_, ": line ", line, ": ", what));
  }
  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v')
        ++at_;
      else
        return;
    }
  }
  char peek() {
    skip_blanks();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  std::string found() { return peek() == '\0' ? "the end of the text" : cat("'", std::string(1, text_[at_]), "'"); }
  std::string_view word() {
    skip_blanks();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  /// Reads fields up to the closing bracket `closes`; '\0': up to the end of the text.
  Json read_fields(char closes, int depth) {
    if (depth > kDeepest) fail(cat("messages are nested deeper than ", kDeepest, " levels"));
    Json message{Json::Object{}};
    for (;;) {
      if (closes == '\0' ? peek() == '\0' && at_ == text_.size() : take(closes)) return message;
      const std::string field(word());
      if (field.empty()) fail(cat("expected the name of a field, found ", found()));
      const bool colon = take(':');
      if (take('[')) {
        if (!add_list(message, field, depth)) fail(cat("the list of '", field, "' has no ']'"));
      } else if (const char opens = peek(); opens == '{' || opens == '<') {
        ++at_;
        add(message, field, read_fields(opens == '{' ? '}' : '>', depth + 1));
      } else if (colon) {
        add(message, field, scalar(field));
      } else {
        fail(cat("expected ':' or '{' after '", field, "', found ", found()));
      }
      if (!take(',')) take(';');
    }
  }

  bool add_list(Json& message, const std::string& field, int depth) {
    if (!message.find(field)) message.set(field, Json::Array{});
    if (take(']')) return true;
    for (;;) {
      if (const char opens = peek(); opens == '{' || opens == '<') {
        ++at_;
        add(message, field, read_fields(opens == '{' ? '}' : '>', depth + 1));
      } else {
        add(message, field, scalar(field));
      }
      if (take(']')) return true;
      if (!take(',')) return false;
    }
  }

  /// Adds a field. A second value of the same field turns the first one into an array.
  static void add(Json& message, const std::string& field, Json value) {
    const Json* before = message.find(field);
    if (!before) {
      message.set(field, std::move(value));
      return;
    }
    auto* const there = const_cast<Json*>(before);
    if (!there->array()) *there = Json(Json::Array{*there});
    there->add(std::move(value));
  }

  Json scalar(const std::string& field) {
    const char first = peek();
    if (first == '"' || first == '\'') return strings();
    const bool minus = take('-');
    skip_blanks();
    const size_t begin = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.' ||
                                  ((text_[at_] == '+' || text_[at_] == '-') && at_ > begin && !hex_at(begin) &&
                                   (text_[at_ - 1] | 32) == 'e')))
      ++at_;
    std::string token(text_.substr(begin, at_ - begin));
    if (token.empty()) fail(cat("expected the value of '", field, "', found ", found()));
    if ((token[0] >= '0' && token[0] <= '9') || token[0] == '.') return number(token, minus);
    if (token == "inf" || token == "infinity") return Json(minus ? -HUGE_VAL : HUGE_VAL);
    if (token == "nan") return Json(std::numeric_limits<double>::quiet_NaN());
    if (minus) fail(cat("'-", token, "' is not a number"));
    if (token == "true" || token == "True" || token == "t") return Json(true);
    if (token == "false" || token == "False" || token == "f") return Json(false);
    if (!std::all_of(token.begin(), token.end(), is_word)) fail(cat("'", token, "' is not a value"));
    return Json(std::move(token));
  }
  bool hex_at(size_t begin) const { return begin + 1 < text_.size() && (text_[begin + 1] | 32) == 'x'; }

  Json number(std::string token, bool minus) {
    const bool hex = token.size() > 2 && (token[1] | 32) == 'x';
    const bool octal = !hex && token.size() > 1 && token[0] == '0' && token.find_first_not_of("01234567") == token.npos;
    const char* begin = token.c_str() + (hex ? 2 : 0);
    const char* end = token.c_str() + token.size();
    uint64_t whole = 0;
    const auto integer = std::from_chars(begin, end, whole, hex ? 16 : octal ? 8 : 10);
    if (integer.ec == std::errc() && integer.ptr == end) {
      constexpr uint64_t kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      if (whole > kMost) fail(cat("the integer ", token, " is beyond 64 bits"));
      return Json(minus ? -static_cast<int64_t>(whole) : static_cast<int64_t>(whole));
    }
    if (!hex && (token.back() | 32) == 'f') token.pop_back();
    double value = 0;
    const auto fraction = std::from_chars(token.c_str(), token.c_str() + token.size(), value);
    if (hex || fraction.ec != std::errc() || fraction.ptr != token.c_str() + token.size())
      fail(cat("'", token, "' is not a number"));
    return Json(minus ? -value : value);
  }

  /// Reads adjacent string literals and concatenates them.
  Json strings() {
    std::string value;
    for (char quote = peek(); quote == '"' || quote == '\''; quote = peek()) {
      ++at_;
      while (at_ < text_.size() && text_[at_] != quote) {
        if (text_[at_] == '\n') fail("a string is not closed before the end of the line");
        if (text_[at_] == '\\')
          escape(value);
        else
          value += text_[at_++];
      }
      if (at_ == text_.size()) fail("a string has no closing quote");
      ++at_;
    }
    return Json(std::move(value));
  }

  void escape(std::string& value) {
    if (++at_ == text_.size()) fail("a string ends in '\\'");
    const char c = text_[at_++];
    constexpr std::string_view kLetters = "abfnrtv?\\'\"", kMeaning = "\a\b\f\n\r\t\v?\\'\"";
    if (const size_t known = kLetters.find(c); known != kLetters.npos) {
      value += kMeaning[known];
    } else if (c >= '0' && c <= '7') {
      int code = c - '0';
      for (int i = 0; i < 2 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i)
        code = code * 8 + (text_[at_++] - '0');
      value += static_cast<char>(code);
    } else if (c == 'x' || c == 'X') {
      unsigned code = 0;
      const char* begin = text_.data() + at_;
      const auto read = std::from_chars(begin, begin + std::min<size_t>(2, text_.size() - at_), code, 16);
      if (read.ec != std::errc()) fail("'\\x' needs a hexadecimal number");
      at_ += static_cast<size_t>(read.ptr - begin);
      value += static_cast<char>(code);
    } else {
      fail(cat("'\\", std::string(1, c), "' is not a supported escape"));
    }
  }

  std::string_view text_, name_;
  size_t at_ = 0;
};

}  // namespace

Json read_proto_text(std::string_view text, std::string_view name) { return ProtoText(text, name).read(); }

}  // namespace hctr::serve
