// Views of versions, and look-ups in them.
#include <algorithm>
#include <cmath>

#include "core/base/expect.h"
#include "hctr/store.h"
#include "ops/embedding/key_batch.h"
#include "store/version.h"

namespace hctr {

struct StoreReading::State {
  explicit State(std::shared_ptr<const StoreView::Version> of) : version(std::move(of)), content(version->content) {}

  StoreTable& table(size_t number) const {
    if (number >= content->tables.size())
      throw Error(Kind::usage,
                  cat("model '", version->model, "' has ", content->tables.size(), " tables, not ", number));
    return *content->tables[number];
  }
  const PendingRows* pending(size_t table) const { return content->pending ? &content->pending->rows[table] : nullptr; }
  /// If a missing row is an error, throws Error(data) with the first key whose found[i] is 0.
  template <class Found>
  void expect_rows(const StoreTable& table, std::span<const int64_t> keys, const Found* found, int64_t missing) const {
    if (missing == 0 || version->on_miss != OnMiss::error) return;
    const auto at = static_cast<size_t>(std::find(found, found + keys.size(), Found{0}) - found);
    throw Error(Kind::data,
                cat("table '", table.name(), "' of model '", version->model, "' has no row of key ", keys[at],
                    missing == 1 ? "" : cat(" and ", missing - 1, missing == 2 ? " other key" : " other keys")));
  }

  std::shared_ptr<const StoreView::Version> version;
  ReadCopies<StoreView::Version::Content>::Reading content;
};

StoreView::StoreView(std::shared_ptr<const Version> version) : version_(std::move(version)) {}

std::string StoreView::version() const { return version_->name; }

std::vector<StoreView::Table> StoreView::tables() const {
  const ReadCopies<Version::Content>::Reading content(version_->content);
  std::vector<Table> all;
  for (const std::shared_ptr<StoreTable>& table : content->tables) {
    const StoreTable::About about = table->about();
    all.push_back({about.name, about.dim, about.by_slot, about.default_value});
  }
  return all;
}

size_t StoreView::table(std::string_view name) const {
  const std::vector<Table> all = tables();
  std::string names;
  for (size_t t = 0; t < all.size(); ++t) {
    if (all[t].name == name) return t;
    names += cat(names.empty() ? "'" : ", '", all[t].name, "'");
  }
  throw Error(Kind::usage, cat("model '", version_->model, "' has no table '", name, "'; it has ", names));
}

int64_t StoreView::get(size_t table, std::span<const int64_t> keys, float* rows, int64_t stride, uint8_t* found,
                       int32_t slot) const {
  return StoreReading(*this).get(table, keys, rows, stride, found, slot);
}

int64_t StoreView::get_pooled(size_t table, std::span<const int64_t> keys, std::span<const int64_t> offsets,
                              Pooling pooling, float* vectors, int64_t stride, int32_t slot) const {
  return StoreReading(*this).get_pooled(table, keys, offsets, pooling, vectors, stride, slot);
}

StoreReading::StoreReading(const StoreView& view) : state_(std::make_unique<State>(view.state())) {}
StoreReading::~StoreReading() = default;
StoreReading::StoreReading(StoreReading&&) noexcept = default;
StoreReading& StoreReading::operator=(StoreReading&&) noexcept = default;

int64_t StoreReading::iteration() const { return state_->content->iteration; }

int64_t StoreReading::get(size_t number, std::span<const int64_t> keys, float* rows, int64_t stride, uint8_t* found,
                          int32_t slot) const {
  thread_local std::vector<uint8_t> own;
  StoreTable& from = state_->table(number);
  if (stride == 0) stride = from.dim();
  if (stride < from.dim()) throw Error(Kind::usage, cat("rows of ", from.dim(), " elements, ", stride, " apart"));
  if (!found) {
    own.resize(keys.size());
    found = own.data();
  }
  const int64_t missing = from.get(slot, keys, rows, stride, found, state_->pending(number));
  state_->expect_rows(from, keys, found, missing);
  return missing;
}

int64_t StoreReading::get_rows(size_t number, std::span<const int64_t> keys, std::vector<float>& rows, int32_t* row_of,
                               int32_t slot) const {
  StoreTable& from = state_->table(number);
  const int64_t missing = from.get_rows(slot, keys, rows, row_of, state_->pending(number));
  state_->expect_rows(from, keys, row_of, missing);
  return missing;
}

int64_t StoreReading::get_pooled(size_t table, std::span<const int64_t> keys, std::span<const int64_t> offsets,
                                 StoreView::Pooling pooling, float* vectors, int64_t stride, int32_t slot) const {
  if (offsets.empty())
    throw Error(Kind::usage,
                "a pooled look-up needs at least one offset: one more than the "
                "number of bags");
  for (size_t b = 0; b + 1 < offsets.size(); ++b)
    if (offsets[b] > offsets[b + 1])
      throw Error(Kind::usage, cat("offset ", b + 1,
                                   " is less than the previous "
                                   "offset"));
  if (offsets.front() < 0 || offsets.back() > static_cast<int64_t>(keys.size()))
    throw Error(Kind::usage, cat("offsets up to ", offsets.back(), " of ", keys.size(), " keys"));
  const StoreTable& from = state_->table(table);
  const int64_t dim = from.dim();
  if (stride == 0) stride = dim;
  if (stride < dim) throw Error(Kind::usage, cat("vectors of ", dim, " elements, ", stride, " apart"));
  std::vector<float> rows(static_cast<size_t>(dim), from.default_value());
  std::vector<int32_t> row_of(keys.size());
  const int64_t missing = get_rows(table, keys, rows, row_of.data(), slot);
  const bool adds_default = from.default_value() != 0;
  const auto combiner = pooling == StoreView::Pooling::sum    ? ops::Combiner::sum
                        : pooling == StoreView::Pooling::mean ? ops::Combiner::mean
                                                              : ops::Combiner::sqrtn;
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    // Uses the same order and weights as ops::pool, so that vectors are bitwise equal.
    const int32_t ends[2] = {0, static_cast<int32_t>(offsets[b + 1] - offsets[b])};
    const float weight = ops::KeyBatch{.offsets = ends}.weight(combiner, 0);
    float* const to = vectors + static_cast<int64_t>(b) * stride;
    std::fill_n(to, dim, 0.0f);
    for (auto p = static_cast<size_t>(offsets[b]); p < static_cast<size_t>(offsets[b + 1]); ++p) {
      if (row_of[p] == 0 && !adds_default) continue;
      const float* const row = rows.data() + row_of[p] * dim;
      for (int64_t i = 0; i < dim; ++i) to[i] += row[i];
    }
    for (int64_t i = 0; i < dim; ++i) to[i] *= weight;
  }
  return missing;
}

}  // namespace hctr
