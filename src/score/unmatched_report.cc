// Reports unmatched keys, vocabulary values and groups of evaluation batches.
#include <algorithm>
#include <cctype>

#include "core/base/expect.h"
#include "core/base/progress.h"
#include "score/key_matches.h"

namespace hctr {
namespace {

std::string share_text(double share) { return formatted("%.3g %%", 100 * share); }

using Share = double (SlotMatches::*)() const;

/// The text "user_id 37.5 %, city 2 %": slots by descending share; slots with share 0 are omitted.
std::string text_of_shares(const std::vector<SlotMatches>& slots, Share share, size_t most) {
  std::vector<SlotMatches> some;
  for (const SlotMatches& slot : slots)
    if ((slot.*share)() > 0) some.push_back(slot);
  std::stable_sort(some.begin(), some.end(),
                   [&](const SlotMatches& a, const SlotMatches& b) { return (a.*share)() > (b.*share)(); });
  std::string text;
  for (size_t i = 0; i < std::min(most, some.size()); ++i)
    text += cat(text.empty() ? "" : ", ", some[i].slot, " ", share_text((some[i].*share)()));
  if (some.size() > most) text += cat(", and ", some.size() - most, " more slots");
  return text.empty() ? "none" : text;
}

bool any_of(const std::vector<SlotMatches>& slots, bool SlotMatches::*which) {
  return std::any_of(slots.begin(), slots.end(), [&](const SlotMatches& slot) { return slot.*which; });
}

Json json_of_shares(const std::vector<SlotMatches>& slots, bool SlotMatches::*which, Share share) {
  Json shares(Json::Object{});
  for (const SlotMatches& slot : slots)
    if (slot.*which) shares.set(slot.slot, (slot.*share)());
  return shares;
}

}  // namespace

std::string describe(const std::vector<SlotMatches>& slots, size_t most) {
  return text_of_shares(slots, &SlotMatches::share, most);
}
std::string describe_unlisted(const std::vector<SlotMatches>& slots, size_t most) {
  return text_of_shares(slots, &SlotMatches::unlisted_share, most);
}

std::vector<std::string> lines_of(const std::vector<SlotMatches>& slots) {
  std::vector<std::string> lines;
  if (any_of(slots, &SlotMatches::has_rows)) lines.push_back(cat("keys without a row in the model: ", describe(slots)));
  if (any_of(slots, &SlotMatches::has_vocabulary))
    lines.push_back(cat("values that the vocabulary lacks: ", describe_unlisted(slots)));
  if (any_of(slots, &SlotMatches::of_groups))
    lines.push_back(cat("samples without a group, which GroupedAUC excludes: ",
                        text_of_shares(slots, &SlotMatches::without_group_share, 1)));
  return lines;
}

void add_matches(const std::vector<SlotMatches>& slots, Json& object) {
  object.set("unmatched_keys", json_of_shares(slots, &SlotMatches::has_rows, &SlotMatches::share));
  if (any_of(slots, &SlotMatches::has_vocabulary))
    object.set("unlisted_values", json_of_shares(slots, &SlotMatches::has_vocabulary, &SlotMatches::unlisted_share));
  if (any_of(slots, &SlotMatches::of_groups))
    object.set("without_group", json_of_shares(slots, &SlotMatches::of_groups, &SlotMatches::without_group_share));
}

void warn_of_unmatched(const std::vector<SlotMatches>& slots, const std::string& of, const Log& log) {
  const auto large = [&](Share share) {
    std::vector<SlotMatches> some;
    for (const SlotMatches& slot : slots)
      if ((slot.*share)() > kUnmatchedToWarn) some.push_back(slot);
    return some;
  };
  if (const auto some = large(&SlotMatches::share); !some.empty())
    log.warning("most keys of ", some.size() == 1 ? "a slot" : "some slots", " of ", of,
                " did not occur in training, have no row, and count as zero vectors: ", describe(some));
  if (const auto some = large(&SlotMatches::unlisted_share); !some.empty())
    log.warning("most values of ", some.size() == 1 ? "a slot" : "some slots", " of ", of,
                " are missing in the vocabulary, and share one key: ", describe_unlisted(some));
  if (const auto some = large(&SlotMatches::without_group_share); !some.empty())
    log.warning("most samples of ", of, " have no group and are excluded from GroupedAUC: ",
                text_of_shares(some, &SlotMatches::without_group_share, 1));
}

void report_unmatched(const std::vector<SlotMatches>& slots, const std::string& data, const Log& log) {
  for (std::string line : lines_of(slots)) {
    line[0] = static_cast<char>(std::toupper(line[0]));
    log.info(line, ".");
  }
  warn_of_unmatched(slots, cat("'", data, "'"), log);
}

void expect_matches(const std::vector<SlotMatches>& slots, const std::string& data) {
  std::string none, unlisted;
  for (const SlotMatches& slot : slots) {
    if (slot.values >= kUnmatchedToFail && slot.unlisted == slot.values)
      unlisted += cat(unlisted.empty() ? "" : ", ", slot.slot, " (", slot.values, " values)");
    else if (slot.keys >= kUnmatchedToFail && slot.unmatched == slot.keys)
      none += cat(none.empty() ? "" : ", ", slot.slot, " (", slot.keys, " keys)");
  }
  if (!unlisted.empty())
    throw Error(Kind::data, cat("'", data, "': the vocabulary of a slot contains none of the slot's values: ", unlisted,
                                ". Does the vocabulary file spell the values differently? Add --unmatched allow to "
                                "score these samples anyway, with one key for all values"));
  if (none.empty()) return;
  throw Error(
      Kind::data,
      cat("'", data, "': no key of a slot has a row in the model, so none of its values occurred in training: ", none,
          ". Did the training data spell the values differently, such as 1.0 instead of 1? Add --unmatched allow "
          "to score these samples anyway, with zero vectors"));
}

}  // namespace hctr
