#include "compare.h"

#include <algorithm>
#include <exception>
#include <optional>

#include "core/device/cuda_check.cuh"
#include "our_gemms.h"
#include "replay.h"

namespace hctr::gemm_bench {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A candidate and how it is launched.
struct Choice {
  Candidate* candidate = nullptr;
  int swizzle = 1;
  bool early = false;
  double microseconds = 0;

  std::string name() const {
    return cat(candidate->name(), swizzle > 1 ? cat(", swizzle ", swizzle) : "", early ? ", early start" : "");
  }
};

class Comparer {
 public:
  Comparer(Context& ctx, const Case& one)
      : ctx_(ctx), case_(one), stream_(cuda::stream_of(ctx.stream())), operands_(one) {}

  Comparison run(const Candidates& cutlass, const Candidates& library, bool thorough) {
    const std::unique_ptr<Candidate> our = our_kernel(ctx_, case_.op, case_.type);
    const Choice ours{our.get(), 1, true, 0};
    prepare(ours);
    spoil_and_run(ours);
    found_.wrong = operands_.check();
    // chooses the number of launches so that a replay takes about a millisecond
    const double first = timed(ours, 4 * sets(), 2);
    launches_ = std::clamp(static_cast<int>(1000 / std::max(first, 1.0)), 8, 120) / sets() * sets();
    finish(ours, best_of(cutlass, thorough), best_of(library, false));
    return std::move(found_);
  }

 private:
  int sets() const { return static_cast<int>(operands_.sets().size()); }

  std::optional<Choice> best_of(const Candidates& candidates, bool thorough) {
    std::vector<Choice> choices;
    for (const auto& candidate : candidates) {
      consider({candidate.get(), 1, candidate->can_start_early()}, choices);
      if (thorough && candidate->can_start_early()) consider({candidate.get(), 1, false}, choices);
    }
    const auto sort = [&] {
      std::sort(choices.begin(), choices.end(),
                [](const Choice& a, const Choice& b) { return a.microseconds < b.microseconds; });
    };
    sort();
    const std::vector<Choice> fastest(choices.begin(), choices.begin() + std::min<ptrdiff_t>(3, std::ssize(choices)));
    if (thorough)
      for (Choice choice : fastest)
        if (choice.candidate->has_swizzle())
          for (const int swizzle : {2, 8}) {
            choice.swizzle = swizzle;
            consider(choice, choices);
          }
    sort();
    return choices.empty() ? std::nullopt : std::optional(choices.front());
  }

  /// Measures a candidate. A failure is reported, and the candidate is not among the choices.
  void consider(Choice choice, std::vector<Choice>& choices) {
    try {
      choice.microseconds = measure(choice);
      found_.timings.push_back(cat(choice.name(), ": ", choice.microseconds, " us"));
      choices.push_back(choice);
    } catch (const std::exception& error) {
      found_.failures.push_back(cat(choice.name(), ": ", error.what()));
      expect_device(choice);
    }
    choice.candidate->drop_sets();
  }

  void prepare(const Choice& choice) const {
    choice.candidate->drop_sets();
    for (const std::vector<Gemm>& set : operands_.sets())
      if (const std::string failed = choice.candidate->add_set(set, choice.swizzle); !failed.empty())
        throw Error(Kind::device, failed);
  }

  Launch launch_of(const Choice& choice, bool with_sums = true) {
    return [this, choice, with_sums](int set) -> std::string {
      try {
        std::string failed = choice.candidate->launch(set, stream_, choice.early);
        if (failed.empty() && case_.op == Operator::dgrad && with_sums)
          for (const Gemm& gemm : operands_.sets()[static_cast<size_t>(set)])
            add_column_sums(ctx_, gemm, choice.candidate->sums(gemm.n));
        return failed;
      } catch (const std::exception& error) {
        return error.what();
      }
    };
  }

  void spoil_and_run(const Choice& choice) {
    operands_.spoil();
    run_once(stream_, launch_of(choice));
  }

  double timed(const Choice& choice, int launches, int replays) {
    Replay replay(stream_, launches, sets(), launch_of(choice));
    replay.microseconds();
    std::vector<double> times;
    for (int i = 0; i < replays; ++i) times.push_back(replay.microseconds());
    return median(times);
  }

  /// Times a candidate, then checks the results of its replays.
  double measure(const Choice& choice) {
    prepare(choice);
    spoil_and_run(choice);
    expect_right();
    operands_.spoil();
    const double microseconds = timed(choice, launches_, 3);
    expect_right();
    return microseconds;
  }
  void expect_right() {
    if (const std::string wrong = operands_.check(); !wrong.empty()) throw Error(Kind::device, wrong);
  }
  void expect_device(const Choice& choice) const {
    (void)cudaGetLastError();
    if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess)
      throw Error(Kind::device, cat("the device failed after ", choice.name(), ": ", cudaGetErrorString(status)));
  }

  /// Times our kernel and the best candidates alternately.
  void finish(const Choice& ours, const std::optional<Choice>& cutlass, const std::optional<Choice>& library) {
    constexpr int kReplays = 9;
    struct Timed {
      double* result;
      std::unique_ptr<Replay> replay;
      std::vector<double> times = {};
    };
    std::vector<Timed> all;
    const auto add = [&](const Choice& choice, bool with_sums, double& result) {
      all.push_back({&result, std::make_unique<Replay>(stream_, launches_, sets(), launch_of(choice, with_sums))});
    };
    const bool dgrad = case_.op == Operator::dgrad;
    add(ours, true, found_.ours);
    if (dgrad) add(ours, false, found_.ours_without_sums);
    if (cutlass) {
      prepare(*cutlass);
      add(*cutlass, true, found_.cutlass);
      if (dgrad) add(*cutlass, false, found_.cutlass_without_sums);
    }
    if (library) {
      prepare(*library);
      add(*library, true, found_.library);
    }
    for (int i = -1; i < kReplays; ++i)
      for (Timed& one : all)
        if (const double microseconds = one.replay->microseconds(); i >= 0) one.times.push_back(microseconds);
    for (const Timed& one : all) *one.result = median(one.times);
    if (cutlass) found_.config = cutlass->name();
    for (const std::optional<Choice>& choice : {cutlass, library})
      if (choice) choice->candidate->drop_sets();
  }

  Context& ctx_;
  const Case& case_;
  cudaStream_t stream_;
  Operands operands_;
  Comparison found_;
  int launches_ = 8;
};

}  // namespace

Comparison compare(Context& ctx, const Case& one, const Candidates& cutlass, const Candidates& library, bool thorough) {
  return Comparer(ctx, one).run(cutlass, library, thorough);
}

}  // namespace hctr::gemm_bench
