#include <algorithm>

#include "core/base/file_checksum.h"
#include "export/array_files.h"

namespace hctr {
namespace {

constexpr uint64_t kMost32 = 0xffffffff;

/// A byte string to which little-endian numbers are appended.
class Record {
 public:
  Record& u16(uint64_t value) { return add(value, 2); }
  Record& u32(uint64_t value) { return add(value, 4); }
  Record& u64(uint64_t value) { return add(value, 8); }
  Record& text(std::string_view some) {
    bytes_ += some;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& add(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string bytes_;
};

/// The header of a .npy file. Its length is a multiple of 64.
std::string npy_head(const StoredArray& array) {
  std::string dims;
  for (const int64_t dim : array.dims) dims += cat(dim, ",");
  if (array.dims.size() > 1) dims.pop_back();  // Python writes "(3,)" for one dimension, "(3,4)" for two
  std::string head = cat("{'descr': '", array.dtype == DType::i64 ? "<i8" : "<f4",
                         "', 'fortran_order': False, 'shape': (", dims, "), }");
  constexpr size_t kBefore = 10;
  head.resize((kBefore + head.size() + 1 + 63) / 64 * 64 - kBefore - 1, ' ');
  head += '\n';
  return Record().text("\x93NUMPY").text(std::string_view("\x01\x00", 2)).u16(head.size()).text(head).bytes();
}

struct ZipEntry {
  std::string name;
  uint64_t size, offset;
  uint32_t crc;
};

/// Appends the fields that the local and the central header of a zip entry have in common: required version to CRC.
void add_common(Record& record, uint32_t crc) {
  record.u16(45).u16(1 << 11);    // version 4.5, required by Zip64; flag: names are UTF-8
  record.u16(0);                  // compression method: stored
  record.u16(0).u16(1 << 5 | 1);  // constant date 1980-01-01, so that equal models have equal files
  record.u32(crc);
}

/// Sizes are always in Zip64's extra field, so the header has the same length for every array size.
std::string local_header(const ZipEntry& entry) {
  Record record;
  record.u32(0x04034b50);
  add_common(record, entry.crc);
  return record.u32(kMost32)
      .u32(kMost32)
      .u16(entry.name.size())
      .u16(20)
      .text(entry.name)
      .u16(1)
      .u16(16)
      .u64(entry.size)
      .u64(entry.size)
      .bytes();
}

std::string central_header(const ZipEntry& entry) {
  Record record;
  record.u32(0x02014b50).u16(45);
  add_common(record, entry.crc);
  record.u32(kMost32).u32(kMost32).u16(entry.name.size()).u16(28);
  // comment length, disk number, attributes; the offset is in the extra field
  record.u16(0).u16(0).u16(0).u32(0).u32(kMost32);
  return record.text(entry.name).u16(1).u16(24).u64(entry.size).u64(entry.size).u64(entry.offset).bytes();
}

std::string end_of_archive(uint64_t entries, uint64_t at, uint64_t bytes) {
  Record record;
  record.u32(0x06064b50).u64(44).u16(45).u16(45).u32(0).u32(0).u64(entries).u64(entries).u64(bytes).u64(at);
  record.u32(0x07064b50).u32(0).u64(at + bytes).u32(1);
  const uint64_t few = std::min<uint64_t>(entries, 0xffff);
  return record.u32(0x06054b50).u16(0).u16(0).u16(few).u16(few).u32(kMost32).u32(kMost32).u16(0).bytes();
}

}  // namespace

void write_npz(FileSet& set, const fs::path& path, const std::vector<StoredArray>& arrays) {
  AtomicFile& file = set.add(path);
  std::vector<ZipEntry> entries;
  uint64_t at = 0;
  const auto put = [&](std::string_view bytes) {
    file.write(bytes);
    at += bytes.size();
  };
  for (const StoredArray& array : arrays) {
    const std::string head = npy_head(array);
    ZipEntry entry{array.name + ".npy", head.size() + static_cast<uint64_t>(array.bytes()), at, 0};
    put(local_header(entry));
    const auto put_value = [&](std::span<const std::byte> bytes) {
      if (bytes.empty()) return;  // crc32() of a null pointer would reset the checksum to 0
      entry.crc = crc32_of(bytes, entry.crc);
      put({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
    const uint64_t begin = at;
    put_value(std::as_bytes(std::span(head)));
    array.write(put_value);
    HCTR_EXPECT(at - begin == entry.size, "array '", array.name, "' of ", at - begin, " bytes instead of ", entry.size);
    const std::string again = local_header(entry);  // write the entry's header again, now with the final CRC
    file.write_at(static_cast<long>(entry.offset), again.data(), again.size());
    entries.push_back(std::move(entry));
  }
  const uint64_t directory = at;
  for (const ZipEntry& entry : entries) put(central_header(entry));
  put(end_of_archive(entries.size(), directory, at - directory));
  file.finish();
}

}  // namespace hctr
