// What a store consists of: levels, and the versions of models whose tables are in them.
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

struct Store::State {
  using Version = StoreView::Version;
  using VersionPointer = std::shared_ptr<const Version>;
  struct Model {
    std::map<std::string, VersionPointer, std::less<>> versions;
    std::string active;
  };

  explicit State(const StoreOptions&);

  // Any thread.
  VersionPointer active(std::string_view model) const;
  VersionPointer version(std::string_view model, std::string_view name) const;
  std::vector<std::pair<VersionPointer, bool>> all() const;  // with whether it is the active one

  // Under `changing`.
  void load(const StoreModel&);
  bool apply(std::string_view model, int64_t iteration, std::vector<ChangesOfTable> changes,
             const std::vector<int64_t>& rows_after, double written);
  void activate(std::string_view model, std::string_view name);
  void unload(std::string_view model, std::string_view name);
  int64_t compact();
  bool refresh();

  std::mutex changing;  // one load, update or activation at a time
  std::vector<std::unique_ptr<StoreLevel>> owned;
  std::vector<StoreLevel*> levels;  // those

 private:
  using Models = std::map<std::string, Model, std::less<>>;
  std::shared_ptr<StoreTable> make_table(StoreTable::About);
  void fill(StoreTable&, const StoreTableSource&, const ShowProgress&);
  /// The table of another version of the model that has this content.
  std::shared_ptr<StoreTable> same_table(const Model*, const StoreTableSource&, const std::string& content) const;
  std::shared_ptr<StoreTable> copy_of(const StoreTable&);
  bool is_shared(const Version&, const std::shared_ptr<StoreTable>&) const;
  void change(StoreTable&, size_t level, const ChangesOfTable&);
  void check_change(const StoreTable&, const ChangesOfTable&, int64_t rows_after) const;
  /// Makes the files' changes lasting, with what they mean.
  void commit();
  std::string note() const;
  void read_note(const std::string&);
  /// Errors: Error(usage) where the lowest level is open to read alone.
  void check_writable(const char* what) const;

  RateLimit rate_;
  int64_t next_space_ = 0;
  mutable std::mutex pointers_;  // guards `models_`
  Models models_;
};

}  // namespace hctr
