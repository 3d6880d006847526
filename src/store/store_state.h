// The state of a store: levels, and versions of models with tables in these levels.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hctr/store.h"
#include "store/file_level.h"
#include "store/memory_level.h"
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

  std::mutex changing;  // one load, update or activation at a time
  std::unique_ptr<MemoryLevel> memory;
  std::unique_ptr<FileLevel> file;
  std::vector<StoreLevel*> levels;  // those two

 private:
  std::shared_ptr<StoreTable> make_table(StoreTable::About);
  void fill(StoreTable&, const StoreTableSource&);
  /// The table of another version of the model with this content.
  std::shared_ptr<StoreTable> same_table(const Model*, const StoreTableSource&, const std::string& content) const;
  std::shared_ptr<StoreTable> copy_of(const StoreTable&);
  bool is_shared(const Version&, const std::shared_ptr<StoreTable>&) const;
  void change(StoreTable&, size_t level, const ChangesOfTable&);
  void check_change(const StoreTable&, const ChangesOfTable&, int64_t rows_after) const;
  /// Commits the files' changes, with the description of the store.
  void commit();
  std::string note() const;
  void read_note(const std::string&);

  RateLimit rate_;
  int64_t next_space_ = 0;
  mutable std::mutex pointers_;  // guards `models_`
  std::map<std::string, Model, std::less<>> models_;
};

}  // namespace hctr
