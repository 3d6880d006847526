#include "data/formats/first_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/moments.h"
#include "data/formats/format_table.h"

namespace hctr {
namespace {

std::optional<StatedColumns> columns_of(DataSection& section) {
  const FormatType& format = format_type(section.format);
  return format.columns ? format.columns(section) : std::nullopt;
}

/// Calls visit for each column whose statistics are learned: the column, its place among the dense values, and whether
/// its logarithm is taken.
void for_each_learned(const DataSection& section,
                      const std::function<void(const std::string& column, size_t place, bool log)>& visit) {
  DataSection own = section;
  const auto columns = columns_of(own);
  size_t place = 0;
  for (size_t g = 0; columns && g < columns->dense->size(); ++g) {
    const DenseColumns& group = (*columns->dense)[g];
    for (const std::string& column : group.columns) {
      if (group.learned()) visit(column, place, group.transform.log);
      ++place;
    }
  }
}

/// Reads the first rows of each file. visit(block, rows) returns false to end. Returns the rows visited. `exact`: with
/// dense values before they are rounded.
int64_t visit_first_rows(SampleSet& set, const std::function<bool(const SampleBlock&, int64_t rows)>& visit,
                         bool exact = false) {
  const auto files = static_cast<int64_t>(set.files().size());
  const int64_t most = (kFirstRows + files - 1) / files;
  const std::unique_ptr<Parser> parser = set.parser();
  Chunk chunk;
  SampleBlock block;
  block.wants_exact = exact;
  int64_t all = 0;
  for (int64_t f = 0; f < files && all < kFirstRows; ++f) {
    const std::unique_ptr<Cutter> cutter = set.open(static_cast<size_t>(f), {});
    chunk.file = static_cast<size_t>(f);
    for (int64_t left = most; left > 0 && cutter->next(chunk);) {
      parser->parse(chunk, block);
      const int64_t rows = std::min(block.rows, left);
      left -= rows;
      all += rows;
      if (!visit(block, rows)) return all;
    }
  }
  return all;
}

/// Takes mean and deviation of what was found in `rows` rows, and warns where there is no deviation.
void settle(const NumberStatistics& found, int64_t rows, ColumnStatistics& one, const Log& log) {
  constexpr double kExact = 0x1p53;  // up to here doubles tell integers apart
  one.values = found.moments.count();
  one.mean = found.moments.mean();
  if (const double deviation = found.moments.deviation(); deviation > 0)
    one.std = deviation;
  else if (one.values == 0)
    log.warning("column '", one.column, "' is empty in the first ", rows, " rows: it is not standardised");
  else if (found.varies())
    log.warning("column '", one.column, "' varies from ", Json(found.least).text(), " to ", Json(found.most).text(),
                " in the first ", rows, " rows, too little for a standard deviation: only the mean is subtracted");
  else
    log.warning("column '", one.column, "' is ", Json(one.mean).text(), " in each of the first ", rows, " rows",
                std::abs(one.mean) <= kExact ? "" : " as a number of 53 bits", ": only that is subtracted");
}

/// A copy of the section for a look at labels and dense values alone: no keys.
DataSection without_slots(const DataSection& section) {
  DataSection own = section;
  if (const auto columns = columns_of(own)) columns->slots->clear();
  own.sparse.clear();
  own.slot_size_array.clear();
  own.statistics = neutral_statistics(section);
  return own;
}

}  // namespace

bool needs_statistics(const DataSection& section) {
  bool any = false;
  for_each_learned(section, [&](const std::string&, size_t, bool) { any = true; });
  return any;
}

std::vector<ColumnStatistics> neutral_statistics(const DataSection& section) {
  std::vector<ColumnStatistics> all;
  for_each_learned(section,
                   [&](const std::string& column, size_t, bool log) { all.push_back({.column = column, .log = log}); });
  return all;
}

std::vector<ColumnStatistics> select_statistics(const DataSection& section, const std::vector<ColumnStatistics>& known,
                                                const std::string& of) {
  std::vector<ColumnStatistics> all;
  std::string missing;
  for_each_learned(section, [&](const std::string& column, size_t, bool log) {
    if (const ColumnStatistics* one = find_statistics(known, column, log))
      all.push_back(*one);
    else
      missing += cat(missing.empty() ? "'" : ", '", column, "'", log ? " (of its log)" : "");
  });
  if (!missing.empty())
    throw Error(Kind::data, cat(of, " has no mean and standard deviation of ", missing,
                                ", which \"standardize\" takes from the model: it was trained without, or its "
                                "manifest is not there; give \"mean\" and \"std\" next to \"transform\""));
  return all;
}

std::vector<ColumnStatistics> learn_statistics(const DataSection& section, KeyWidth width, const Log& log) {
  std::vector<size_t> places;
  for_each_learned(section, [&](const std::string&, size_t place, bool) { places.push_back(place); });
  std::vector<ColumnStatistics> all = neutral_statistics(section);
  if (all.empty()) return all;
  DataSection own = without_slots(section);
  for (DenseColumns& group : *columns_of(own)->dense)
    if (group.learned()) group.fallback = std::numeric_limits<double>::quiet_NaN();  // marks empty cells
  Source source = training_source(own);
  source.labels_optional = true;
  const auto dim = static_cast<size_t>(own.dense.dense_dim);
  std::vector<NumberStatistics> found(all.size());
  std::vector<double> values;
  int64_t rows = 0;
  in_context([&] { return cat("learning mean and standard deviation of dense columns from '", source.path, "'"); },
             [&] {
               const auto set = format_type(own.format).open(own, source, width, Log::silent());
               const auto add = [&](const SampleBlock& block, int64_t count) {
                 for (size_t c = 0; c < places.size(); ++c) {
                   values.clear();
                   for (size_t r = 0; r < static_cast<size_t>(count); ++r)
                     values.push_back(block.exact_dense(r * dim + places[c]));
                   found[c].add(values);
                 }
                 return true;
               };
               rows = visit_first_rows(*set, add, true);
             });
  log.info("Mean and standard deviation of ", all.size(), all.size() == 1 ? " dense column" : " dense columns",
           " are of the first ", rows, rows == 1 ? " row" : " rows", " of '", source.path, "'",
           rows < kFirstRows ? "." : cat(", the most that are looked at."));
  for (size_t c = 0; c < all.size(); ++c) settle(found[c], rows, all[c], log);
  return all;
}

void check_positives(const DataSection& section, const Source& source, KeyWidth width, const Log& log) {
  DataSection own = without_slots(section);
  const auto columns = columns_of(own);
  std::vector<size_t> unseen;
  for (size_t l = 0; columns && l < columns->labels->size(); ++l)
    if ((*columns->labels)[l].positive.given()) unseen.push_back(l);
  if (unseen.empty()) return;
  const std::vector<size_t> asked = unseen;
  columns->dense->clear();
  own.dense.dense_dim = 0;
  Source of_texts = source;
  const auto set_of = [&](const Source& from) { return format_type(own.format).open(own, from, width, Log::silent()); };
  std::unique_ptr<SampleSet> set = set_of(of_texts);
  if (!set->has_labels()) return;
  if (set->keeps_columns()) {
    for (const size_t l : asked) of_texts.keep.push_back((*columns->labels)[l].column);
    set = set_of(of_texts);
  }
  const auto dim = columns->labels->size();
  constexpr size_t kMostTexts = 5;
  std::vector<std::set<std::string>> texts(dim);
  const auto index_of = [&](size_t l) {
    return static_cast<size_t>(std::find(asked.begin(), asked.end(), l) - asked.begin());
  };
  const int64_t rows = visit_first_rows(*set, [&](const SampleBlock& block, int64_t count) {
    std::erase_if(unseen, [&](size_t l) {
      for (int64_t r = 0; r < count; ++r)
        if (block.label[static_cast<size_t>(r) * dim + l] == 1) return true;
      return false;
    });
    for (const size_t l : unseen)
      for (int64_t r = 0; r < count && !of_texts.keep.empty() && texts[l].size() <= kMostTexts; ++r)
        texts[l].insert(
            std::string(block.kept.cell(static_cast<size_t>(r) * asked.size() + index_of(l)).substr(0, 40)));
    return !unseen.empty();
  });
  for (const size_t l : unseen) {
    const LabelColumn& label = (*columns->labels)[l];
    std::string there;
    for (const std::string& text : texts[l]) there += cat(there.empty() ? "; there are '" : ", '", text, "'");
    if (texts[l].size() > kMostTexts) there += " and others";
    log.warning("no label of '", source.path, "' is 1: none of its first ", rows, " rows has ",
                describe(label.positive), " in column '", label.column, "'", there);
  }
}

}  // namespace hctr
