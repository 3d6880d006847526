#include "formats/catalog/section_widths.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr const char* kWhereItFollows = "; the field is optional only if the Data layer lists the columns";

void complete_slots(DataSection& section, int64_t slots, const std::string& pointer, Problems& problems) {
  std::vector<size_t> open;
  for (size_t i = 0; i < section.sparse.size(); ++i)
    if (!section.sparse[i].slot_num.given()) open.push_back(i);
  if (open.empty()) return;
  const std::string place = cat(pointer, "/sparse/", open[0]);
  if (open.size() > 1)
    return problems.error(place, cat("sparse input needs \"slot_num\": there are ", slots, " slots, and ", open.size(),
                                     " inputs without \"slot_num\"; only one input may omit the field"));
  const int64_t left = slots - section.slots();
  if (left < 1)
    return problems.error(place, cat("sparse input needs \"slot_num\": of ", slots, " slots the other inputs use ",
                                     section.slots(), ", so no slot is left"));
  section.sparse[open[0]].slot_num = left;
}

/// Fills in the key limits of one input. `nnz`: maximum keys of each slot; 0: unlimited.
void complete_limits(SparseInput& input, std::vector<int64_t> nnz) {
  if (input.nnz_per_slot || input.max_feature_num_per_sample) return;
  if (input.max_nnz)
    input.max_feature_num_per_sample = *input.max_nnz * input.slot_num;
  else if (!nnz.empty() && std::find(nnz.begin(), nnz.end(), 0) == nnz.end()) {
    if (std::all_of(nnz.begin(), nnz.end(), [&](int64_t n) { return n == nnz[0]; })) nnz.resize(1);
    input.nnz_per_slot = PerSlot{std::move(nnz)};
  }
}

}  // namespace

void complete_widths(DataSection& section, const FormatType& format, const std::string& pointer, Problems& problems) {
  const StatedWidths stated = format.widths ? format.widths(section) : StatedWidths();
  if (!section.label.label_dim.given()) {
    if (stated.label_dim.value_or(0) > 0)
      section.label.label_dim = *stated.label_dim;
    else
      problems.error(pointer + "/label",
                     cat("label needs \"label_dim\": the number of labels per sample", kWhereItFollows));
  }
  if (!section.dense.dense_dim.given()) {
    if (stated.dense_dim)
      section.dense.dense_dim = *stated.dense_dim;
    else
      problems.error(
          pointer + "/dense",
          cat("dense needs \"dense_dim\": the number of dense features per sample; may be 0", kWhereItFollows));
  }
  if (stated.nnz) complete_slots(section, static_cast<int64_t>(stated.nnz->size()), pointer, problems);
  int64_t first = 0;
  for (size_t i = 0; i < section.sparse.size(); ++i) {
    SparseInput& input = section.sparse[i];
    if (!input.slot_num.given()) {
      if (!stated.nnz)
        problems.error(cat(pointer, "/sparse/", i), cat("sparse input needs \"slot_num\": the number of consecutive "
                                                        "slots of the record that belong to this input",
                                                        kWhereItFollows));
      continue;
    }
    const int64_t end = first + input.slot_num;
    std::vector<int64_t> nnz;
    if (stated.nnz && end <= static_cast<int64_t>(stated.nnz->size()))
      nnz.assign(stated.nnz->begin() + first, stated.nnz->begin() + end);
    complete_limits(input, std::move(nnz));
    first = end;
  }
}

}  // namespace hctr
