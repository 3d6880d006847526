#include "formats/data/bracketed_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "formats/data/text_values.h"

namespace hctr {
namespace {

constexpr std::string_view kBlanks = " \t\n\r";

bool is_list_blank(char c) { return kBlanks.find(c) != kBlanks.npos; }
bool is_quote(char c) { return c == '\'' || c == '"'; }
bool is_letter(char c) { return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_'; }

std::string_view bare(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

char closing_of(char open) { return open == '[' ? ']' : open == '(' ? ')' : open == '{' ? '}' : '\0'; }

/// The contents of a text in angle brackets such as "<3, 5>"; empty for other texts such as "<a>, <b>" and "<unk".
std::optional<std::string_view> in_angles(std::string_view text) {
  if (text.size() < 2 || text.front() != '<' || text.back() != '>') return std::nullopt;
  text = bare(text.substr(1, text.size() - 2));
  return text.find_first_of("<>") == text.npos ? std::optional(text) : std::nullopt;
}

/// Strips a type name and NumPy's dtype suffix: "array([1, 2], dtype=int32)" becomes "[1, 2]".
std::string_view without_type(std::string_view text) {
  const auto name_end = std::find_if_not(text.begin(), text.end(), [](char c) { return is_letter(c) || c == '.'; });
  const auto name = static_cast<size_t>(name_end - text.begin());
  if (name == 0 || name == text.size() || text[name] != '(' || text.back() != ')') return text;
  const std::string_view inside = bare(text.substr(name + 1, text.size() - name - 2));
  if (inside.empty()) return text.substr(name);
  const size_t end = inside.rfind(closing_of(inside.front()));
  if (closing_of(inside.front()) == '\0' || end == inside.npos) return text;
  const std::string_view rest = bare(inside.substr(end + 1));
  return rest.empty() || rest.starts_with(",") ? inside.substr(0, end + 1) : text;
}

/// If `text` starts with a NumPy type name and a bracket, such as "np.int64(", returns their length; else 0.
size_t type_of_scalar(std::string_view text) {
  if (!text.starts_with("np.") && !text.starts_with("numpy.")) return 0;
  const auto end = std::find_if_not(text.begin(), text.end(),
                                    [](char c) { return is_letter(c) || c == '.' || (c >= '0' && c <= '9'); });
  return end != text.end() && *end == '(' ? static_cast<size_t>(end - text.begin()) + 1 : 0;
}

/// The offset after the closing quote of a quoted value at the start of `text`; npos if the quote is not closed.
size_t end_of_quoted(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == text[0] && i + 1 < text.size() && text[i + 1] == text[0])
      ++i;
    else if (text[i] == text[0])
      return i + 1;
  }
  return text.npos;
}

/// Whether blanks separate the values. True if every value is a number, a null word such as "None", or quoted.
bool is_between_blanks(std::string_view text) {
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of(kBlanks), text.size());
    if (is_quote(text.front())) {
      end = end_of_quoted(text);
      if (end == text.npos || (end < text.size() && !is_list_blank(text[end]))) return false;
    } else if (double number = 0; !read_number(text.substr(0, end), number)) {
      const std::string_view word = text.substr(0, end);
      if (word != "None" && word != "nan" && word != "NaN" && word != "null" && word != "...") return false;
    }
    text = bare(text.substr(end));
  }
  return true;
}

void add_utf8(std::string& text, uint32_t code) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | (code >> 18 & 7));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool take_hex(std::string_view& text, size_t digits, uint32_t& code) {
  if (text.size() < digits) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, code, 16);
  if (error != std::errc() || end != text.data() + digits) return false;
  text.remove_prefix(digits);
  return true;
}

/// Decodes a JSON or Python escape and appends the character to `to`. `text` starts after the escape's backslash; the
/// escape is removed from `text`.
void take_escape(std::string_view& text, std::string& to) {
  constexpr std::string_view letters = "nrtbfav0", characters("\n\r\t\b\f\a\v\0", 8);
  const char letter = text.front();
  text.remove_prefix(1);
  const size_t digits = letter == 'u' ? 4 : letter == 'x' ? 2 : letter == 'U' ? 8 : 0;
  uint32_t code = 0, low = 0;
  if (digits > 0 && take_hex(text, digits, code)) {
    std::string_view next = text;  // JSON writes a code point of 2^16 or more as two escapes
    const bool high = code >> 10 == 0xd800 >> 10 && next.starts_with("\\u");
    if (high) next.remove_prefix(2);
    if (high && take_hex(next, 4, low) && low >> 10 == 0xdc00 >> 10) {
      code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
      text = next;
    }
    return add_utf8(to, code);
  }
  const size_t at = letters.find(letter);
  if (at == letters.npos && letter != '\\' && letter != '/' && !is_quote(letter)) to += '\\';  // not an escape
  to += at == letters.npos ? letter : characters[at];
}

}  // namespace

bool is_in_brackets(std::string_view text) {
  if (in_angles(text)) return true;
  text = without_type(text);
  return text.size() >= 2 && closing_of(text.front()) != '\0' && closing_of(text.front()) == text.back();
}

bool BracketedList::read(std::string_view cell, char separator) {
  values_.clear();
  unescaped_.clear();
  problem_ = "";
  std::string_view text = without_type(bare(cell));
  in_braces_ = text.starts_with('{');
  if (const auto inside = in_angles(text)) {
    double number = 0;
    const bool one = inside->find(separator == 0 ? ',' : separator) == inside->npos && !inside->empty() &&
                     !is_quote(inside->front()) && !read_number(*inside, number);
    if (one && (separator != 0 || !is_between_blanks(*inside))) {
      problem_ = "the value may be a list of one value or a text such as <unk>; add such texts to \"missing\"";
      return false;
    }
    text = *inside;
  }
  if (!text.empty() && closing_of(text.front()) != '\0') {
    if (!is_in_brackets(text)) {
      problem_ = "its bracket is never closed";
      return false;
    }
    text = bare(text.substr(1, text.size() - 2));
  }
  if (separator == 0) separator = text.size() < 3 || !is_between_blanks(text) ? ',' : ' ';
  return read_values(text, separator);
}

bool BracketedList::read_values(std::string_view text, char separator) {
  const auto ends_value = [&](char c) { return c == separator || (separator == ' ' && is_list_blank(c)); };
  while (!text.empty()) {
    const bool prefixed = text.size() > 2 && is_quote(text[1]) && std::string_view("bBuUrR").find(text[0]) != text.npos;
    const size_t type = type_of_scalar(text);
    text.remove_prefix(prefixed ? 1 : type);  // removes the prefix of Python's b'text' or NumPy's np.int64(5)
    if (!text.empty() && is_quote(text.front())) {
      if (!read_quoted(text)) return false;
      text = bare(text);
      if (type > 0 && text.starts_with(')')) text = bare(text.substr(1));
      if (!text.empty() && !ends_value(text.front()) && separator != ' ') {
        problem_ = in_braces_ && text.front() == ':' ? "the value is a map; expected a list"
                                                     : "a value continues after its closing quote";
        return false;
      }
    } else {
      const auto end = static_cast<size_t>(std::find_if(text.begin(), text.end(), ends_value) - text.begin());
      std::string_view value = bare(text.substr(0, end));
      if (type > 0 && value.ends_with(')')) value.remove_suffix(1);
      if (!add_plain(value)) return false;
      text.remove_prefix(end);
    }
    if (!text.empty() && text.front() == separator) text.remove_prefix(1);
    text = bare(text);
  }
  return true;
}

bool BracketedList::add_plain(std::string_view value) {
  if (value == "...")
    problem_ = "NumPy abbreviated the list with '...'";
  else if (!value.empty() && (closing_of(value.front()) != '\0' || value.back() == ']' || value.back() == '}'))
    problem_ = "the list contains lists";
  else if (in_braces_ && value.find(':') != value.npos)
    problem_ = "the value is a map; expected a list";
  else
    add(value);
  return *problem_ == '\0';
}

/// Adds the quoted value at the start of `text` and removes it from `text`.
bool BracketedList::read_quoted(std::string_view& text) {
  const char quote = text.front();
  const size_t end = end_of_quoted(text);
  if (end == text.npos) {
    problem_ = "a quote is never closed";
    return false;
  }
  std::string_view inside = text.substr(1, end - 2);
  text.remove_prefix(end);
  if (inside.find_first_of("\\'\"") == inside.npos) {
    add(inside);
    return true;
  }
  std::string& value = unescaped_.emplace_back();
  while (!inside.empty()) {
    const char c = inside.front();
    inside.remove_prefix(1);
    if (c == '\\' && !inside.empty()) {
      take_escape(inside, value);
      continue;
    }
    value += c;
    if (c == quote && inside.starts_with(quote)) inside.remove_prefix(1);  // a doubled quote is one quote
  }
  add(value);
  return true;
}

}  // namespace hctr
