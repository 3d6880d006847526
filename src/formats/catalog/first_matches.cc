#include "formats/catalog/first_matches.h"

#include <algorithm>
#include <set>

#include "core/base/expect.h"
#include "formats/catalog/first_rows.h"
#include "formats/catalog/open_set.h"
#include "formats/catalog/slot_rules_of.h"
#include "formats/catalog/unlisted_keys.h"
#include "formats/catalog/visit_first_rows.h"

namespace hctr {
namespace {

constexpr const char* kAllowIt = ". Add --unmatched allow to continue anyway";

/// The state of the search for a label's "positive", which consists of texts or of a minimum.
struct LookedFor {
  size_t label;
  const LabelColumn& column;
  bool seen = false;               // some label is 1
  bool other_seen = false;         // some label is not 1
  std::set<std::string> unseen{};  // words of "positive" not found yet; empty if "positive" has only one
  std::set<std::string> texts{};   // first texts of the column, until a label is 1

  bool done() const { return seen && other_seen && unseen.empty(); }
};

constexpr size_t kMostTexts = 5;

/// Updates the search state with a block of rows. `place`: the label's index among the kept text columns.
void look_at(const SampleBlock& block, int64_t rows, size_t labels, size_t place, size_t kept, LookedFor& one) {
  for (int64_t r = 0; r < rows && !one.seen; ++r)
    one.seen = block.label[static_cast<size_t>(r) * labels + one.label] == 1;
  for (int64_t r = 0; r < rows && !one.other_seen; ++r)
    one.other_seen = block.label[static_cast<size_t>(r) * labels + one.label] == 0;
  for (int64_t r = 0; r < rows && kept > 0 && !one.done(); ++r) {
    const std::string cell(block.kept.cell(static_cast<size_t>(r) * kept + place));
    one.unseen.erase(cell);
    if (!one.seen && one.texts.size() <= kMostTexts) one.texts.insert(cell.substr(0, 40));
  }
}

std::string list_of_texts(const std::set<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += cat(list.empty() ? "'" : ", '", text, "'");
  return list;
}

void report_label(const LookedFor& one, const FirstRowsRead& read, const fs::path& path, bool allow_unmatched,
                  const Log& log) {
  const auto report = [&](const std::string& text) {
    if (read.whole && read.rows >= kUnmatchedToFail && !allow_unmatched) throw Error(Kind::data, cat(text, kAllowIt));
    log.warning(text);
  };
  if (one.seen) {
    if (!one.unseen.empty())
      log.info("note: the first ", read.rows, " rows of '", path.string(), "' never contain ",
               list_of_texts(one.unseen), " in column '", one.column.column, "', although \"positive\" lists ",
               one.unseen.size() == 1 ? "this text." : "these texts.");
    if (!one.other_seen)
      report(cat("each label of '", path.string(), "' is 1: all of its first ", read.rows, " rows have ",
                 describe(one.column.positive), " in column '", one.column.column, "'"));
    return;
  }
  const std::string text = cat("no label of '", path.string(), "' is 1: none of its first ", read.rows, " rows has ",
                               describe(one.column.positive), " in column '", one.column.column, "'",
                               one.texts.empty() ? "" : cat("; there are ", list_of_texts(one.texts)),
                               one.texts.size() > kMostTexts ? " and others" : "");
  report(text);
}

/// The search state of a slot with a vocabulary.
struct ListedSlot {
  size_t slot;
  std::string column;
  int64_t unlisted_key, values = 0, listed = 0;
};

void count_listed(const SampleBlock& block, int64_t rows, ListedSlot& one) {
  for (int64_t r = 0; r < rows; ++r) {
    const size_t bag = one.slot * static_cast<size_t>(block.rows) + static_cast<size_t>(r);
    const auto begin = block.offsets[bag], end = block.offsets[bag + 1];
    for (int32_t k = begin; k < end; ++k) one.listed += block.keys[static_cast<size_t>(k)] != one.unlisted_key;
    one.values += end - begin;
  }
}

}  // namespace

void check_positives(const DataSection& section, const Source& source, KeyWidth width, bool allow_unmatched,
                     const Log& log) {
  DataSection own = without_slots(section);
  const auto columns = columns_of(own);
  std::vector<LookedFor> wanted;
  for (size_t l = 0; columns && l < columns->labels->size(); ++l)
    if (const LabelColumn& label = (*columns->labels)[l]; label.positive.given()) wanted.push_back({l, label});
  if (wanted.empty()) return;
  columns->dense->clear();
  own.dense.dense_dim = 0;
  Source of_texts = source;
  const auto set_of = [&](const Source& from) { return open_set(own, from, width, Log::silent()); };
  std::unique_ptr<SampleSet> set = set_of(of_texts);
  if (!set->has_labels()) return;
  if (set->keeps_columns()) {
    for (LookedFor& one : wanted) {
      of_texts.keep.push_back(one.column.column);
      const auto& words = one.column.positive.texts;
      if (words.size() > 1) one.unseen = {words.begin(), words.end()};
    }
    set = set_of(of_texts);
  }
  const FirstRowsRead read = visit_first_rows(*set, [&](const SampleBlock& block, int64_t rows) {
    for (size_t i = 0; i < wanted.size(); ++i)
      look_at(block, rows, columns->labels->size(), i, of_texts.keep.size(), wanted[i]);
    return !std::all_of(wanted.begin(), wanted.end(), [](const LookedFor& one) { return one.done(); });
  });
  for (const LookedFor& one : wanted) report_label(one, read, source.path, allow_unmatched, log);
}

void check_vocabularies(const DataSection& section, const Source& source, KeyWidth width, bool allow_unmatched,
                        const Log& log) {
  const std::vector<SlotRule> rules = slot_rules_of(section);
  const std::vector<std::optional<int64_t>> unlisted = unlisted_keys(section);
  std::vector<ListedSlot> slots;
  for (size_t s = 0; s < std::min(rules.size(), unlisted.size()); ++s)
    if (unlisted[s]) slots.push_back({.slot = s, .column = rules[s].column, .unlisted_key = *unlisted[s]});
  if (slots.empty()) return;
  DataSection own = section;
  own.statistics = neutral_statistics(section);
  const auto set = open_set(own, source, width, Log::silent());
  const FirstRowsRead read = visit_first_rows(*set, [&](const SampleBlock& block, int64_t rows) {
    for (ListedSlot& one : slots)
      if (one.listed == 0) count_listed(block, rows, one);
    return std::any_of(slots.begin(), slots.end(), [](const ListedSlot& one) { return one.listed == 0; });
  });
  for (const ListedSlot& one : slots) {
    if (one.listed > 0 || one.values == 0) continue;
    const std::string text = cat("'", source.path, "': the vocabulary of column '", one.column, "' has none of ",
                                 one.values == 1 ? "the value" : cat("the ", one.values, " values"), " in the first ",
                                 read.rows, read.rows == 1 ? " row" : " rows",
                                 ", so all these values share one key; does the vocabulary file "
                                 "spell the values differently?");
    if (one.values >= kUnmatchedToFail && !allow_unmatched)
      throw Error(Kind::data, cat(text, " Add --unmatched allow to train anyway"));
    log.warning(text);
  }
}

}  // namespace hctr
