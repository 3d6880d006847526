#include "hctr/store.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/wall_time.h"
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

Store::Store(const StoreOptions& options) : state_(std::make_shared<State>(options)) {}
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
  const std::scoped_lock lock(state_->updating, state_->changing);
  state_->unload(model, version);
}

StoreView Store::view(std::string_view model) const { return StoreView(state_->active(model)); }

bool Store::apply_delta(std::string_view model, const fs::path& folder) {
  const std::lock_guard lock(state_->updating);
  return in_context(
      [&] { return cat("applying the delta '", folder.string(), "' to model '", model, "'"); },
      [&] {
        const ModelManifest delta = delta_manifest(folder);
        const State::VersionPointer version = state_->active(model);
        if (!version->run.empty() && delta.run != version->run)
          throw Error(Kind::data, cat("the delta belongs to run ", delta.run, ", but version '", version->name,
                                      "' to run ", version->run));
        const int64_t iteration = version->progress->iteration;
        if (delta.iteration <= iteration) return false;
        if (iteration >= 0 && delta.delta->base != iteration)
          throw Error(Kind::data,
                      cat("the delta has the changes since iteration ", delta.delta->base, ", but version '",
                          version->name, "' has iteration ", iteration, ": deltas in between are missing"));
        for (const ModelManifest::Member& member : delta.members) delta.verify(member.name);
        const StoreView view(version);
        const std::vector<StoreView::Table> tables = view.tables();
        std::vector<ChangesOfTable> changes(tables.size());
        std::vector<int64_t> rows(tables.size(), -1);
        for (size_t t = 0; t < delta.tables.size(); ++t) {
          const size_t at = view.table(delta.tables[t].name);
          if (delta.tables[t].dim != tables[at].dim)
            throw Error(Kind::data, cat("table '", delta.tables[t].name, "' has rows of ", delta.tables[t].dim,
                                        " elements, but the store has rows of ", tables[at].dim));
          changes[at] = changes_of(delta, t);
          rows[at] = delta.delta->tables[t].rows;
        }
        return state_->apply(version, delta.iteration, std::move(changes), rows, time_of(delta.path));
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
  const std::lock_guard lock(state_->updating);
  const State::VersionPointer version = state_->active(model);
  std::vector<ChangesOfTable> changes = changes_by_call(StoreView(version), updates);
  const std::vector<int64_t> rows_after(changes.size(), -1);  // -1: unknown
  return state_->apply(version, iteration, std::move(changes), rows_after, unix_time());
}

const StoreCacheOptions& Store::cache_options() const { return state_->shared->cache; }

bool Store::refresh() {
  const std::scoped_lock lock(state_->updating, state_->changing);
  return state_->refresh();
}

bool Store::writable() const { return state_->levels.back()->writable(); }
bool Store::loading() const { return state_->levels.back()->loading(); }
void Store::loaded() { state_->levels.back()->loaded(); }

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
  for (const auto& [version, active] : state_->all()) {
    const ReadCopies<StoreView::Version::Content>::Reading content(version->content);
    for (const std::shared_ptr<StoreTable>& table : content->tables) {
      all.push_back(table->statistics());
      all.back().model = version->model;
      all.back().version = version->name;
    }
  }
  return all;
}

int64_t Store::verify() {
  const std::lock_guard lock(state_->changing);
  return state_->levels.back()->verify();
}

int64_t Store::compact() {
  const std::scoped_lock lock(state_->updating, state_->changing);
  return state_->compact();
}

}  // namespace hctr
