#include "train/traced_steps.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace hctr {
namespace {

using Piece = std::pair<double, double>;  // start and end

/// Work that belongs to no part.
constexpr Span kNoPart{.part = "other", .type = "work", .name = "in no part", .on = Span::On::other};

const std::vector<Span>& parts_of(const TracedSeries& series, const PartMark& mark) {
  return mark.recording == PartMark::kQueued ? series.queued : series.recorded(mark.recording);
}

const Span& part_of(const TracedSeries& series, const TracedWork& work) {
  if (!work.mark) return kNoPart;
  const std::vector<Span>& parts = parts_of(series, *work.mark);
  return work.mark->part < parts.size() ? parts[work.mark->part] : kNoPart;
}

/// Whether `on` is a single stream of the Runtime, on which kernels run one after another.
bool is_one_stream(Span::On on) { return on != Span::On::other && on != Span::On::host; }

/// Whether the work begins a step. True if the work belongs to the first part of a recording on the compute stream.
bool begins_step(const TracedSeries& series, const TracedWork& work) {
  if (!work.mark || work.mark->recording == PartMark::kQueued) return false;
  const std::vector<Span>& parts = parts_of(series, *work.mark);
  const auto first =
      std::find_if(parts.begin(), parts.end(), [](const Span& span) { return span.on == Span::On::compute; });
  return static_cast<size_t>(first - parts.begin()) == work.mark->part;
}

std::vector<double> begins_of_steps(const TracedSeries& series) {
  std::map<uint32_t, double> by_launch;
  for (const TracedWork& work : series.work)
    if (begins_step(series, work)) by_launch.try_emplace(work.launch, work.begin);
  std::vector<double> begins;
  for (const auto& [launch, begin] : by_launch) begins.push_back(begin);
  std::sort(begins.begin(), begins.end());
  return begins;
}

/// Appends an interval, and merges it with the last interval if the two touch. Intervals must be sorted by start.
void add_piece(const Piece& piece, std::vector<Piece>& to) {
  if (!to.empty() && piece.first <= to.back().second)
    to.back().second = std::max(to.back().second, piece.second);
  else
    to.push_back(piece);
}

/// The intervals within one step's program in which nothing runs.
std::vector<Piece> gaps_in(const Piece& program, const std::vector<Piece>& busy) {
  std::vector<Piece> gaps;
  double now = program.first;
  for (auto at = std::lower_bound(busy.begin(), busy.end(), program.first,
                                  [](const Piece& piece, double begin) { return piece.second < begin; });
       at != busy.end() && at->first < program.second; ++at) {
    if (at->first > now) gaps.emplace_back(now, at->first);
    now = std::max(now, at->second);
  }
  return gaps;
}

/// The work of a series, by part.
struct TracedParts {
  struct Run {
    Span part;
    std::vector<Piece> pieces;
  };
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Run> runs;  // [launch, recording, part]
  // [launch] the interval in which the launch's program runs, excluding preparations
  std::map<uint32_t, Piece> programs;
  std::vector<Piece> busy;
};

TracedParts by_part(const TracedSeries& series) {
  TracedParts parts;
  std::map<Span::On, double> ended;  // for each stream: the end of the last part
  for (const TracedWork& work : series.work) {
    const Span& part = part_of(series, work);
    Piece piece{work.begin, work.end};
    add_piece(piece, parts.busy);
    if (work.mark && work.mark->recording != PartMark::kQueued && part.on != Span::On::prepare) {
      Piece& program = parts.programs.try_emplace(work.launch, piece).first->second;
      program.second = std::max(program.second, piece.second);
    }
    if (is_one_stream(part.on)) {
      double& end = ended.try_emplace(part.on, piece.first).first->second;
      piece.first = std::max(piece.first, end);
      end = std::max(end, piece.second);
    }
    const PartMark mark = work.mark.value_or(PartMark{PartMark::kQueued, UINT32_MAX});
    // 0, because all launches of a queued part are combined
    const uint32_t launch = work.mark && mark.recording == PartMark::kQueued ? 0 : work.launch;
    TracedParts::Run& run =
        parts.runs.try_emplace({launch, mark.recording, mark.part}, TracedParts::Run{part, {}}).first->second;
    if (piece.first < piece.second) add_piece(piece, run.pieces);
  }
  return parts;
}

}  // namespace

int64_t add_series(const TracedSeries& series, TracedSteps& to) {
  const std::vector<double> begins = begins_of_steps(series);
  const int64_t steps = static_cast<int64_t>(begins.size()) - 1 - kIrregularFirst - kIrregularLast;
  if (steps <= 0) return 0;
  const double first = begins[kIrregularFirst], last = begins[kIrregularFirst + static_cast<size_t>(steps)];

  const auto add = [&](Span span, const Piece& piece) {
    span.begin = std::max(piece.first, first) - first + to.seconds;
    span.end = std::min(piece.second, last) - first + to.seconds;
    if (span.begin >= span.end) return false;
    span.timed = true;
    to.spans.push_back(span);
    return true;
  };
  const TracedParts parts = by_part(series);
  for (const auto& [key, run] : parts.runs) {
    Span span = run.part;
    // A part's work belongs to the step in which the part begins.
    bool counts = !run.pieces.empty() && run.pieces[0].first >= first && run.pieces[0].first < last;
    for (const Piece& piece : run.pieces) {
      if (!counts) span.work = {};
      if (add(span, piece)) counts = false;
    }
  }
  for (const auto& [launch, program] : parts.programs)
    for (const Piece& gap : gaps_in(program, parts.busy))
      add({.part = "start", .type = kStartOfKernels, .name = "of a step", .on = Span::On::compute}, gap);
  for (const Span& span : series.queued)
    if (span.on == Span::On::host) add(span, {span.begin, span.end});
  std::stable_sort(to.spans.begin(), to.spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  to.steps += steps;
  to.seconds += last - first;
  return steps;
}

}  // namespace hctr
