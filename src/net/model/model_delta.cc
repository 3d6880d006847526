#include "net/model/model_delta.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/base/expect.h"
#include "core/base/input_files.h"
#include "core/device/device.h"
#include "formats/checkpoint/checkpoint_folder.h"
#include "formats/model/sparse_reader.h"
#include "formats/model/sparse_writer.h"
#include "hctr/formats.h"
#include "net/model/layer_state.h"
#include "net/model/weights.h"

namespace hctr {
namespace {

constexpr const char *kPart = ".part", *kRemovedKeys = "file of removed keys";

template <class T>
std::vector<T> copy_of(std::span<const T> values) {
  return {values.begin(), values.end()};
}

struct RemovedKey {
  int64_t slot, key;
};

std::vector<SlotKey> read_removed(const fs::path& path) {
  const File file = open_to_read(path, kRemovedKeys);
  std::vector<SlotKey> keys;
  for (RemovedKey one{}; std::fread(&one, sizeof one, 1, file.get()) == 1;)
    keys.emplace_back(static_cast<int32_t>(one.slot), one.key);
  return keys;
}

std::string sparse_path(const ModelManifest& set, size_t table) {
  return formats::sparse_model_name(set.prefix, static_cast<int64_t>(table), set.iteration);
}

/// Calls sink(slot and key, vector) for each row of a table in a model. `key_bytes`: the width of keys in the file; 0:
/// detected from the file.
void read_rows(const ModelManifest& set, size_t table, int key_bytes,
               const std::function<void(SlotKey, std::span<const float>)>& sink) {
  const SavedTable& of = set.tables[table];
  const fs::path path = sparse_path(set, table);
  if (!fs::is_directory(path) && fs::file_size(path) == 0) return;
  const auto dim = static_cast<size_t>(of.dim);
  read_sparse(path, {of.by_slot, of.dim, std::numeric_limits<int32_t>::max(), key_bytes}, [&](const SparseRows& rows) {
    for (size_t i = 0; i < rows.keys.size(); ++i)
      sink({rows.slots.empty() ? 0 : static_cast<int32_t>(rows.slots[i]), rows.keys[i]},
           std::span(rows.vectors).subspan(i * dim, dim));
  });
}

using Access = std::map<SlotKey, formats::RowAccess>;

/// Reads the access statistics of a table in a model; none if the model has no statistics for this table.
std::optional<AccessStatsHead> read_access(const ModelManifest& set, size_t table, Access& into) {
  const fs::path path = access_stats_path(sparse_path(set, table));
  if (!fs::exists(path)) return std::nullopt;
  return read_access_stats(path, [&](const AccessStatsHead&, std::span<const formats::RowAccess> rows) {
    for (const formats::RowAccess& row : rows) into[{row.slot, row.key}] = row;
  });
}

void verify_all(const ModelManifest& set) {
  for (const ModelManifest::Member& member : set.members) set.verify(member.name);
}

std::string name_of_set(const ModelManifest& set) { return cat("'", set.path.string(), "'"); }

/// Reads the manifests of the deltas in `folders`, in the order in which the deltas are applied. Checks that each delta
/// is complete and builds on the preceding model.
std::vector<ModelManifest> read_chain(const ModelManifest& base, const std::vector<fs::path>& folders) {
  std::vector<ModelManifest> deltas;
  for (const fs::path& folder : folders) {
    const ModelManifest& before = deltas.empty() ? base : deltas.back();
    ModelManifest delta = delta_manifest(folder);
    if (delta.run != before.run)
      throw Error(Kind::data, cat("the delta ", name_of_set(delta), " is of run ", delta.run, ", but ",
                                  name_of_set(before), " is of run ", before.run));
    if (delta.delta->base != before.iteration)
      throw Error(Kind::data, cat("the delta ", name_of_set(delta), " contains the changes since iteration ",
                                  delta.delta->base, ", but the model has iteration ", before.iteration, ", ",
                                  name_of_set(before), ": name all deltas in between, in ascending order"));
    verify_all(delta);
    deltas.push_back(std::move(delta));
  }
  return deltas;
}

/// Merges the deltas of one table into the new model.
class TableMerge {
 public:
  TableMerge(const ModelManifest& base, const std::vector<ModelManifest>& deltas, size_t table)
      : base_(base), last_(deltas.back()), table_(table) {
    for (const ModelManifest& delta : deltas) {
      for (const SlotKey& key :
           read_removed(formats::removed_keys_name(delta.prefix, static_cast<int64_t>(table), delta.iteration))) {
        changes_[key].reset();
        access_.erase(key);
      }
      if (delta.delta->tables[table].changed > 0)
        read_rows(delta, table, delta.delta->key_bytes,
                  [&](SlotKey key, std::span<const float> vector) { changes_[key] = copy_of(vector); });
    }
    Access of_base;
    head_ = read_access(base, table, of_base);
    for (const auto& [key, row] : of_base)
      if (const auto found = changes_.find(key); found == changes_.end()) access_[key] = row;
    for (const ModelManifest& delta : deltas) head_ = read_access(delta, table, access_);
    std::erase_if(access_, [&](const auto& row) {
      const auto found = changes_.find(row.first);
      return found != changes_.end() && !found->second;
    });
  }

  SavedDelta::Table write(FileSet& set, const std::string& prefix) {
    const SavedTable& of = last_.tables[table_];
    const fs::path path = formats::sparse_model_name(prefix, static_cast<int64_t>(table_), last_.iteration);
    TableSpec spec;
    spec.name = of.name;
    spec.dim = of.dim;
    spec.identity_by_slot = of.by_slot;
    const bool folder = fs::is_directory(sparse_path(base_, table_));
    SparseWriter writer(set, path, spec, folder ? ModelFormat::v3 : ModelFormat::v2, last_.delta->key_bytes);
    std::optional<AccessStatsWriter> stats;
    if (head_) {
      RowPolicy policy;
      if (head_->last_seen) policy.expire_after = 1;
      policy.counts_keys = head_->occurrences;
      stats.emplace(set.add(access_stats_path(path)), policy, head_->steps);
    }
    int64_t rows = 0;
    each_row([&](const SlotKey& key, std::span<const float> vector) {
      write_row(key, vector, writer, stats ? &*stats : nullptr);
      ++rows;
    });
    writer.finish();
    if (stats) stats->finish();
    if (const int64_t wanted = last_.delta->tables[table_].rows; rows != wanted)
      throw Error(Kind::data, cat("table '", of.name, "' has ", rows, " rows with the deltas, but ", name_of_set(last_),
                                  " says ", wanted, ": the deltas build on another full model"));
    SavedDelta::Table done{.rows = rows};
    for (const auto& [key, vector] : changes_) ++(vector ? done.changed : done.removed);
    return done;
  }

 private:
  /// Calls emit(slot and key, vector) for each row of the new model, sorted by slot and key.
  template <class Emit>
  void each_row(const Emit& emit) const {
    auto next = changes_.begin();
    const auto emit_changes_before = [&](const SlotKey* key) {
      for (; next != changes_.end() && (!key || next->first < *key); ++next)
        if (next->second) emit(next->first, *next->second);
    };
    std::optional<SlotKey> before;
    read_rows(base_, table_, 0, [&](SlotKey key, std::span<const float> vector) {
      if (before && !(*before < key))
        throw Error(Kind::data, cat("table '", last_.tables[table_].name, "' of ", name_of_set(base_),
                                    " has rows that are not sorted by slot and key"));
      before = key;
      emit_changes_before(&key);
      if (next != changes_.end() && next->first == key) {
        if (next->second) emit(key, *next->second);
        ++next;
      } else {
        emit(key, vector);
      }
    });
    emit_changes_before(nullptr);
  }

  /// `stats`: null if the model has no access statistics.
  void write_row(const SlotKey& key, std::span<const float> vector, SparseWriter& writer,
                 AccessStatsWriter* stats) const {
    const SavedTable& of = last_.tables[table_];
    formats::RowAccess access{};
    if (stats) {
      const auto found = access_.find(key);
      if (found == access_.end())
        throw Error(Kind::data, cat("table '", of.name, "' has no access statistics of key ", key.second));
      access = found->second;
    }
    const auto seen = static_cast<uint32_t>(access.last_seen), times = static_cast<uint32_t>(access.occurrences);
    const RowBlock row{.keys = {&key.second, 1},
                       .slots = of.by_slot ? std::span(&key.first, 1) : std::span<const int32_t>(),
                       .vectors = vector,
                       .last_seen = {&seen, 1},
                       .occurrences = {&times, 1}};
    writer.add(row);
    if (stats) stats->add(row);
  }

  const ModelManifest &base_, &last_;
  size_t table_;
  std::map<SlotKey, std::optional<std::vector<float>>> changes_;  // an empty optional means that the row was removed
  Access access_;                                                 // access statistics of all rows of the new model
  std::optional<AccessStatsHead> head_;
};

}  // namespace

PendingDelta::PendingDelta(const std::string& prefix, int64_t iteration, SavedDelta about, ModelFormat format)
    : folder_(formats::delta_name(prefix, iteration)),
      part_(folder_.string() + kPart),
      iteration_(iteration),
      about_(std::move(about)),
      format_(format),
      most_kept_bytes_(free_memory(Device{}) / 2) {
  fs::remove_all(part_);
  create_parent_folder(part_ / "file");
  files_.emplace();
  to_manifest_ = &files_->add(formats::model_manifest_name(this->prefix(), std::to_string(iteration)));
}

PendingDelta::~PendingDelta() {
  if (complete_) return;
  tables_.clear();
  files_.reset();
  std::error_code ignored;  // an error is ignored, because the next run removes remaining files
  fs::remove_all(part_, ignored);
}

fs::path PendingDelta::dense_path() const { return formats::dense_model_name(prefix(), iteration_); }

void PendingDelta::begin_table(const TableSpec& spec, int64_t counted_steps) {
  const fs::path path = formats::sparse_model_name(prefix(), static_cast<int64_t>(tables_.size()), iteration_);
  Table& table = tables_.emplace_back(Table{SparseWriter(*files_, path, spec, format_, about_.key_bytes), {}});
  if (spec.policy.keeps_access_stats())
    table.stats.emplace(files_->add(access_stats_path(path)), spec.policy, counted_steps);
  about_.tables.emplace_back();
}

void PendingDelta::Table::write(const RowBlock& block) {
  rows.add(block);
  if (stats) stats->add(block);
}

void PendingDelta::Table::write_kept() {
  for (const RowCopies& some : kept) write(some.block());
  kept.clear();
}

void PendingDelta::add(const RowBlock& block) {
  about_.tables.back().changed += static_cast<int64_t>(block.keys.size());
  kept_bytes_ += static_cast<int64_t>(block.vectors.size_bytes() + block.keys.size_bytes());
  Table& table = tables_.back();
  if (kept_bytes_ <= most_kept_bytes_) {
    table.kept.push_back({.keys = copy_of(block.keys),
                          .slots = copy_of(block.slots),
                          .last_seen = copy_of(block.last_seen),
                          .occurrences = copy_of(block.occurrences),
                          .vectors = copy_of(block.vectors)});
    return;
  }
  table.write_kept();
  table.write(block);
}

void PendingDelta::end_table(const std::vector<SlotKey>& removed, int64_t rows) {
  about_.tables.back().rows = rows;
  about_.tables.back().removed = static_cast<int64_t>(removed.size());
  AtomicFile& file =
      files_->add(formats::removed_keys_name(prefix(), static_cast<int64_t>(tables_.size()) - 1, iteration_));
  for (const auto& [slot, key] : removed) {
    const RemovedKey one{slot, key};
    file.write(&one, sizeof one);
  }
}

void PendingDelta::set_manifest(ModelManifest manifest) {
  manifest_ = std::move(manifest);
  manifest_.delta = about_;
}

void PendingDelta::write() {
  for (Table& table : tables_) {
    table.write_kept();
    table.rows.finish();
    if (table.stats) table.stats->finish();
  }
  write_model_manifest(*files_, *to_manifest_, manifest_);
  files_->commit();
  sync_to_disk(part_);
  fs::remove_all(folder_);  // a run that was later resumed from an earlier iteration may have left this folder
  fs::rename(part_, folder_);
  complete_ = true;
  const fs::path parent = folder_.parent_path();
  sync_to_disk(parent.empty() ? fs::path(".") : parent);
}

void remove_unfinished_deltas(const std::string& prefix) {
  const fs::path parent = fs::path(prefix + "x").parent_path(), start = cat(prefix, "_delta_");
  std::error_code error;
  std::vector<fs::path> left;
  for (fs::directory_iterator at(parent.empty() ? fs::path(".") : parent, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with(start.filename().string()) && name.ends_with(kPart) && at->is_directory())
      left.push_back(at->path());
  }
  for (const fs::path& folder : left) fs::remove_all(folder);
}

AppliedDeltas apply_deltas(const fs::path& dense_model, const std::vector<fs::path>& folders,
                           const std::string& prefix) {
  std::optional<ModelManifest> base = manifest_of(dense_model);
  if (!base)
    throw Error(Kind::data, cat("there is no manifest next to '", dense_model.string(),
                                "': deltas need a full model that this program saved: name its dense file"));
  if (base->delta)
    throw Error(Kind::data, cat("'", dense_model.string(), "' belongs to a delta, but deltas need a full model"));
  HCTR_EXPECT(!folders.empty(), "expected at least one delta to apply");
  for (const ModelManifest::Member& member : base->members)
    if (member.name.find("_opt_") == std::string::npos) base->verify(member.name);
  const std::vector<ModelManifest> deltas = read_chain(*base, folders);
  const ModelManifest& last = deltas.back();
  std::vector<fs::path> read = {base->path};
  for (const ModelManifest::Member& member : base->members) read.emplace_back(base->prefix + member.name);
  for (const fs::path& folder : folders) read.push_back(folder);
  for (const fs::path& file : {fs::path(formats::model_manifest_name(prefix, std::to_string(last.iteration))),
                               fs::path(formats::dense_model_name(prefix, last.iteration))})
    expect_no_input(file, "--out: its file", read);
  FileSet set;
  create_parent_folder(prefix);
  AtomicFile& to_manifest = set.add(formats::model_manifest_name(prefix, std::to_string(last.iteration)));
  const fs::path from = formats::dense_model_name(last.prefix, last.iteration),
                 to = formats::dense_model_name(prefix, last.iteration);
  set.copy(from, to);
  for (const auto& belonging : {&Weights::layout_path, &LayerState::path_for})
    if (fs::exists(belonging(from))) set.copy(belonging(from), belonging(to));
  AppliedDeltas done{.iteration = last.iteration};
  for (size_t t = 0; t < last.tables.size(); ++t)
    done.tables.push_back(TableMerge(*base, deltas, t).write(set, prefix));
  ModelManifest manifest = last;
  manifest.delta.reset();
  manifest.members.clear();
  manifest.prefix = prefix;
  write_model_manifest(set, to_manifest, std::move(manifest));
  set.commit();
  return done;
}

DeltaKeys keys_of_delta(const ModelManifest& delta, size_t number) {
  DeltaKeys keys;
  keys.removed = read_removed(formats::removed_keys_name(delta.prefix, static_cast<int64_t>(number), delta.iteration));
  if (delta.delta->tables[number].changed > 0)
    read_rows(delta, number, delta.delta->key_bytes,
              [&](SlotKey key, std::span<const float>) { keys.changed.push_back(key); });
  return keys;
}

}  // namespace hctr
