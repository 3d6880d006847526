// The state of a store: levels, and versions of models with tables in these levels.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hctr/store.h"
#include "store/level.h"
#include "store/rate_limit.h"
#include "store/table_sources.h"
#include "store/version.h"

namespace hctr {

/// Converts updates that name their tables to changes in the order of the view's tables. Errors: Error(usage) with the
/// name of an unknown table.
std::vector<ChangesOfTable> changes_by_call(const StoreView&, std::span<const StoreTableUpdate>);

/// Errors: Error(usage) naming the field.
void check_cache_options(const StoreCacheOptions&);

/// Notifies the listeners of a version about an update. Look-ups already see the update.
void notify_listeners(const StoreView::Version&, const std::vector<ChangesOfTable>&, uint64_t number);
void count_changes(StoreView::Version::Progress&, const std::vector<ChangesOfTable>&);

struct Store::State {
  using Version = StoreView::Version;
  using VersionPointer = std::shared_ptr<const Version>;
  struct Model {
    std::map<std::string, VersionPointer, std::less<>> versions;
    std::string active;
  };

  explicit State(const StoreOptions&);

  // Any thread may call these three functions.
  VersionPointer active(std::string_view model) const;
  VersionPointer version(std::string_view model, std::string_view name) const;
  std::vector<std::pair<VersionPointer, bool>> all() const;  // each version, and whether it is active

  /// Data that the commit of a stream's update also stores. `run`: the run for a version that has none.
  struct Streamed {
    std::string position, run{};
  };
  static constexpr int64_t kNoIteration = -2;  ///< for updates without an iteration: the version keeps its iteration

  /// Applies an update. Returns false if the version already includes this iteration. The caller holds `updating`. If
  /// the lowest level can hold changes, releases `changing` while waiting for look-ups or for the rate limit.
  bool apply(const VersionPointer&, int64_t iteration, std::vector<ChangesOfTable> changes,
             const std::vector<int64_t>& rows_after, double written, const Streamed* = nullptr);

  // The caller holds `changing`.
  void load(const StoreModel&);
  void activate(std::string_view model, std::string_view name);
  void unload(std::string_view model, std::string_view name);
  int64_t compact();
  bool refresh();

  std::shared_ptr<StoreShared> shared = std::make_shared<StoreShared>();
  std::mutex &updating = shared->updating, &changing = shared->changing;
  std::vector<std::unique_ptr<StoreLevel>> owned;
  std::vector<StoreLevel*> levels;  // pointers to the levels in `owned`

 private:
  using Models = std::map<std::string, Model, std::less<>>;
  std::shared_ptr<StoreTable> make_table(StoreTable::About);
  void fill(StoreTable&, const StoreTableSource&, const ShowProgress&, ThreadPool&);
  /// A table with this content in another version of the model; null if no version has one.
  std::shared_ptr<StoreTable> same_table(const Model*, const StoreTableSource&, const std::string& content) const;
  std::shared_ptr<StoreTable> copy_of(const StoreTable&);
  bool is_shared(const Version&, const std::shared_ptr<StoreTable>&) const;
  class Update;
  void change(StoreTable&, size_t level, const ChangesOfTable&, std::unique_lock<std::mutex>& of_changing);
  void check_change(const StoreTable&, const ChangesOfTable&, int64_t rows_after) const;
  std::shared_ptr<Version::Pending> pending_of(const Version::Content& before, std::vector<ChangesOfTable>,
                                               const std::vector<int64_t>& rows_after) const;
  /// Waits for the look-ups that began before this call. Releases `changing` meanwhile, if the lowest level can hold
  /// changes.
  void wait_for_look_ups(const Version&, std::unique_lock<std::mutex>& of_changing);
  /// Commits the changes of the lowest level together with the description of the store.
  void commit();
  /// Removes a version that could not be committed, and was not active before.
  void forget(const std::string& model, const std::string& version);
  std::string note() const;
  static Json note_of(const Version&);
  /// For refresh(). Where `next` has a version that exists already, keeps the existing object and changes its content,
  /// so that existing views read the new content.
  void keep_versions(Models& next);
  void read_note(const std::string&);
  /// Errors: Error(usage) if the lowest level is read-only.
  void check_writable(const char* what) const;

  RateLimit rate_;
  int64_t next_space_ = 0;
  mutable std::mutex pointers_;  // guards `models_`
  Models models_;
};

}  // namespace hctr
