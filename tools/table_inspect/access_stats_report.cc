#include "access_stats_report.h"

#include "bars.h"
#include "program/terminal.h"

namespace hctr {
namespace {

Json show_bins(const char* title, const std::vector<AccessStatsSummary::Bin>& bins) {
  int64_t most = 0;
  for (const auto& bin : bins) most = std::max(most, bin.rows);
  Json out(Json::Array{});
  print_formatted("\n  %-22s       rows\n", title);
  for (const auto& bin : bins) {
    print_formatted("  %10lld %10lld  %10lld  %s\n", static_cast<long long>(bin.from),
                    static_cast<long long>(bin.to - 1), static_cast<long long>(bin.rows), bar(bin.rows, most).c_str());
    out.add(Json(Json::Object{{"from", bin.from}, {"to", bin.to}, {"rows", bin.rows}}));
  }
  return out;
}

}  // namespace

Json show_access_stats(const AccessStatsHead& head, const AccessStatsSummary& summary) {
  Json json(Json::Object{{"steps", head.steps}, {"rows", head.rows}});
  print_formatted("  access statistics of %lld training steps\n", static_cast<long long>(head.steps));
  if (head.occurrences) {
    const double mean =
        static_cast<double>(summary.occurrences()) / static_cast<double>(std::max<int64_t>(1, summary.rows()));
    print_formatted("  keys    occurred %lld times, %.4g times on average, at most %lld times\n",
                    static_cast<long long>(summary.occurrences()), mean,
                    static_cast<long long>(summary.most_occurrences()));
    json.set("occurrences", summary.occurrences()).set("most_occurrences", summary.most_occurrences());
    json.set("by_occurrences", show_bins("occurrences, from  to", summary.by_occurrences()));
  }
  if (head.last_seen) json.set("by_steps_unseen", show_bins("steps unseen, from  to", summary.by_steps_unseen()));
  return json;
}

}  // namespace hctr
