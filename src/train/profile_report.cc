#include "train/profile_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tuple>

#include "core/base/expect.h"
#include "train/run_folder.h"
#include "train/time_shares.h"
#include "train/traced_steps.h"

namespace hctr {
namespace {

using Interval = std::pair<double, double>;

/// Sorts and merges the intervals.
std::vector<Interval> joined(std::vector<Interval> all) {
  std::sort(all.begin(), all.end());
  std::vector<Interval> out;
  for (const Interval& next : all)
    if (!out.empty() && next.first <= out.back().second)
      out.back().second = std::max(out.back().second, next.second);
    else
      out.push_back(next);
  return out;
}

double length(const std::vector<Interval>& all) {
  double sum = 0;
  for (const auto& [begin, end] : all) sum += end - begin;
  return sum;
}

/// The length of the intersection of two sorted lists of disjoint intervals.
double common(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  double sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    sum += std::max(0.0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    a[i].second < b[j].second ? ++i : ++j;
  }
  return sum;
}

std::string fixed(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}
std::string milliseconds(double time) { return fixed(time * 1e3, time < 1e-3 ? 3 : time < 0.1 ? 2 : 1); }
std::string percent(double share) { return fixed(100 * share, share < 0.1 ? 1 : 0); }

/// Seconds of the GEMMs at peak rate.
double product_seconds(const Work& work, const Ceilings& most) {
  const double fp8 = most.fp8_flops > 0 ? work.fp8_flops : 0;
  return (work.flops - fp8) / most.product_flops + (fp8 > 0 ? fp8 / most.fp8_flops : 0);
}
double copy_seconds(const Work& work, const Ceilings& most) { return work.bytes / most.copy_bytes; }

/// The sum of all parts of one type.
struct PartGroup {
  std::string type;
  double share = 0;
  double products = 0, copies = 0;  // seconds at peak rates for the GEMMs and copies within `share`
  double launches = 0;              // kernel launches within `share`
};

std::vector<PartGroup> groups_of(const StepTimes& step) {
  std::map<std::string, PartGroup> by_type;
  for (const PartTime& part : step.parts) {
    PartGroup& group = by_type[part.type];
    group.type = part.type;
    const double products = product_seconds(part.work, step.ceilings), copies = copy_seconds(part.work, step.ceilings);
    // the fraction of the part's time that is attributed to the part; the rest is attributed to other parts
    const double seen = part.seconds > 0 ? part.share / part.seconds : 0;
    group.share += part.share;
    group.products += seen * products;
    group.copies += seen * copies;
    group.launches += seen * part.work.launches;
  }
  std::vector<PartGroup> groups;
  for (const auto& [type, group] : by_type) groups.push_back(group);
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return groups;
}

/// The rate that the group reaches, "at 81 % of the rate ...", and the conclusion.
std::string limit_of(const PartGroup& group) {
  constexpr double kNear = 0.7;    // fraction of a peak rate above which little can be gained
  constexpr double kShort = 5e-6;  // seconds per launch; an empty kernel takes a third of this
  const double reached = std::max(group.products, group.copies) / group.share;
  const bool products = group.products >= group.copies;
  if (group.share == 0 || reached == 0) return "";
  const std::string at = cat(percent(reached), products ? " % of the rate of large GEMMs on this machine"
                                                        : " % of the speed of a copy on this machine");
  if (!products && reached > 1) return cat(", with tensors that stay in the caches (", at, ")");
  if (reached >= kNear)
    return cat(", at ", at,
               products ? ": limited by arithmetic; only fewer or cheaper multiplications would help"
                        : ": limited by memory bandwidth; only "
                          "moving fewer bytes would help");
  if (group.share < kShort * group.launches)
    return cat(", in ", fixed(group.launches, 0), " kernels of ", fixed(1e6 * group.share / group.launches, 1),
               " us: limited by kernel launches; a larger batch would use the GPU better");
  return cat(", at only ", at, ": limited by the code, not by the machine");
}

/// The priority of a stream. If several streams run at an instant, the instant is attributed to the stream with the
/// lowest value.
int rank_of(Span::On on) {
  return on == Span::On::compute ? 0 : on == Span::On::prepare ? 2 : on == Span::On::host ? 3 : 1;
}

std::string label_of(const PartTime& part) { return cat(part.part, " ", part.name.empty() ? part.type : part.name); }

/// Explains how the seconds of the step were measured.
std::string about_seconds(const StepTimes& step) {
  if (step.unmeasured == 0) return step.traced ? ", traced" : "";
  if (step.traced) return cat(", traced (", milliseconds(step.unmeasured), " as in training)");
  if (step.recorded) return cat(" (sum of the times of its parts and gaps: ", milliseconds(step.measured), ")");
  if (step.trained_recorded)
    return cat(", not recorded (", milliseconds(step.unmeasured), " recorded, as in training)");
  return cat(" (", milliseconds(step.unmeasured), " without measuring parts)");
}

/// Caveats for the reader of the figures.
std::vector<std::string> lines_about_tracing(const StepTimes& step) {
  // A difference between the times of traced and untraced steps is reported above this fraction of the step.
  constexpr double kFar = 0.05;
  std::vector<std::string> lines;
  if (!step.traced && !step.not_traced.empty())
    lines.push_back(cat("Kernels were not traced: ", step.not_traced,
                        ". Parts are measured with events instead, which lengthen short parts by a few "
                        "microseconds."));
  const double longer = step.traced && step.unmeasured > 0 ? step.seconds / step.unmeasured - 1 : 0;
  if (std::abs(longer) > kFar)
    lines.push_back(cat("Steps took ", percent(std::abs(longer)), " % ", longer > 0 ? "more" : "less",
                        " time while traced than untraced: all figures are from traced steps."));
  return lines;
}

/// A line for each pair of parts with a long overlap.
std::vector<std::string> lines_of_beside(const StepTimes& step) {
  constexpr double kLong = 0.01;  // shortest overlap that is reported, as a fraction of the step
  constexpr size_t kMost = 10;
  struct Pair {
    size_t first, second;
    double seconds;
  };
  std::vector<Pair> pairs;
  for (size_t p = 0; p < step.parts.size(); ++p)
    for (const PartTime::Beside& other : step.parts[p].beside)
      if (other.part > p && other.seconds >= kLong * step.seconds) pairs.push_back({p, other.part, other.seconds});
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.seconds > b.seconds; });
  if (pairs.size() > kMost) pairs.resize(kMost);
  std::vector<std::string> lines;
  for (const Pair& pair : pairs)
    lines.push_back(cat(lines.empty() ? "Overlapping parts: " : "                   ", milliseconds(pair.seconds),
                        " ms ", label_of(step.parts[pair.first]), " | ", label_of(step.parts[pair.second])));
  return lines;
}

/// A line for each part with its times and rates.
std::vector<std::string> table_of_parts(const StepTimes& step) {
  std::vector<std::string> lines;
  constexpr size_t kNumber = 11;  // width of a number column
  const auto words_of = [&](const PartTime& part) {
    std::vector<std::string> words = {part.part, part.type, part.name};
    if (step.gpu) words.emplace_back(word(part.on));
    return words;
  };
  std::vector<std::string> head = {"part", "type", "name"};
  if (step.gpu) head.emplace_back("on");
  std::vector<size_t> widths(head.size(), 4);
  for (const PartTime& part : step.parts)
    for (size_t i = 0; i < head.size(); ++i) widths[i] = std::max(widths[i], words_of(part)[i].size());
  const auto row = [&](std::vector<std::string> words, std::initializer_list<std::string> numbers) {
    std::string line = "  ";
    words.resize(head.size());
    for (size_t i = 0; i < words.size(); ++i)
      line += words[i] + std::string(widths[i] - std::min(widths[i], words[i].size()) + 2, ' ');
    for (const std::string& number : numbers)
      line += std::string(kNumber - std::min(kNumber, number.size()), ' ') + number;
    while (line.ends_with(' ')) line.pop_back();
    lines.push_back(line);
  };
  row(head, {"ms", "% step", "GB/s", "% copy", "GFLOP/s", "% products"});
  double small = 0, small_share = 0;
  int64_t smalls = 0;
  for (const PartTime& part : step.parts) {
    if (part.seconds < step.seconds / 1000) {
      small += part.seconds;
      small_share += part.share;
      ++smalls;
      continue;
    }
    const Work& w = part.work;
    row(words_of(part), {milliseconds(part.seconds), percent(part.share / step.seconds),
                         w.bytes > 0 ? fixed(w.bytes / part.seconds / 1e9, 1) : "",
                         w.bytes > 0 ? percent(copy_seconds(w, step.ceilings) / part.seconds) : "",
                         w.flops > 0 ? fixed(w.flops / part.seconds / 1e9, 1) : "",
                         w.flops > 0 ? percent(product_seconds(w, step.ceilings) / part.seconds) : ""});
  }
  if (smalls > 0) row({cat(smalls, " smaller parts")}, {milliseconds(small), percent(small_share / step.seconds)});
  row({"all parts"}, {milliseconds(step.in_parts()), percent(step.in_parts() / step.seconds)});
  row({step.gpu ? "idle" : "the rest"}, {milliseconds(step.idle), percent(step.idle / step.seconds)});
  return lines;
}

}  // namespace

double StepTimes::in_parts() const {
  double sum = 0;
  for (const PartTime& part : parts) sum += part.share;
  return sum;
}

void add_up(const std::vector<Span>& spans, int64_t steps, double seconds, StepTimes& step) {
  const double each = 1 / static_cast<double>(steps);
  step.steps = steps;
  step.seconds = seconds * each;
  step.parts.clear();
  step.streams.clear();
  std::map<std::tuple<Span::On, std::string_view, std::string_view, std::string_view>, size_t> places;
  std::map<Span::On, std::vector<Interval>> busy;
  std::vector<PartInterval> intervals;
  for (const Span& span : spans) {
    const auto [place, is_new] = places.try_emplace({span.on, span.part, span.type, span.name}, step.parts.size());
    if (is_new)
      step.parts.push_back({.on = span.on,
                            .part = std::string(span.part),
                            .type = std::string(span.type),
                            .name = std::string(span.name)});
    PartTime& part = step.parts[place->second];
    part.seconds += (span.end - span.begin) * each;
    part.work.flops += span.work.flops * each;
    part.work.fp8_flops += span.work.fp8_flops * each;
    part.work.bytes += span.work.bytes * each;
    part.work.launches += span.work.launches * each;
    busy[span.on].emplace_back(span.begin, span.end);
    intervals.push_back({place->second, step.gpu ? rank_of(span.on) : 0, span.begin, span.end});
  }
  const TimeShares shares = share_time(intervals, step.parts.size(), 0, seconds);
  step.idle = shares.idle * each;
  for (size_t p = 0; p < step.parts.size(); ++p) {
    PartTime& part = step.parts[p];
    part.share = shares.share[p] * each;
    for (const auto& [other, together] : shares.together[p]) part.beside.push_back({other, together * each});
    std::stable_sort(part.beside.begin(), part.beside.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  }
  for (auto& [on, of_stream] : busy) of_stream = joined(std::move(of_stream));
  for (const auto& [on, of_stream] : busy)
    if (step.gpu && on != Span::On::compute && on != Span::On::host)
      step.streams.push_back({on, length(of_stream) * each, common(of_stream, busy[Span::On::compute]) * each});
}

std::string bottleneck(const StepTimes& step) {
  const std::vector<PartGroup> groups = groups_of(step);
  const auto of_step = [&](double seconds) {
    return cat(milliseconds(seconds), " of ", milliseconds(step.seconds), " ms (", percent(seconds / step.seconds),
               " %)");
  };
  if (groups.empty() || step.idle > groups[0].share)
    return step.gpu ? cat("The bottleneck is the host: the GPU is idle for ", of_step(step.idle), ".")
                    : cat("The bottleneck is none of the parts: ", of_step(step.idle), " pass between parts.");
  const PartGroup& most = groups[0];
  if (most.type == "reader")
    return cat("The bottleneck is the reader: steps wait for data for ", of_step(most.share), ".");
  if (most.type == kStartOfKernels) {
    double launches = 0;
    for (const PartTime& part : step.parts)
      if (part.on != Span::On::prepare) launches += part.work.launches;
    return cat("The bottleneck is launching kernels: for ", of_step(most.share), " the GPU is idle between the ",
               fixed(launches, 0), " kernels of a step: a larger batch would use the GPU better.");
  }
  const std::string what = most.type == "embedding" ? "the embedding tables"
                           : most.type == "weights" ? "the dense weights"
                           : most.type == "batch"   ? "the batch"
                                                    : cat("the layers of type ", most.type);
  return cat("The bottleneck is ", what, ": ", of_step(most.share), limit_of(most), ".");
}

std::vector<std::string> lines_of(const StepTimes& step) {
  std::vector<std::string> lines;
  lines.push_back(cat("Profile of ", step.steps, " steps of ", step.samples, " samples: ", milliseconds(step.seconds),
                      " ms a step", about_seconds(step), "."));
  for (const std::string& line : lines_about_tracing(step)) lines.push_back(line);
  lines.push_back(cat(
      "On this machine now: copies ", fixed(step.ceilings.copy_bytes / 1e9, 1), " GB/s, products of ",
      name_of(step.ceilings.products), " ", fixed(step.ceilings.product_flops / 1e9, 0), " GFLOP/s",
      step.ceilings.fp8_flops > 0 ? cat(", of FP8 ", fixed(step.ceilings.fp8_flops / 1e9, 0), " GFLOP/s") : "", "."));
  for (const std::string& line : table_of_parts(step)) lines.push_back(line);
  for (const std::string& line : lines_of_beside(step)) lines.push_back(line);
  for (const StepTimes::Stream& stream : step.streams)
    lines.push_back(cat("Overlap: the ", word(stream.on), " stream runs ", milliseconds(stream.seconds), " ms, ",
                        milliseconds(stream.hidden), " ms of this time while the compute stream runs."));
  lines.push_back(cat("Processor: ", fixed(step.busy_cores, 2), " of ", step.cores, " cores are busy, with ",
                      step.threads, step.threads == 1 ? " thread" : " threads",
                      " of the step, plus the reader's "
                      "threads."));
  lines.push_back(bottleneck(step));
  return lines;
}

Json to_json(const StepTimes& step) {
  Json parts(Json::Array{});
  for (const PartTime& part : step.parts) {
    Json one(Json::Object{{"part", part.part},
                          {"type", part.type},
                          {"name", part.name},
                          {"on", std::string(step.gpu ? word(part.on) : "host")},
                          {"ms", part.seconds * 1e3},
                          {"share", part.share / step.seconds}});
    Json beside(Json::Array{});
    for (const PartTime::Beside& other : part.beside)
      beside.add(Json(Json::Object{{"part", static_cast<int64_t>(other.part)}, {"ms", other.seconds * 1e3}}));
    one.set("beside", std::move(beside));
    if (part.work.launches > 0) one.set("launches", part.work.launches);
    if (part.work.bytes > 0 && part.seconds > 0) {
      one.set("bytes", part.work.bytes);
      one.set("share_of_copy", copy_seconds(part.work, step.ceilings) / part.seconds);
    }
    if (part.work.flops > 0 && part.seconds > 0) {
      one.set("flops", part.work.flops);
      if (part.work.fp8_flops > 0) one.set("fp8_flops", part.work.fp8_flops);
      one.set("share_of_products", product_seconds(part.work, step.ceilings) / part.seconds);
    }
    parts.add(std::move(one));
  }
  Json streams(Json::Array{});
  for (const StepTimes::Stream& stream : step.streams)
    streams.add(Json(Json::Object{{"stream", std::string(word(stream.on))},
                                  {"ms", stream.seconds * 1e3},
                                  {"ms_beside_compute", stream.hidden * 1e3}}));
  return Json(Json::Object{
      {"schema", kRunSchema},
      {"device", step.device},
      {"threads", step.threads},
      {"samples", step.samples},
      {"steps", step.steps},
      {"step_ms", step.seconds * 1e3},
      {"step_ms_measured", step.measured * 1e3},
      {"step_ms_unmeasured", step.unmeasured > 0 ? Json(step.unmeasured * 1e3) : Json()},
      {"recorded", step.recorded},
      {"traced", step.traced},
      {"not_traced", step.not_traced.empty() ? Json() : Json(step.not_traced)},
      {"event_ms", step.recorded && !step.traced ? Json(Json::Object{{"between", step.events.between * 1e3},
                                                                     {"around", step.events.around * 1e3},
                                                                     {"taken", step.events_taken * 1e3}})
                                                 : Json()},
      {"parts_ms", step.in_parts() * 1e3},
      {"idle_ms", step.idle * 1e3},
      {"busy_cores", step.busy_cores},
      {"cores", step.cores},
      {"ceilings", Json(Json::Object{{"copy_gb_per_s", step.ceilings.copy_bytes / 1e9},
                                     {"product_gflop_per_s", step.ceilings.product_flops / 1e9},
                                     {"product_type", std::string(name_of(step.ceilings.products))},
                                     {"fp8_product_gflop_per_s",
                                      step.ceilings.fp8_flops > 0 ? Json(step.ceilings.fp8_flops / 1e9) : Json()}})},
      {"parts", std::move(parts)},
      {"streams", std::move(streams)},
      {"bottleneck", bottleneck(step)}});
}

}  // namespace hctr
