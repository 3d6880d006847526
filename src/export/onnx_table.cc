#include "export/onnx_table.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

/// The row range [begin, end) of each slot. A single range if the key alone identifies a row.
struct SlotRows {
  std::vector<int64_t> begin, end;

  int64_t longest() const {
    int64_t most = 0;
    for (size_t s = 0; s < begin.size(); ++s) most = std::max(most, end[s] - begin[s]);
    return most;
  }
};

SlotRows rows_of_slots(const TableArrays& table) {
  const auto bad = [&](size_t row) {
    const bool sorted = table.by_slot ? std::pair(table.slot_of[row - 1], table.keys[row - 1]) <
                                            std::pair(table.slot_of[row], table.keys[row])
                                      : table.keys[row - 1] < table.keys[row];
    return !sorted;
  };
  for (size_t row = 1; row < table.keys.size(); ++row)
    HCTR_EXPECT(!bad(row), "row ", row, " of table '", table.name, "' is not in ascending order");
  if (!table.by_slot) return {{0}, {table.rows()}};
  SlotRows rows;
  for (int64_t s = 0; s < table.slots; ++s) {
    const auto [begin, end] = std::equal_range(table.slot_of.begin(), table.slot_of.end(), s);
    rows.begin.push_back(begin - table.slot_of.begin());
    rows.end.push_back(end - table.slot_of.begin());
  }
  return rows;
}

class Lookup {
 public:
  Lookup(OnnxModel& model, const OnnxLookup& of)
      : model_(model), graph_(model.graph), of_(of), table_(of.table), several_(of.keys.most > 1) {}

  void add(const std::string& vectors, const std::string& lengths) {
    const std::string none = graph_.add("Equal", {of_.input.top, graph_.number(of_.no_key)});
    const std::string there = graph_.add("Not", {none});
    const bool mean = of_.section.hparam.combiner == ops::Combiner::mean,
               sqrtn = of_.section.hparam.combiner == ops::Combiner::sqrtn;
    std::string count;
    if (!lengths.empty() || (several_ && (mean || sqrtn))) {
      // The operator Where yields 1 or 0 as a float, so the graph needs no Cast.
      const std::string one_each = graph_.add("Where", {there, graph_.number(1.0f), graph_.number(0.0f)});
      count = several_ ? sum(one_each) : one_each;
    }
    if (!lengths.empty()) graph_.add_as(lengths, "Identity", {count});
    const std::string name = table_.name + "/vectors";
    model_.initializers.push_back(table_.vector_array(name, 1));
    const std::string rows = row_numbers(there);
    if (!several_) return graph_.add_as(vectors, "Gather", {name, rows}, {{"axis", int64_t{0}}});
    const std::string each = graph_.add("Gather", {name, rows}, {{"axis", int64_t{0}}});
    if (!of_.section.pooled()) return places(each, vectors);
    if (!mean && !sqrtn) return graph_.add_as(vectors, "ReduceSum", {each, axis()}, {{"keepdims", int64_t{0}}});
    std::string divisor = graph_.add("Max", {count, graph_.number(1.0f)});
    if (sqrtn) divisor = graph_.add("Sqrt", {divisor});
    graph_.add_as(vectors, "Div", {sum(each), graph_.add("Unsqueeze", {divisor, axis()})});
  }

 private:
  std::string axis() { return graph_.numbers({2}); }
  std::string sum(const std::string& x) { return graph_.add("ReduceSum", {x, axis()}, {{"keepdims", int64_t{0}}}); }

  /// A constant with one number per slot, broadcastable to the shape of the keys.
  std::string of_slots(std::vector<int64_t> numbers) {
    if (numbers.size() == 1) return graph_.number(numbers[0]);
    std::vector<int64_t> dims = {static_cast<int64_t>(numbers.size())};
    if (several_) dims.push_back(1);
    return graph_.add_constant(std::move(dims), std::move(numbers));
  }

  /// Returns for each key the index of its vector: 1 + the row, or 0 if the key has no row.
  std::string row_numbers(const std::string& there) {
    const SlotRows rows = rows_of_slots(table_);
    StoredArray keys = table_.key_array(table_.name + "/keys");
    // a dummy key for an empty table; no slot range contains it
    if (table_.rows() == 0) keys = stored(keys.name, {1}, std::vector<int64_t>{0});
    model_.initializers.push_back(keys);
    const std::string &key = of_.input.top, &sorted = keys.name;
    const auto key_at = [&](const std::string& at) {
      return graph_.add("Gather", {sorted, at}, {{"axis", int64_t{0}}});
    };
    std::vector<int64_t> before, last;
    for (size_t s = 0; s < rows.begin.size(); ++s) {
      before.push_back(rows.begin[s] - 1);
      last.push_back(rows.end[s] - 1);
    }
    // Binary search. `at` is the last row found so far whose key is at most `key`. If there is none yet, `at` is the
    // row before the slot's first row.
    const std::string start = of_slots(before), limit = of_slots(last);
    std::string at = start;
    int64_t step = 1;
    while (2 * step <= rows.longest()) step *= 2;
    for (; step > 0; step /= 2) {
      const std::string next = graph_.add("Min", {graph_.add("Add", {at, graph_.number(step)}), limit});
      at = graph_.add("Where", {graph_.add("LessOrEqual", {key_at(next), key}), next, at});
    }
    const std::string in_slot = graph_.add("Greater", {at, start});
    const std::string equal = graph_.add("And", {graph_.add("Equal", {key_at(at), key}), there});
    const std::string found = graph_.add("And", {in_slot, equal});
    return graph_.add("Where", {found, graph_.add("Add", {at, graph_.number(int64_t{1})}), graph_.number(int64_t{0})});
  }

  /// Without pooling, selects the columns of each slot. Shapes: from [N, slots, K, dim] to [N, columns, dim].
  void places(const std::string& each, const std::string& vectors) {
    const std::string flat =
        graph_.add("Reshape", {each, graph_.numbers({-1, table_.slots * of_.keys.most, table_.dim})});
    std::vector<int64_t> kept;
    for (int64_t s = 0; s < table_.slots; ++s)
      for (int64_t k = 0; k < of_.input.kept_nnz(s); ++k) kept.push_back(s * of_.keys.most + k);
    graph_.add_as(vectors, "Gather", {flat, graph_.numbers(kept)}, {{"axis", int64_t{1}}});
  }

  OnnxModel& model_;
  OnnxGraph& graph_;
  const OnnxLookup& of_;
  const TableArrays& table_;
  bool several_;  // whether any slot may have several keys
};

}  // namespace

void add_lookup(OnnxModel& model, const OnnxLookup& of, const std::string& vectors, const std::string& lengths) {
  model.graph.enter(of.table.name);
  Lookup(model, of).add(vectors, lengths);
}

}  // namespace hctr
