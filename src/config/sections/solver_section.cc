#include "config/sections/solver_section.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {

const std::vector<std::pair<std::string, LrPolicy>>& EnumWords<LrPolicy>::table() {
  static const std::vector<std::pair<std::string, LrPolicy>> words = {{"fixed", LrPolicy::fixed}};
  return words;
}

const std::vector<std::pair<std::string, OnNan>>& EnumWords<OnNan>::table() {
  static const std::vector<std::pair<std::string, OnNan>> words = {{"stop", OnNan::stop}, {"skip", OnNan::skip}};
  return words;
}

const std::vector<std::pair<std::string, KeyType>>& EnumWords<KeyType>::table() {
  static const std::vector<std::pair<std::string, KeyType>> words = {{"I32", KeyType::i32}, {"I64", KeyType::i64}};
  return words;
}

const std::vector<std::pair<std::string, Fp32Products>>& EnumWords<Fp32Products>::table() {
  static const std::vector<std::pair<std::string, Fp32Products>> words = {
      {"fp32", Fp32Products::fp32}, {"tf32", Fp32Products::tf32}, {"tf32x3", Fp32Products::tf32x3}};
  return words;
}

std::string read_value(const Json& value, const Range& range, GpuLists& out) {
  std::vector<int64_t> flat;
  out.per_process.clear();
  out.all = value.string() && *value.string() == "all";
  if (out.all) return "";
  const auto* elements = value.array();
  // [[0],[1]] lists the GPUs of two processes. Nested arrays need this test, because reading a list of integers would
  // accept the inner arrays as wrapped scalars.
  const bool nested = elements && std::all_of(elements->begin(), elements->end(),
                                              [](const Json& element) { return element.array() != nullptr; });
  if (nested ? !read_value(value, range, out.per_process).empty() : !read_value(value, range, flat).empty())
    out.per_process.clear();
  else if (!nested)
    out.per_process = {flat};
  for (const auto& list : out.per_process)
    for (const int64_t gpu : list)
      if (gpu < 0) return "GPU numbers from 0";
  return out.count() > 0 ? ""
                         : "an array of GPU numbers such as [0], an array of such arrays with one per "
                           "process, or \"all\"";
}

int64_t GpuLists::count() const {
  size_t sum = 0;
  for (const auto& list : per_process) sum += list.size();
  return static_cast<int64_t>(sum);
}

Json to_json(const GpuLists& gpus) {
  if (gpus.all) return "all";
  return gpus.per_process.size() == 1 ? to_json(gpus.per_process[0]) : to_json(gpus.per_process);
}

std::string read_value(const Json& value, const Range& range, Seed& out) {
  const Json& v = unwrapped(value);
  int64_t number = 0;
  if (constexpr double kEnd = 18446744073709551616.0;
      v.is_number() && !v.integer() && v.number() >= kEnd / 2 && v.number() <= kEnd) {
    out.value = v.number() < kEnd ? static_cast<uint64_t>(v.number())
                                  // as a double, a seed near 2^64 becomes 2^64, which uint64_t cannot hold
                                  : UINT64_MAX;
    return "";
  }
  const std::string expected = read_value(v, range, number);
  if (expected.empty()) out.value = static_cast<uint64_t>(number);
  return expected;
}

std::optional<int64_t> SolverSection::eval_batches() const {
  if (max_eval_batches) return max_eval_batches;
  if (max_eval_samples) return (*max_eval_samples + eval_batch() - 1) / eval_batch();
  return {};
}

}  // namespace hctr
