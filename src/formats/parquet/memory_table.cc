#include "formats/parquet/memory_table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "core/base/expect.h"
#include "formats/io/memory_source.h"
#include "formats/parquet/memory_column.h"

namespace hctr {
namespace {

/// Owns the content of an Arrow C struct and releases it.
template <class T>
class Taken {
 public:
  explicit Taken(T& from) : value(from) { from.release = nullptr; }
  ~Taken() {
    if (value.release) value.release(&value);
  }
  Taken(const Taken&) = delete;
  T value;
};

class ArrowTable : public MemoryTable {
 public:
  ArrowTable(std::shared_ptr<Taken<ArrowSchema>> schema, std::vector<std::unique_ptr<Taken<ArrowArray>>> batches)
      : schema_(std::move(schema)), batches_(std::move(batches)) {
    const ArrowSchema& top = schema_->value;
    if (!top.format || std::string_view(top.format) != "+s")
      throw Error(Kind::usage,
                  cat("expected an Arrow struct of columns (\"+s\"), found \"", top.format ? top.format : "", "\""));
    for (int64_t c = 0; c < top.n_children; ++c) fields_.push_back(memory_field(*top.children[c]));
    for (const auto& batch : batches_) add_group(batch->value);
    info_ = {.rows = info_.rows,
             .field_count = static_cast<int64_t>(fields_.size()),
             .group_count = static_cast<int64_t>(groups_.size()),
             .fields = fields_.data(),
             .groups = groups_.data(),
             .written_by = "a program in this process",
             .packed = "in memory"};
  }

  const ParquetFileInfo& info() const override { return info_; }
  const char* open_column(int64_t group, int64_t field, ParquetForm form, ParquetColumn*& column) override {
    const ArrowArray& batch = batches_[static_cast<size_t>(group)]->value;
    column = new_memory_column(*schema_->value.children[field], *batch.children[field], batch.offset,
                               groups_[static_cast<size_t>(group)].rows, form);
    return nullptr;
  }
  bool may_be_negative(int64_t) const override { return true; }
  int64_t bytes() const override {
    int64_t all = 0;
    for (const ParquetGroup& group : groups_) all += group.bytes;
    return all;
  }

 private:
  void add_group(const ArrowArray& batch) {
    if (batch.n_children != schema_->value.n_children)
      throw Error(Kind::usage, cat("a batch has ", batch.n_children, " columns, but the table has ", fields_.size()));
    for (int64_t c = 0; c < batch.n_children; ++c)
      if (batch.children[c]->length < batch.offset + batch.length)
        throw Error(Kind::usage, cat("column '", fields_[static_cast<size_t>(c)].name, "' has ",
                                     batch.children[c]->length, " rows, but the table has ", batch.length));
    if (batch.length == 0) return;
    // An estimate of 8 bytes per value. Chunk sizes depend on this number.
    groups_.push_back({batch.length, batch.length * 8 * std::max<int64_t>(batch.n_children, 1)});
    info_.rows += batch.length;
  }

  std::shared_ptr<Taken<ArrowSchema>> schema_;
  std::vector<std::unique_ptr<Taken<ArrowArray>>> batches_;
  std::vector<ParquetField> fields_;
  std::vector<ParquetGroup> groups_;
  ParquetFileInfo info_;
};

std::shared_ptr<MemoryTable> table_of(std::shared_ptr<Taken<ArrowSchema>> schema,
                                      std::vector<std::unique_ptr<Taken<ArrowArray>>> batches) {
  // empty batches would be empty row groups
  std::erase_if(batches, [](const auto& batch) { return batch->value.length == 0; });
  return std::make_shared<ArrowTable>(std::move(schema), std::move(batches));
}

struct MemorySources {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<MemoryTable>, std::less<>> tables;
  int64_t next = 1;
};

MemorySources& memory_sources() {
  // never destroyed, because threads may still read at process exit
  static MemorySources& sources = *new MemorySources;
  return sources;
}

}  // namespace

void MemoryTable::drop(void* owner) { drop_memory_values(owner); }

std::shared_ptr<MemoryTable> memory_table(ArrowSchema& schema, std::vector<ArrowArray>& batches) {
  auto taken = std::make_shared<Taken<ArrowSchema>>(schema);
  std::vector<std::unique_ptr<Taken<ArrowArray>>> all;
  for (ArrowArray& batch : batches) all.push_back(std::make_unique<Taken<ArrowArray>>(batch));
  return table_of(std::move(taken), std::move(all));
}

std::shared_ptr<MemoryTable> memory_table(ArrowArrayStream& given) {
  Taken<ArrowArrayStream> stream(given);
  const auto expect = [&](int status) {
    if (status == 0) return;
    const char* why = stream.value.get_last_error(&stream.value);
    throw Error(Kind::data, cat("the stream of a table failed: ", why ? why : "without a reason"));
  };
  ArrowSchema schema{};
  expect(stream.value.get_schema(&stream.value, &schema));
  auto taken = std::make_shared<Taken<ArrowSchema>>(schema);
  std::vector<std::unique_ptr<Taken<ArrowArray>>> all;
  for (;;) {
    ArrowArray batch{};
    expect(stream.value.get_next(&stream.value, &batch));
    if (!batch.release) break;
    all.push_back(std::make_unique<Taken<ArrowArray>>(batch));
  }
  return table_of(std::move(taken), std::move(all));
}

std::string add_memory_source(std::shared_ptr<MemoryTable> table) {
  MemorySources& sources = memory_sources();
  const std::lock_guard lock(sources.mutex);
  const std::string name = cat(kMemorySource, sources.next++);
  sources.tables[name] = std::move(table);
  return name;
}

void remove_memory_source(const std::string& name) {
  MemorySources& sources = memory_sources();
  std::shared_ptr<MemoryTable> removed;  // destroyed after the lock is released
  const std::lock_guard lock(sources.mutex);
  if (const auto found = sources.tables.find(name); found != sources.tables.end()) {
    removed = std::move(found->second);
    sources.tables.erase(found);
  }
}

std::shared_ptr<MemoryTable> memory_source(const fs::path& name) {
  MemorySources& sources = memory_sources();
  const std::lock_guard lock(sources.mutex);
  if (const auto found = sources.tables.find(name.string()); found != sources.tables.end()) return found->second;
  throw Error(Kind::io, cat("'", name.string(), "' is a table in memory that no longer exists: name other data"));
}

}  // namespace hctr
