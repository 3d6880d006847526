#include "config/problems.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace hctr {
namespace {

/// Optimal string alignment distance, case-insensitive.
int edits(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

void Problems::make_strict() {
  errors_.insert(errors_.end(), warnings_.begin(), warnings_.end());
  warnings_.clear();
}

void Problems::throw_if_any(std::string_view file_name) const {
  if (errors_.empty()) return;
  std::string text = cat(file_name, ": ", errors_.size(), errors_.size() == 1 ? " problem" : " problems");
  for (const Entry& entry : errors_)
    text += cat("\n  ", entry.pointer.empty() ? "/" : entry.pointer, ": ", entry.message);
  throw Error(Kind::config, text);
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates, int max_edits) {
  std::string best;
  int least =
      std::min<int>(max_edits, static_cast<int>(word.size()) - 1) + 1;  // nothing is close to a word of one letter
  for (const std::string& candidate : candidates)
    if (const int distance = edits(word, candidate); distance < least) {
      least = distance;
      best = candidate;
    }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, int max_edits) {
  const std::string best = nearest(word, candidates, max_edits);
  return best.empty() ? "" : cat("; did you mean \"", best, "\"?");
}

std::string one_of(const std::vector<std::string>& choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i)
    text += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  return text;
}

}  // namespace hctr
