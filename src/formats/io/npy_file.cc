#include "formats/io/npy_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include "core/base/expect.h"
#include "core/base/half.h"

namespace hctr {
namespace {

constexpr const char* kNpy = "npy file";
constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostHeaderBytes = size_t{1} << 16;

/// The text after "'name':" in a header, which is a Python dictionary.
std::string_view value_of(std::string_view header, std::string_view name) {
  const size_t at = header.find(cat("'", name, "'"));
  if (at == header.npos) return {};
  const size_t colon = header.find(':', at);
  if (colon == header.npos) return {};
  header.remove_prefix(colon + 1);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

/// Parses a shape such as "(3, 4)" or "(3,)".
std::optional<std::vector<int64_t>> shape_of(std::string_view text) {
  if (!text.starts_with("(")) return {};
  const size_t end = text.find(')');
  if (end == text.npos) return {};
  text = text.substr(1, end - 1);
  std::vector<int64_t> shape;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(", "), text.size()));
    if (text.empty()) return shape;
    int64_t size = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < 0) return {};
    text.remove_prefix(static_cast<size_t>(rest - text.data()));
    if (!text.empty() && text[0] != ',' && text[0] != ' ') return {};
    shape.push_back(size);
  }
}

const std::map<std::string_view, int64_t>& sizes_of_types() {
  static const std::map<std::string_view, int64_t> sizes = {{"|i1", 1}, {"|u1", 1}, {"<i2", 2}, {"<u2", 2},
                                                            {"<i4", 4}, {"<u4", 4}, {"<i8", 8}, {"<u8", 8},
                                                            {"<f2", 2}, {"<f4", 4}, {"<f8", 8}};
  return sizes;
}

}  // namespace

NpyFile::NpyFile(const fs::path& path) : path_(path), file_(open_to_read(path, kNpy)) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Kind::data, cat(kNpy, " '", path.string(), "' ", why));
  };
  unsigned char head[12] = {};
  const size_t got = std::fread(head, 1, 10, file_.get());
  if (got < 10 || std::memcmp(head, kMagic.data(), kMagic.size()) != 0) refuse("is not a file of numpy.save");
  const int version = head[6];
  size_t length = head[8] + (size_t{head[9]} << 8);
  if (version >= 2) {
    if (std::fread(head + 10, 1, 2, file_.get()) != 2) refuse("ends inside the header");
    length += (size_t{head[10]} << 16) + (size_t{head[11]} << 24);
  }
  if (version < 1 || version > 3) refuse(cat("has version ", version, "; expected version 1 to 3"));
  if (length > kMostHeaderBytes) refuse(cat("has a header of ", length, " bytes"));
  std::string header(length, '\0');
  if (std::fread(header.data(), 1, length, file_.get()) != length) refuse("ends inside the header");

  std::string_view type = value_of(header, "descr");
  type = type.starts_with("'") ? type.substr(1, std::min(type.find('\'', 1), type.size()) - 1) : std::string_view();
  type_ = type;
  const auto size = sizes_of_types().find(type_);
  if (size == sizes_of_types().end())
    refuse(cat("holds \"", type_, "\"; expected little-endian integers or floats (<i8, <u4, <f4, ...)"));
  if (!value_of(header, "fortran_order").starts_with("False"))
    refuse("is in Fortran order; convert the array with numpy.ascontiguousarray");
  const auto shape = shape_of(value_of(header, "shape"));
  if (!shape || shape->empty() || shape->size() > 2) refuse("is not an array of one or two dimensions");
  rows_ = shape->at(0);
  if (shape->size() == 2) columns_ = shape->at(1);

  const auto bytes = static_cast<int64_t>(fs::file_size(path)), begin = static_cast<int64_t>(std::ftell(file_.get()));
  int64_t expected = 0;
  if (__builtin_mul_overflow(rows_, columns_, &expected) || __builtin_mul_overflow(expected, size->second, &expected) ||
      expected != bytes - begin)
    refuse(cat("has ", bytes - begin, " bytes of numbers, which is not the size of ", rows_, " times ", columns_,
               " numbers of type ", type_, ": the file is incomplete"));
}

template <class T>
std::vector<T> NpyFile::read(int64_t rows) {
  std::vector<T> values(static_cast<size_t>(rows * columns_));
  if (std::fread(values.data(), sizeof(T), values.size(), file_.get()) != values.size())
    throw Error(Kind::io,
                cat("cannot read ", kNpy, " '", path_.string(), "': ",
                    std::ferror(file_.get()) ? std::strerror(errno) : "the file was truncated while being read"));
  return values;
}

std::vector<int64_t> NpyFile::read_integers(int64_t rows) {
  const auto widened = [&]<class T>(T) {
    std::vector<int64_t> wide;
    for (const T value : read<T>(rows)) wide.push_back(static_cast<int64_t>(value));
    return wide;
  };
  if (type_ == "|i1") return widened(int8_t{});
  if (type_ == "|u1") return widened(uint8_t{});
  if (type_ == "<i2") return widened(int16_t{});
  if (type_ == "<u2") return widened(uint16_t{});
  if (type_ == "<i4") return widened(int32_t{});
  if (type_ == "<u4") return widened(uint32_t{});
  if (type_ == "<i8") return read<int64_t>(rows);
  if (type_ == "<u8") return widened(uint64_t{});
  throw Error(Kind::data, cat(kNpy, " '", path_.string(), "' holds ", type_, "; integers are needed"));
}

std::vector<float> NpyFile::read_floats(int64_t rows) {
  const auto converted = [&]<class T>(T) {
    std::vector<float> floats;
    for (const T value : read<T>(rows)) floats.push_back(static_cast<float>(value));
    return floats;
  };
  if (type_ == "<f2") return converted(Half{});
  if (type_ == "<f4") return read<float>(rows);
  if (type_ == "<f8") return converted(double{});
  throw Error(Kind::data, cat(kNpy, " '", path_.string(), "' holds ", type_, "; floats are needed"));
}

}  // namespace hctr
