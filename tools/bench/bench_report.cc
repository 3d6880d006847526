#include "bench_report.h"

#include "core/base/files.h"
#include "program/terminal.h"

namespace hctr::bench {

void Report::add(const std::string& what, const std::string& where, double value, const std::string& unit,
                 double ceiling) {
  print_formatted("%-44s %-30s %10.3f %-12s", what.c_str(), where.c_str(), value, unit.c_str());
  if (ceiling > 0) print_formatted(" %5.1f %% of %.3f", 100 * value / ceiling, ceiling);
  print_formatted("\n");
  flush_output();
  record(what, where, value, unit, ceiling);
}

void Report::record(const std::string& what, const std::string& where, double value, const std::string& unit,
                    double ceiling) {
  Json figure(Json::Object{{"what", what}, {"case", where}, {"value", value}, {"unit", unit}});
  if (ceiling > 0) figure.set("ceiling", ceiling);
  figures_.add(std::move(figure));
}

void Report::write_json(const std::string& path) const {
  write_text(path, Json(Json::Object{{"schema", 1}, {"device", device_}, {"figures", figures_}}).text(2) + "\n");
}

}  // namespace hctr::bench
