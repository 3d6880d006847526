#include "train/check_report.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/printable.h"
#include "core/base/progress.h"
#include "train/enough_gpus.h"

namespace hctr {
namespace {

constexpr double kGib = 1 << 30;

std::string gib(double bytes) {
  const double value = bytes / kGib;
  return value >= 100 ? formatted("%.0f", value) : value >= 0.01 || value == 0 ? formatted("%.2f", value) : "< 0.01";
}
std::string gib(int64_t bytes) { return gib(static_cast<double>(bytes)); }
std::string ms(double seconds) { return formatted("%.3f", 1e3 * seconds); }

std::string right_aligned(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

/// The indices of the GPUs with the smallest and the largest memory need.
std::pair<size_t, size_t> least_and_most(const MemoryBill& bill) {
  const auto less = [](const auto& a, const auto& b) { return sum_of(a) < sum_of(b); };
  const auto [least, most] = std::minmax_element(bill.gpus.begin(), bill.gpus.end(), less);
  return {static_cast<size_t>(least - bill.gpus.begin()), static_cast<size_t>(most - bill.gpus.begin())};
}

/// Explains how many bytes of rows will be in host memory. Empty if the rows exceed the host memory limit. `too_much`:
/// the bytes that do not fit on the GPU.
std::string host_rows_text(const CheckReport& report, double too_much) {
  const size_t fullest = least_and_most(report.memory).second;
  const int64_t of_moving = report.memory.of_moving_rows[fullest];
  too_much += static_cast<double>(of_moving);
  int64_t rows = 0;
  for (const auto& [name, bytes] : report.memory.gpus[fullest])
    if (name.starts_with("rows of table ")) rows += bytes;
  const auto& most = report.memory.most_host_rows;
  if (too_much > static_cast<double>(rows) || (most && too_much > static_cast<double>(*most))) return "";
  return cat("\n  With this config about ", gib(too_much), " GiB of rows will be in host memory",
             most ? "" : ", if the host has as much free memory", ", and steps will be slower; ", gib(of_moving),
             " GiB of this memory are access statistics and positions of rows.");
}

struct TiersText {
  std::string text;
  bool too_little = false;  ///< whether some rows do not fit
};

/// Placement of a budget's rows per tier, on the most loaded rank. `on_gpu`: the budget's limit on a GPU; none on a
/// CPU.
TiersText tiers_text(const MemoryBill::Rows& rows, const MemoryBill::Budget& budget,
                     const std::optional<int64_t>& on_gpu) {
  const bool has_disk = !budget.folder.empty();
  const auto numbers = static_cast<double>(rows.numbers);
  // On a GPU, the keys, index and statistics of all rows are in GPU memory, whichever tier has the row itself. A
  // quarter of the host memory is reserved for the map of rows on disk.
  const auto gpu = static_cast<double>(on_gpu.value_or(0)),
             host = static_cast<double>(*budget.most_in_memory) * (has_disk ? 0.75 : 1.0);
  auto besides = static_cast<double>(rows.besides);
  if (on_gpu && numbers + besides > gpu) besides += static_cast<double>(rows.to_move);
  // fraction of the rows that fit into memory
  double share = std::min(1.0, (gpu + host) / std::max(1.0, numbers + besides));
  if (on_gpu && besides > 0) share = std::min(share, gpu / besides);
  const double there = on_gpu ? std::min(gpu, share * (numbers + besides)) : 0,
               in_memory = share * (numbers + besides) - there, left = (1 - share) * numbers;
  std::string text;
  if (on_gpu)
    text += cat(gib(there), " GiB on the GPU (", gib(share * besides), " of them keys, index and statistics), ");
  text += cat(gib(in_memory), " GiB in memory", on_gpu ? " of the host" : "");
  if (has_disk) text += cat(", ", gib(left), " GiB on disk in '", budget.folder, "'");
  const bool little_disk = has_disk && budget.most_on_disk && left > static_cast<double>(*budget.most_on_disk),
             little_memory = !has_disk && share < 1;
  if (little_disk)
    text += cat(", but \"disk_limit\" allows only ", gib(*budget.most_on_disk), " GiB, and about ", gib(left),
                " GiB per rank are needed");
  if (little_memory)
    text += cat("; ", gib(left), " GiB of rows do not fit: \"host\" needs about ",
                gib(numbers + besides - std::min(gpu, numbers + besides)), " GiB per rank");
  return {text, little_disk || little_memory};
}

/// A budget's fraction of a tier that several budgets share. The fraction is proportional to the bytes of the budget's
/// rows.
std::optional<int64_t> part_of_tier(const MemoryBill& bill, size_t rank, const MemoryBill::Budget& budget,
                                    bool RowMemory::Tiers::*tier, const std::optional<int64_t>& most) {
  if (!most || !(budget.shared.*tier)) return most;
  const auto bytes_of = [&](const MemoryBill::Budget& of) {
    MemoryBill::Rows rows;
    for (const std::string& table : of.tables) rows += bill.rows[rank].at(table);
    return static_cast<double>(rows.numbers + rows.besides);
  };
  double all = 0;
  for (const MemoryBill::Budget& of : bill.budgets) all += of.shared.*tier ? bytes_of(of) : 0;
  return all > 0 ? static_cast<int64_t>(static_cast<double>(*most) * bytes_of(budget) / all) : most;
}

struct BudgetLine {
  std::string text;
  bool of_gpu = false, too_little = false;
};

/// Describes the rows in each tier, for each budget that states "gpu" or names a disk.
std::vector<BudgetLine> budget_lines(const MemoryBill& bill, const std::optional<double>& gpu_bytes) {
  const size_t fullest = least_and_most(bill).second;
  std::vector<BudgetLine> lines;
  for (MemoryBill::Budget budget : bill.budgets) {
    budget.most_on_gpu = part_of_tier(bill, fullest, budget, &RowMemory::Tiers::device, budget.most_on_gpu);
    budget.most_in_memory = part_of_tier(bill, fullest, budget, &RowMemory::Tiers::host, budget.most_in_memory);
    budget.most_on_disk = part_of_tier(bill, fullest, budget, &RowMemory::Tiers::disk, budget.most_on_disk);
    const bool has_disk = !budget.folder.empty();
    MemoryBill::Rows rows;
    int64_t in_parts = 0;
    std::string names;
    for (const std::string& table : budget.tables) {
      rows += bill.rows[fullest].at(table);
      names += cat(names.empty() ? " of " : ", ", table);
      for (const auto& [name, bytes] : bill.gpus[fullest]) in_parts += name == "rows of table " + table ? bytes : 0;
    }
    const bool alone = bill.budgets.size() > 1 || budget.tables.size() != bill.rows[fullest].size();
    const std::string start = cat("Rows", alone ? names : "", " when training on ");
    const std::string end =
        has_disk ? cat("; up to ", budget.bytes_of_row_there, " bytes of memory for each row on disk\n") : "\n";
    if (!budget.most_in_memory || rows.numbers == 0) {
      if (!has_disk) continue;
      std::string text = cat(start, "the CPU: ");
      if (rows.numbers == 0)
        text += cat("up to ", budget.most_in_memory ? gib(*budget.most_in_memory) + " GiB" : "0.8 of the free memory",
                    " in memory, all other rows on disk in '", budget.folder, "'", end);
      else
        text += cat(gib(rows.numbers + rows.besides),
                    " GiB including keys; rows that do not fit in 0.8 of the free memory go to disk in '",
                    budget.folder, "'\n");
      lines.push_back({text});
      continue;
    }
    std::optional<int64_t> on_gpu = budget.most_on_gpu;
    if (!on_gpu && gpu_bytes)
      on_gpu = std::max<int64_t>(0, static_cast<int64_t>(*gpu_bytes) - (sum_of(bill.gpus[fullest]) - in_parts));
    const auto add = [&](const char* where, const std::optional<int64_t>& most_on_gpu) {
      const TiersText tiers = tiers_text(rows, budget, most_on_gpu);
      lines.push_back({cat(start, where, tiers.text, end), most_on_gpu.has_value(), tiers.too_little});
    };
    if (on_gpu) add("a GPU: ", on_gpu);
    if (has_disk) add("the CPU: ", {});
  }
  return lines;
}

/// The start of the advice for a config that does not fit.
std::string more_gpus_text(const std::optional<int64_t>& enough) {
  if (!enough) return "Use more GPUs,";
  const int64_t hosts = (*enough + kGpusOfHost - 1) / kGpusOfHost;
  return cat("It fits on ", *enough, " such GPUs", hosts > 1 ? cat(" (", hosts, " hosts of ", kGpusOfHost, ")") : "",
             "; or use");
}

std::string memory_text(const CheckReport& report) {
  const MemoryBill& bill = report.memory;
  const auto [least, most] = least_and_most(bill);
  const bool alike = bill.gpus[least] == bill.gpus[most];
  std::vector<std::vector<std::string>> rows = {
      {"GiB", alike && bill.gpus.size() > 1 ? "each GPU" : cat("GPU ", most)}};
  if (!alike) rows[0].push_back(cat("GPU ", least));
  for (size_t p = 0; p < bill.gpus[most].size(); ++p) {
    rows.push_back({bill.gpus[most][p].first, gib(bill.gpus[most][p].second)});
    if (!alike) rows.back().push_back(gib(bill.gpus[least][p].second));
  }
  rows.push_back({"all", gib(sum_of(bill.gpus[most]))});
  if (!alike) rows.back().push_back(gib(sum_of(bill.gpus[least])));
  size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row[0].size());
  std::string text = bill.gpus.size() == 1
                         ? cat("Memory of the GPU, with ", report.samples, " samples per step:\n")
                         : cat("Memory of ", bill.gpus.size(), " GPUs, with ", report.samples,
                               " samples per step on each", alike ? "" : "; the most and the least loaded GPU", ":\n");
  for (const auto& row : rows) {
    text += "  " + filled_up(row[0], width + 2);
    for (size_t c = 1; c < row.size(); ++c) text += right_aligned(row[c], 10);
    text += "\n";
  }
  for (const auto& [name, bytes] : bill.bytes_of_unknown_rows)
    text += cat("  table ", name, ": ", bytes, " bytes per row; the number of rows is unknown without data\n");
  if (const auto fits = report.fits()) {
    const double needed = static_cast<double>(sum_of(bill.gpus[most]));
    text += *fits
                ? cat("  It fits: ", gib(needed), " of ", gib(*report.gpu_bytes), " GiB",
                      bill.bytes_of_unknown_rows.empty() ? "" : ", without unknown rows", ".\n")
                : cat("  It does not fit: GPU ", most, " needs ", gib(needed), " GiB but has ", gib(*report.gpu_bytes),
                      ": ", gib(needed - *report.gpu_bytes), " GiB too much. ", more_gpus_text(report.enough_gpus),
                      " a smaller \"batchsize\" or rows of two bytes per element.",
                      host_rows_text(report, needed - *report.gpu_bytes), "\n");
  }
  if (report.processes > 1)
    text +=
        cat("  On several hosts up to ", gib(*std::max_element(bill.between_hosts.begin(), bill.between_hosts.end())),
            " more GiB on each GPU, to pack messages between hosts.\n");
  for (const BudgetLine& line : budget_lines(bill, report.gpu_bytes)) text += line.text;
  text += "Host memory:";
  for (size_t p = 0; p < bill.host.size(); ++p)
    text += cat(p == 0 ? " " : ", ", bill.host[p].first, " ", gib(bill.host[p].second), " GiB");
  return text + "\n";
}

std::string exchange_text(const CheckReport& report) {
  if (!report.exchange) return "";
  const ExchangeForecast& exchange = *report.exchange;
  return cat("  Between ", exchange.gpus, " GPUs of one host, at ", formatted("%.0f", exchange.link_bytes / 1e9),
             " GB/s: vectors about ", ms(exchange.vectors), " ms, gradients of vectors ", ms(exchange.gradients),
             " ms, all-reduces of gradients ", ms(exchange.sums), " ms. A step takes ", ms(exchange.in_step),
             " ms longer than on one GPU; the rest overlaps the layers' backward pass.\n");
}

std::string step_text(const CheckReport& report) {
  const StepForecast& step = *report.step;
  const double seconds = report.step_seconds();
  const auto gpus = static_cast<int64_t>(report.memory.gpus.size());
  std::string text =
      cat("Expected time of a step of ", report.samples, gpus > 1 ? " samples on each of " : " samples on ",
          gpus > 1          ? cat(gpus, " ")
          : report.measured ? "this "
                            : "",
          report.gpu, ": ", ms(seconds), " ms, ",
          with_unit_prefix(static_cast<double>(report.samples * gpus) / seconds), " samples/s; without reading",
          gpus > 1 && !report.exchange ? " and without the exchange between GPUs, whose links are unknown" : "", ".\n",
          "  dense layers ", ms(step.layers), " ms, tables ", ms(step.tables), " ms, launches of ", step.parts.size(),
          " kernels ", ms(step.starts), " ms; copies at ", formatted("%.2f", report.ceilings.copy_bytes / 1e12),
          " TB/s, GEMMs at ", formatted("%.0f", report.ceilings.product_flops / 1e12), " TFLOP/s, ",
          report.measured ? "measured" : "according to its data sheet", "\n", exchange_text(report),
          report.keys_counted ? ""
                              : "  Keys are assumed to follow a power law: use --check-data to count the keys of "
                                "the data.\n");
  std::vector<StepForecast::Part> parts = step.parts;
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  parts.resize(std::min<size_t>(parts.size(), 5));
  for (const StepForecast::Part& part : parts)
    text += cat("  ", filled_up(part.what.part, 17), filled_up(part.what.type, 14), filled_up(part.what.name, 20), " ",
                ms(part.seconds), " ms\n");
  return text;
}

Json to_json(const MemoryBill::Parts& parts) {
  Json json(Json::Object{});
  for (const auto& [name, bytes] : parts) json.set(name, bytes);
  return json;
}

Json to_json(const ExchangeForecast& exchange) {
  return Json::Object{{"gpus", exchange.gpus},
                      {"link_bytes_per_s", exchange.link_bytes},
                      {"vectors_ms", 1e3 * exchange.vectors},
                      {"gradients_ms", 1e3 * exchange.gradients},
                      {"sums_ms", 1e3 * exchange.sums},
                      {"in_step_ms", 1e3 * exchange.in_step}};
}

Json to_json(const StepForecast& step, const CheckReport& report) {
  Json parts(Json::Array{});
  for (const StepForecast::Part& part : step.parts)
    parts.add(Json::Object{{"part", part.what.part},
                           {"type", part.what.type},
                           {"name", part.what.name},
                           {"ms", 1e3 * part.seconds},
                           {"bytes", part.what.work.bytes},
                           {"flops", part.what.work.flops}});
  return Json::Object{{"gpu", report.gpu},
                      {"measured", report.measured},
                      {"keys_counted", report.keys_counted},
                      {"samples", report.samples},
                      {"ms", 1e3 * report.step_seconds()},
                      {"layers_ms", 1e3 * step.layers},
                      {"tables_ms", 1e3 * step.tables},
                      {"starts_ms", 1e3 * step.starts},
                      {"exchange", report.exchange ? to_json(*report.exchange) : Json()},
                      {"copy_bytes_per_s", report.ceilings.copy_bytes},
                      {"product_flop_per_s", report.ceilings.product_flops},
                      {"parts", std::move(parts)}};
}

}  // namespace

std::vector<std::string> budgets_too_small(const MemoryBill& bill, const std::optional<double>& gpu_bytes) {
  std::vector<std::string> sentences;
  for (const BudgetLine& line : budget_lines(bill, gpu_bytes))
    if (line.too_little && line.of_gpu == gpu_bytes.has_value())
      sentences.push_back(line.text.substr(0, line.text.find('\n')));
  return sentences;
}

std::optional<bool> CheckReport::fits() const {
  if (!gpu_bytes) return std::nullopt;
  return static_cast<double>(sum_of(memory.gpus[least_and_most(memory).second])) <= *gpu_bytes;
}

std::string text_of(const CheckReport& report) {
  std::string text = report.layers + report.plan + memory_text(report);
  if (report.step) text += step_text(report);
  for (const std::string& sentence : report.unwritable) text += cat("warning: ", sentence, "\n");
  return text;
}

Json to_json(const CheckReport& report) {
  Json gpus(Json::Array{}), unknown(Json::Object{}), unwritable(Json::Array{});
  for (size_t g = 0; g < report.memory.gpus.size(); ++g) {
    const MemoryBill::Parts& gpu = report.memory.gpus[g];
    gpus.add(Json::Object{
        {"bytes", sum_of(gpu)}, {"parts", to_json(gpu)}, {"more_on_several_hosts", report.memory.between_hosts[g]}});
  }
  for (const auto& [name, bytes] : report.memory.bytes_of_unknown_rows) unknown.set(name, bytes);
  for (const std::string& sentence : report.unwritable) unwritable.add(sentence);
  Json memory(Json::Object{{"samples", report.samples},
                           {"gpus", std::move(gpus)},
                           {"host", to_json(report.memory.host)},
                           {"bytes_of_unknown_rows", std::move(unknown)}});
  Json disks(Json::Array{});
  bool any_disk = false;
  for (const MemoryBill::Budget& of : report.memory.budgets) {
    if (of.folder.empty()) continue;
    any_disk = true;
    Json tables(Json::Array{});
    for (const std::string& table : of.tables) tables.add(table);
    Json disk(Json::Object{
        {"folder", of.folder}, {"tables", std::move(tables)}, {"bytes_in_memory_of_row", of.bytes_of_row_there}});
    if (of.most_on_gpu) disk.set("most_on_gpu", *of.most_on_gpu);
    if (of.most_in_memory) disk.set("most_in_memory", *of.most_in_memory);
    if (of.most_on_disk) disk.set("most_on_disk", *of.most_on_disk);
    disks.add(std::move(disk));
  }
  if (any_disk) memory.set("disks", std::move(disks));
  if (report.gpu_bytes) memory.set("gpu_bytes", *report.gpu_bytes).set("fits", *report.fits());
  if (report.enough_gpus) memory.set("enough_gpus", *report.enough_gpus);
  Json json(Json::Object{{"schema", 1}, {"kind", "check"}, {"config", report.config}, {"memory", std::move(memory)}});
  if (report.step) json.set("step", to_json(*report.step, report));
  return json.set("unwritable", std::move(unwritable));
}

}  // namespace hctr
