#include "formats/catalog/first_rows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/base/expect.h"
#include "core/base/moments.h"
#include "formats/catalog/open_set.h"
#include "formats/catalog/visit_first_rows.h"

namespace hctr {
namespace {

/// Calls visit for each column whose statistics are learned. Arguments: the column, its index among the dense values,
/// and whether the logarithm is applied.
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

/// Sets mean and standard deviation from the values in `rows` rows. Warns if the deviation is 0.
void settle(const NumberStatistics& found, int64_t rows, ColumnStatistics& one, const Log& log) {
  constexpr double kExact = 0x1p53;  // doubles represent all integers up to 2^53 exactly
  one.values = found.moments.count();
  one.mean = found.moments.mean();
  if (const double deviation = found.moments.deviation(); deviation > 0)
    one.std = deviation;
  else if (one.values == 0)
    log.warning("column '", one.column, "' is empty in the first ", rows, " rows and is not standardized");
  else if (found.varies())
    log.warning("column '", one.column, "' varies from ", Json(found.least).text(), " to ", Json(found.most).text(),
                " in the first ", rows, " rows, too little for a standard deviation: only the mean is subtracted");
  else
    log.warning("column '", one.column, "' is ", Json(one.mean).text(), " in each of the first ", rows, " rows",
                std::abs(one.mean) <= kExact ? "" : " when rounded to 53 bits", ": only the mean is subtracted");
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
                                ", which \"standardize\" reads from the model: the model was trained without "
                                "\"standardize\", or its manifest is missing; set \"mean\" and \"std\" next to "
                                "\"transform\""));
  return all;
}

std::vector<ColumnStatistics> learn_statistics(const DataSection& section, KeyWidth width, const Log& log) {
  std::vector<size_t> places;
  for_each_learned(section, [&](const std::string&, size_t place, bool) { places.push_back(place); });
  std::vector<ColumnStatistics> all = neutral_statistics(section);
  if (all.empty()) return all;
  DataSection own = without_slots(section);
  for (DenseColumns& group : *columns_of(own)->dense)
    if (group.learned()) group.fallback = std::numeric_limits<double>::quiet_NaN();  // NaN marks empty cells
  Source source = training_source(own);
  source.labels_optional = true;
  const auto dim = static_cast<size_t>(own.dense.dense_dim);
  std::vector<NumberStatistics> found(all.size());
  std::vector<double> values;
  int64_t rows = 0;
  in_context([&] { return cat("learning mean and standard deviation of dense columns from '", source.path, "'"); },
             [&] {
               const auto set = open_set(own, source, width, Log::silent());
               const auto add = [&](const SampleBlock& block, int64_t count) {
                 for (size_t c = 0; c < places.size(); ++c) {
                   values.clear();
                   for (size_t r = 0; r < static_cast<size_t>(count); ++r)
                     values.push_back(block.exact_dense(r * dim + places[c]));
                   found[c].add(values);
                 }
                 return true;
               };
               rows = visit_first_rows(*set, add, true).rows;
             });
  log.info("Mean and standard deviation of ", all.size(), all.size() == 1 ? " dense column" : " dense columns",
           " were computed from the first ", rows, rows == 1 ? " row" : " rows", " of '", source.path, "'",
           rows < kFirstRows ? "." : cat(", the maximum."));
  for (size_t c = 0; c < all.size(); ++c) settle(found[c], rows, all[c], log);
  return all;
}

}  // namespace hctr
