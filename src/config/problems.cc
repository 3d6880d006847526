#include "config/problems.h"

#include <algorithm>
#include <cctype>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr size_t kMostListed = 1000;  // maximum number of problems in a message

std::string lower(std::string_view word) {
  std::string letters(word);
  for (char& letter : letters) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return letters;
}

/// The optimal string alignment distance of `a` and `b`.
int edits(std::string_view a, std::string_view b) {
  // `before`, `last` and `row` are rows i - 2, i - 1 and i of the distance matrix.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

void Problems::make_strict() {
  errors_.insert(errors_.end(), warnings_.begin(), warnings_.end());
  warnings_.clear();
}

void Problems::throw_if_any(std::string_view file_name) const {
  if (errors_.empty()) return;
  std::string text = cat(file_name, ": ", errors_.size(), errors_.size() == 1 ? " problem" : " problems");
  for (size_t i = 0; i < std::min(errors_.size(), kMostListed); ++i)
    text += cat("\n  ", errors_[i].pointer.empty() ? "/" : errors_[i].pointer, ": ", errors_[i].message);
  if (errors_.size() > kMostListed) text += cat("\n  and ", errors_.size() - kMostListed, " more");
  throw Error(Kind::config, text);
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates, int max_edits) {
  std::string best;
  // The result must have fewer edits than `least`: at most max_edits, and fewer than `word` has letters.
  int least = std::min<int>(max_edits, static_cast<int>(word.size()) - 1) + 1;
  const std::string letters = lower(word);
  for (const std::string& candidate : candidates) {
    // The difference in length is a lower bound of the edit distance. This test skips most candidates before their
    // distance is computed, which matters if a file has 10^5 words, or one word of a megabyte.
    const size_t longer = std::max(word.size(), candidate.size()), shorter = std::min(word.size(), candidate.size());
    if (longer - shorter >= static_cast<size_t>(std::max(least, 0))) continue;
    if (const int distance = edits(letters, lower(candidate)); distance < least) {
      least = distance;
      best = candidate;
    }
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
