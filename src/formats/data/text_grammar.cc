#include "formats/data/text_grammar.h"

#include <bit>
#include <cstring>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;

uint64_t repeated(char c) { return kOnes * static_cast<uint8_t>(c); }
/// Returns a word with byte 0x80 for each zero byte of `word`, and 0 for the other bytes.
uint64_t zero_bytes(uint64_t word) { return ~(((word & ~kHighs) + ~kHighs) | word | ~kHighs); }

/// Loads eight bytes at `p`, which is below `end`; bytes past `end` are zero.
uint64_t load_word(const char* p, const char* end) {
  uint64_t word = 0;
  if (end - p >= static_cast<ptrdiff_t>(sizeof word)) [[likely]]
    std::memcpy(&word, p, sizeof word);
  else
    std::memcpy(&word, p, static_cast<size_t>(end - p));
  return word;
}

/// Finds the first delimiter or line end, eight bytes at a time. Returns `end` when there is none.
const char* find_break(const char* p, const char* end, uint64_t delimiters, uint64_t newlines) {
  for (; p < end; p += 8) {
    const uint64_t word = load_word(p, end);
    if (const uint64_t hits = zero_bytes(word ^ delimiters) | zero_bytes(word ^ newlines)) {
      const char* hit = p + std::countr_zero(hits) / 8;
      return hit < end ? hit : end;
    }
  }
  return end;
}

const char* find(const char* p, const char* end, char c) {
  return p < end ? static_cast<const char*>(std::memchr(p, c, static_cast<size_t>(end - p))) : nullptr;
}

/// Finds the quote that closes a value. `p`: the first character after the opening quote. Returns null if the quote is
/// not closed.
const char* closing_quote(const char* p, const char* end, char quote, bool* doubled) {
  for (;;) {
    const char* at = find(p, end, quote);
    if (!at || at + 1 == end || at[1] != quote) return at;
    *doubled = true;
    p = at + 2;
  }
}

/// The address of the quote that opens the cell at `p`; null if the cell is not quoted.
template <bool kTrim>
const char* opening_quote(const TextGrammar& grammar, const char* p, const char* end) {
  if constexpr (kTrim)
    while (p < end && grammar.is_blank(*p)) ++p;
  return p < end && *p == grammar.quote ? p : nullptr;
}

/// Whether the character at `quote` is a quote that opens a cell. `begin`: the start of the text.
bool opens_cell(const TextGrammar& grammar, const char* begin, const char* quote) {
  const char* p = quote;
  if (grammar.trim)
    while (p > begin && grammar.is_blank(p[-1])) --p;
  return p == begin || p[-1] == grammar.delimiter || p[-1] == '\n';
}

/// The end of a cell before a line end at `at`, without carriage returns. `begin`: the start of the cell.
const char* before_returns(const char* begin, const char* at) {
  while (at > begin && at[-1] == '\r') --at;
  return at;
}

}  // namespace

size_t end_of_last_record(std::string_view text, const TextGrammar& grammar) {
  if (grammar.quote == 0) return text.rfind('\n') + 1;
  const char *const begin = text.data(), *const end = begin + text.size();
  size_t last = 0;
  for (const char* p = begin;;) {  // here p is outside quotes
    const char* quote = p;
    for (;; ++quote) {  // find the next opening quote
      quote = find(quote, end, grammar.quote);
      if (!quote || opens_cell(grammar, begin, quote)) break;
    }
    const std::string_view outside(p, static_cast<size_t>((quote ? quote : end) - p));
    if (const size_t newline = outside.rfind('\n'); newline != outside.npos)
      last = static_cast<size_t>(p - begin) + newline + 1;
    if (!quote) return last;
    bool doubled = false;
    const char* close = closing_quote(quote + 1, end, grammar.quote, &doubled);
    if (!close) return last;
    p = close + 1;
    if (p == end) return last;
  }
}

void RecordSplitter::add(const char* begin, const char* end) {
  if (count_ == cells_.size()) cells_.resize(2 * count_);
  cells_[count_++] = {begin, static_cast<size_t>(end - begin)};
}

template <bool kTrim>
void RecordSplitter::add_plain(const char* begin, const char* end) {
  if constexpr (kTrim) {
    while (begin < end && grammar_.is_blank(*begin)) ++begin;
    while (begin < end && grammar_.is_blank(end[-1])) --end;
  }
  add(begin, end);
}

const char* RecordSplitter::split(const char* p, const char* end) {
  count_ = 0;
  unclosed_ = false;
  if (!problem_.empty()) problem_.clear();
  if (!unescaped_.empty()) unescaped_.clear();
  if (!grammar_.more.empty()) return split_at_word(p, end);
  return grammar_.trim ? split_at_character<true>(p, end) : split_at_character<false>(p, end);
}

template <bool kTrim>
const char* RecordSplitter::split_at_character(const char* p, const char* end) {
  const uint64_t delimiters = repeated(grammar_.delimiter), newlines = repeated('\n');
  // Finds all separators eight bytes at a time. `p` is the start of the current cell.
  for (const char* word_at = p;;) {
    if (const char* quote = grammar_.quote != 0 ? opening_quote<kTrim>(grammar_, p, end) : nullptr) {
      const char* at = quoted(quote, end);
      if (at == end) return end;
      if (*at == '\n') return at + 1;
      word_at = p = at + 1;
      continue;
    }
    uint64_t breaks = 0;
    if (word_at < end) {
      const uint64_t word = load_word(word_at, end);
      breaks = zero_bytes(word ^ delimiters) | zero_bytes(word ^ newlines);
    }
    bool quote_next = false;
    for (; breaks != 0 && !quote_next; breaks &= breaks - 1) {
      const char* at = word_at + std::countr_zero(breaks) / 8;
      if (at >= end) break;
      if (*at == '\n') {
        add_plain<kTrim>(p, before_returns(p, at));
        return at + 1;
      }
      add_plain<kTrim>(p, at);
      p = at + 1;
      quote_next = grammar_.quote != 0 && opening_quote<kTrim>(grammar_, p, end);
    }
    if (quote_next) continue;
    word_at += 8;
    if (word_at >= end) {
      add_plain<kTrim>(p, before_returns(p, end));
      return end;
    }
  }
}

/// Splits at a multi-character delimiter. Quoting is not supported.
const char* RecordSplitter::split_at_word(const char* p, const char* end) {
  const char* const newline = find(p, end, '\n');
  const char* const line_end = before_returns(p, newline ? newline : end);
  const auto add_cell = [&](const char* begin, const char* behind) {
    grammar_.trim ? add_plain<true>(begin, behind) : add_plain<false>(begin, behind);
  };
  const auto rest_matches = [&](const char* first) {
    return std::string_view(first + 1, static_cast<size_t>(line_end - first - 1)).starts_with(grammar_.more);
  };
  for (const char *cell = p, *at = p;;) {
    at = find(at, line_end, grammar_.delimiter);
    if (!at) {
      add_cell(cell, line_end);
      return newline ? newline + 1 : end;
    }
    if (!rest_matches(at)) {
      ++at;
      continue;
    }
    add_cell(cell, at);
    cell = at = at + 1 + grammar_.more.size();
  }
}

/// Reads the quoted cell that starts with the quote at `p`. Returns the delimiter or line end after the cell.
const char* RecordSplitter::quoted(const char* p, const char* end) {
  bool doubled = false;
  const char* close = closing_quote(p + 1, end, grammar_.quote, &doubled);
  if (!close) {
    unclosed_ = true;
    if (problem_.empty()) problem_ = cat("the quote that opens value ", count_ + 1, " is never closed");
    add(p, end);
    return end;
  }
  const char* at = find_break(close + 1, end, repeated(grammar_.delimiter), repeated('\n'));
  const char* behind = at == end || *at == '\n' ? before_returns(close + 1, at) : at;
  if (grammar_.trim)
    while (behind > close + 1 && grammar_.is_blank(behind[-1])) --behind;
  if (behind != close + 1 && problem_.empty())
    problem_ = cat("value ", count_ + 1, " continues after its closing quote: '",
                   std::string_view(close + 1, static_cast<size_t>(behind - close - 1)).substr(0, 40), "'");
  if (!doubled) {
    add(p + 1, close);
  } else {
    std::string& text = unescaped_.emplace_back();
    for (const char* c = p + 1; c < close; ++c) {
      text += *c;
      c += *c == grammar_.quote;
    }
    add(text.data(), text.data() + text.size());
  }
  return at;
}

}  // namespace hctr
