// gemm_bench: compares our GEMM kernels with CUTLASS on one GPU of compute capability 9.0.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>

#include "cases.h"
#include "compare.h"
#include "core/base/expect.h"
#include "core/device/cuda_runtime_calls.h"
#include "library_gemms.h"
#include "program/command_line.h"
#include "program/terminal.h"

namespace hctr::gemm_bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kExamples = R"(
Examples:
  gemm_bench
  gemm_bench --only "wgrad bf16" --every-config)";

struct Arguments {
  std::string only;
  bool every_config = false;
  int seconds = 40;
};

/// The ratios of the cases with one operator and batch size. A ratio is the time of CUTLASS divided by the time of our
/// kernel.
struct Summary {
  int cases = 0, within = 0;  ///< `within`: number of cases in which CUTLASS takes at most 2 % longer
  double logarithms = 0, least = 1e9, most = 0;

  void add(double ratio) {
    ++cases;
    within += ratio <= 1.02;
    logarithms += std::log(ratio);
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  }
};

void print_comparison(const Case& one, const Comparison& found, bool every_config) {
  const std::string name = name_of(one);
  const auto rate = [&](double microseconds) { return microseconds > 0 ? flops_of(one) / microseconds * 1e-6 : 0; };
  print_formatted("| %s | %.2f | %.2f | %.3f | %.2f | %.0f | %s |\n", name.c_str(), found.ours, found.cutlass,
                  found.ours > 0 ? found.cutlass / found.ours : 0, found.library, rate(found.ours),
                  found.config.empty() ? "none" : found.config.c_str());
  if (one.op == Operator::dgrad)
    print_formatted("  without the kernel that adds column sums: ours %.2f, CUTLASS %.2f us\n", found.ours_without_sums,
                    found.cutlass_without_sums);
  if (!found.wrong.empty()) print_formatted("  OURS IS WRONG: %s\n", found.wrong.c_str());
  for (const std::string& failure : found.failures) print_formatted("  failed: %s\n", failure.c_str());
  if (every_config)
    for (const std::string& timing : found.timings) print_formatted("  %s\n", timing.c_str());
  flush_output();
}

void print_summaries(const std::map<std::string, Summary>& summaries) {
  print_formatted(
      "\n| operator, batch | cases | CUTLASS within 2 %% | ratio: geometric mean | least | largest "
      "|\n|---|---|---|---|---|---|\n");
  for (const auto& [name, summary] : summaries)
    print_formatted("| %s | %d | %d | %.3f | %.3f | %.3f |\n", name.c_str(), summary.cases, summary.within,
                    std::exp(summary.logarithms / summary.cases), summary.least, summary.most);
}

/// "wgrad" of "wgrad f16 512 x DLRM".
std::string operator_of(const Case& one) {
  const std::string name = name_of(one);
  return name.substr(0, name.find(' '));
}

std::vector<Case> chosen_cases(const std::string& only) {
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [&](const Case& one) { return name_of(one).find(only) == std::string::npos; });
  if (cases.empty()) throw Error(Kind::usage, cat("--only: no case contains '", only, "'"));
  return cases;
}

void run(const Arguments& given) {
  const std::vector<Case> cases = chosen_cases(given.only);
  const GpuSearch gpus = find_gpus();
  if (gpus.count == 0) throw Error(Kind::device, cat("no usable GPU: ", gpus.why_none));
  Runtime runtime({DeviceKind::cuda, 0}, {});
  if (cuda::compute_capability() != 90)
    throw Error(Kind::device, cat(describe(runtime.device()), ": expected compute capability 9.0"));
  Context ctx(runtime, runtime.compute_stream());
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };

  print_formatted("%s\nMicroseconds. Dgrad includes the kernel that adds partial column sums.\n\n",
                  describe(runtime.device()).c_str());
  print(
      "| case | ours | CUTLASS | CUTLASS / ours | cuBLASLt | TFLOP/s of ours | best configuration "
      "|\n|---|---|---|---|---|---|---|\n");
  std::map<std::string, Summary> summaries;
  int wrong = 0, missing = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    const double due = given.seconds * static_cast<double>(i + 4) / static_cast<double>(cases.size());
    Comparison found;
    try {
      found = compare(ctx, one, cutlass_candidates(one.op, one.type), library_gemms(one.op, one.type), elapsed() < due);
    } catch (const std::exception& error) {
      found.failures.push_back(error.what());
    }
    print_comparison(one, found, given.every_config);
    wrong += !found.wrong.empty();
    missing += found.config.empty();
    if (!found.config.empty())
      for (const std::string& key : {cat(operator_of(one), ", ", one.batch), operator_of(one)})
        summaries[key].add(found.cutlass / found.ours);
  }
  print_summaries(summaries);
  print_formatted("\n%d cases in %.1f s\n", static_cast<int>(cases.size()), elapsed());
  if (wrong > 0) throw Error(Kind::bug, cat("our results are wrong in ", wrong, " cases"));
  if (missing > 0) throw Error(Kind::device, cat("CUTLASS has no right result in ", missing, " cases"));
}

int main_of(int argc, char** argv) {
  Arguments given;
  CommandLine line(
      "gemm_bench",
      "Compares our GEMM kernels in f16 and bf16 with CUTLASS, at the shapes of the four models of the step "
      "table. Needs a GPU of compute capability 9.0.",
      kExamples);
  line.add_option("--only", given.only, "measures only the cases whose name contains this text");
  line.add_flag("--every-config", given.every_config, "prints the time of every CUTLASS configuration");
  line.add_option("--seconds", given.seconds,
                  "approximate duration; once time is short, fewer tile orders and launch modes are tried")
      .positive()
      .show_default();
  return run_tool(line, argc, argv, [&] { run(given); });
}

}  // namespace
}  // namespace hctr::gemm_bench

int main(int argc, char** argv) { return hctr::gemm_bench::main_of(argc, argv); }
