#include "formats/model/sparse_writer.h"

#include "core/base/expect.h"
#include "core/base/not_finite.h"
#include "hctr/formats.h"

namespace hctr {
namespace {

void expect_u32(int64_t key, const std::string& table, const fs::path& path) {
  if (key < 0 || key > UINT32_MAX)
    throw Error(Kind::data, cat("key ", key, " of table '", table, "' does not fit in the 4 bytes of a key in '",
                                path.string(), "': set \"input_key_type\" to \"I64\""));
}

template <class T>
void write_all(AtomicFile& file, std::span<const T> values) {
  file.write(values.data(), values.size_bytes());
}

}  // namespace

SparseWriter::SparseWriter(FileSet& set, const fs::path& path, const TableSpec& spec, ModelFormat format, int key_bytes)
    : path_(path),
      name_(spec.name),
      dim_(static_cast<size_t>(spec.dim)),
      with_slot_(spec.identity_by_slot),
      format_(format),
      key_bytes_(key_bytes) {
  HCTR_EXPECT(key_bytes == 4 || key_bytes == 8, "keys of ", key_bytes, " bytes");
  const bool is_folder = fs::is_directory(path);
  if (fs::exists(path) && is_folder != (format == ModelFormat::v3))
    throw Error(Kind::io, cat("'", path.string(), "' is a ", is_folder ? "folder" : "file", ", but \"model_format\" \"",
                              *to_json(format).string(), "\" makes a ", is_folder ? "file" : "folder",
                              " of this name: move the existing path, or set another \"snapshot_prefix\""));
  if (format == ModelFormat::v2) {
    rows_ = &set.add(path);
    return;
  }
  keys_ = &set.add(path / formats::kFolderKeys);
  if (with_slot_) slots_ = &set.add(path / formats::kFolderSlots);
  vectors_ = &set.add(path / formats::kFolderVectors);
}

void SparseWriter::add(const RowBlock& block) {
  if (const int64_t at = find_not_finite(block.vectors); at >= 0)
    throw Error(Kind::data,
                cat("the row of key ", block.keys[static_cast<size_t>(at) / dim_], " in table '", name_, "' holds ",
                    block.vectors[static_cast<size_t>(at)], ": training diverged, and this model is not saved"));
  if (format_ == ModelFormat::v3) {
    write_all(*keys_, block.keys);
    write_all(*vectors_, block.vectors);
    if (!with_slot_) return;
    const std::vector<uint64_t> slots(block.slots.begin(), block.slots.end());
    return write_all(*slots_, std::span(slots));
  }
  bytes_.clear();
  const auto append = [this](const void* from, size_t count) {
    bytes_.insert(bytes_.end(), static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + count);
  };
  for (size_t i = 0; i < block.keys.size(); ++i) {
    const int64_t key = block.keys[i];
    if (key_bytes_ == 4) expect_u32(key, name_, path_);
    append(&key, static_cast<size_t>(key_bytes_));
    if (with_slot_) {
      const auto slot = static_cast<uint64_t>(block.slots[i]);
      append(&slot, sizeof slot);
    }
    append(block.vectors.data() + i * dim_, dim_ * sizeof(float));
  }
  rows_->write(bytes_.data(), bytes_.size());
}

void SparseWriter::finish() {
  for (AtomicFile* file : {rows_, keys_, slots_, vectors_})
    if (file) file->finish();
}

}  // namespace hctr
