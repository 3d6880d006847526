#include "hctr/store.h"

#include <algorithm>
#include <cmath>

#include "core/base/expect.h"
#include "core/base/wall_time.h"
#include "ops/embedding/key_batch.h"
#include "store/store_state.h"

namespace hctr {
namespace {

double time_of(const fs::path& file) {
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  if (error) return -1;
  const auto age = fs::file_time_type::clock::now() - written;
  return unix_time() - std::chrono::duration<double>(age).count();
}

}  // namespace

Store::Store(const StoreOptions& options) : state_(std::make_unique<State>(options)) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

void Store::load(const StoreModel& model) {
  const std::lock_guard lock(state_->changing);
  state_->load(model);
}

bool Store::has(std::string_view model, std::string_view version) const {
  return std::ranges::any_of(state_->all(), [&](const auto& one) {
    return one.first->model == model && (version.empty() || one.first->name == version);
  });
}

void Store::activate(std::string_view model, std::string_view version) {
  const std::lock_guard lock(state_->changing);
  state_->activate(model, version);
}

void Store::unload(std::string_view model, std::string_view version) {
  const std::lock_guard lock(state_->changing);
  state_->unload(model, version);
}

StoreView Store::view(std::string_view model) const { return StoreView(state_->active(model)); }

bool Store::apply_delta(std::string_view model, const fs::path& folder) {
  const std::lock_guard lock(state_->changing);
  return in_context(
      [&] { return cat("applying the delta '", folder.string(), "' to model '", model, "'"); },
      [&] {
        const ModelManifest delta = delta_manifest(folder);
        const StoreView view(state_->active(model));
        const StoreView::Version& version = *view.version_;
        if (!version.run.empty() && delta.run != version.run)
          throw Error(Kind::data,
                      cat("it belongs to run ", delta.run, ", and version '", version.name, "' of run ", version.run));
        const int64_t iteration = version.progress->iteration;
        if (delta.iteration <= iteration) return false;
        if (iteration >= 0 && delta.delta->base != iteration)
          throw Error(Kind::data,
                      cat("it has the changes since iteration ", delta.delta->base, ", and version '", version.name,
                          "' is of iteration ", iteration, ": the deltas in between are missing"));
        for (const ModelManifest::Member& member : delta.members) delta.verify(member.name);
        std::vector<ChangesOfTable> changes(version.tables.size());
        std::vector<int64_t> rows(version.tables.size(), -1);
        for (size_t t = 0; t < delta.tables.size(); ++t) {
          const size_t at = view.table(delta.tables[t].name);
          if (delta.tables[t].dim != version.tables[at]->dim())
            throw Error(Kind::data, cat("table '", delta.tables[t].name, "' has rows of ", delta.tables[t].dim,
                                        " elements, but the store of ", version.tables[at]->dim()));
          changes[at] = changes_of(delta, t);
          rows[at] = delta.delta->tables[t].rows;
        }
        return state_->apply(model, delta.iteration, std::move(changes), rows, time_of(delta.path));
      });
}

int64_t Store::update(std::string_view model, const std::string& prefix) {
  const auto waiting = [&] {
    const auto version = state_->active(model);
    const int64_t from = version->progress->iteration;
    std::vector<fs::path> folders;
    for (const auto& [iteration, folder] : deltas_at(prefix))
      if (iteration > from) folders.push_back(folder);
    version->progress->waiting = static_cast<int64_t>(folders.size());
    return folders;
  };
  int64_t applied = 0;
  for (const fs::path& folder : waiting()) {
    applied += apply_delta(model, folder);
    waiting();
  }
  return applied;
}

bool Store::apply(std::string_view model, int64_t iteration, std::span<const StoreTableUpdate> updates) {
  const std::lock_guard lock(state_->changing);
  const StoreView view(state_->active(model));
  std::vector<ChangesOfTable> changes(view.version_->tables.size());
  for (const StoreTableUpdate& update : updates) {
    const size_t t = view.table(update.table);
    ChangedRows& to = changes[t][update.slot];
    to.keys.insert(to.keys.end(), update.keys.begin(), update.keys.end());
    to.removed.insert(to.removed.end(), update.removed.begin(), update.removed.end());
    to.rows.insert(to.rows.end(), update.rows,
                   update.rows + update.keys.size() * static_cast<size_t>(view.version_->tables[t]->dim()));
  }
  const std::vector<int64_t> rows_after(changes.size(), -1);  // not said
  return state_->apply(model, iteration, std::move(changes), rows_after, unix_time());
}

std::vector<StoreModelStatistics> Store::models() const {
  std::vector<StoreModelStatistics> all;
  for (const auto& [version, active] : state_->all()) {
    const StoreView::Version::Progress& progress = *version->progress;
    all.push_back({.model = version->model,
                   .version = version->name,
                   .active = active,
                   .iteration = progress.iteration,
                   .updates = progress.updates,
                   .updated_rows = progress.updated_rows,
                   .removed_rows = progress.removed_rows,
                   .age_seconds = progress.newest < 0 ? -1 : unix_time() - progress.newest,
                   .waiting = progress.waiting});
  }
  return all;
}

std::vector<StoreTableStatistics> Store::tables() const {
  std::vector<StoreTableStatistics> all;
  for (const auto& [version, active] : state_->all())
    for (const std::shared_ptr<StoreTable>& table : version->tables) {
      all.push_back(table->statistics());
      all.back().model = version->model;
      all.back().version = version->name;
    }
  return all;
}

int64_t Store::verify() {
  const std::lock_guard lock(state_->changing);
  if (!state_->file) throw Error(Kind::usage, "verify: the store has no level of files");
  return state_->file->verify();
}

int64_t Store::compact() {
  const std::lock_guard lock(state_->changing);
  if (!state_->file) throw Error(Kind::usage, "compact: the store has no level of files");
  return state_->compact();
}

StoreView::StoreView(std::shared_ptr<const Version> version) : version_(std::move(version)) {}

std::string StoreView::version() const { return version_->name; }

std::vector<StoreView::Table> StoreView::tables() const {
  std::vector<Table> all;
  for (const std::shared_ptr<StoreTable>& table : version_->tables) {
    const StoreTable::About about = table->about();
    all.push_back({about.name, about.dim, about.by_slot, about.default_value});
  }
  return all;
}

size_t StoreView::table(std::string_view name) const {
  std::string names;
  for (size_t t = 0; t < version_->tables.size(); ++t) {
    const std::string& own = version_->tables[t]->name();
    if (own == name) return t;
    names += cat(names.empty() ? "'" : ", '", own, "'");
  }
  throw Error(Kind::usage, cat("model '", version_->model, "' has no table '", name, "'; it has ", names));
}

int64_t StoreView::get(size_t table, std::span<const int64_t> keys, float* rows, int64_t stride, uint8_t* found,
                       int32_t slot) const {
  thread_local std::vector<uint8_t> own;
  if (table >= version_->tables.size())
    throw Error(Kind::usage,
                cat("model '", version_->model, "' has ", version_->tables.size(), " tables, not ", table));
  StoreTable& from = *version_->tables[table];
  if (stride == 0) stride = from.dim();
  if (stride < from.dim()) throw Error(Kind::usage, cat("rows of ", from.dim(), " elements, ", stride, " apart"));
  if (!found) {
    own.resize(keys.size());
    found = own.data();
  }
  const int64_t missing = from.get(slot, keys, rows, stride, found);
  if (missing > 0 && version_->on_miss == OnMiss::error) {
    const auto at = static_cast<size_t>(std::find(found, found + keys.size(), uint8_t{0}) - found);
    throw Error(Kind::data, cat("table '", from.name(), "' of model '", version_->model, "' has no row of key ",
                                keys[at], missing == 1 ? "" : cat(" and ", missing - 1, " others")));
  }
  return missing;
}

int64_t StoreView::get_pooled(size_t table, std::span<const int64_t> keys, std::span<const int64_t> offsets,
                              Pooling pooling, float* vectors, int64_t stride, int32_t slot) const {
  if (table >= version_->tables.size() || offsets.empty())
    throw Error(Kind::usage, "a pooled look-up needs a table of the model, and one more offset than bags");
  for (size_t b = 0; b + 1 < offsets.size(); ++b)
    if (offsets[b] > offsets[b + 1]) throw Error(Kind::usage, cat("offset ", b + 1, " is less than the one before"));
  if (offsets.front() < 0 || offsets.back() > static_cast<int64_t>(keys.size()))
    throw Error(Kind::usage, cat("offsets up to ", offsets.back(), " of ", keys.size(), " keys"));
  const StoreTable& from = *version_->tables[table];
  const int64_t dim = from.dim();
  if (stride == 0) stride = dim;
  std::vector<float> rows(keys.size() * static_cast<size_t>(dim));
  std::vector<uint8_t> found(keys.size());
  const int64_t missing = get(table, keys, rows.data(), dim, found.data(), slot);
  const bool adds_default = from.default_value() != 0;
  const auto combiner = pooling == Pooling::sum    ? ops::Combiner::sum
                        : pooling == Pooling::mean ? ops::Combiner::mean
                                                   : ops::Combiner::sqrtn;
  for (size_t b = 0; b + 1 < offsets.size(); ++b) {
    // In the same order as ops::pool, so that vectors are equal bit for bit.
    const int32_t ends[2] = {0, static_cast<int32_t>(offsets[b + 1] - offsets[b])};
    const float weight = ops::KeyBatch{.offsets = ends}.weight(combiner, 0);
    float* const to = vectors + static_cast<int64_t>(b) * stride;
    std::fill_n(to, dim, 0.0f);
    for (auto p = static_cast<size_t>(offsets[b]); p < static_cast<size_t>(offsets[b + 1]); ++p)
      if (found[p] || adds_default)
        for (int64_t i = 0; i < dim; ++i) to[i] += rows[p * static_cast<size_t>(dim) + static_cast<size_t>(i)];
    for (int64_t i = 0; i < dim; ++i) to[i] *= weight;
  }
  return missing;
}

}  // namespace hctr
