#include "support/onnx_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "core/base/expect.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

/// Iterates over the fields of a Protocol Buffers message.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}
  int number = 0;
  uint64_t value = 0;      // value of a varint or four-byte field
  std::string_view bytes;  // content of a length-delimited field: a message, text or bytes

  bool next() {
    if (rest_.empty()) return false;
    const uint64_t key = varint();
    number = static_cast<int>(key >> 3);
    switch (key & 7) {
      case 0:
        value = varint();
        break;
      case 2:
        bytes = take(varint());
        break;
      case 5:
        value = 0;
        std::memcpy(&value, take(4).data(), 4);
        break;
      default:
        throw std::runtime_error(cat("wire type ", key & 7));
    }
    return true;
  }
  std::string text() const { return std::string(bytes); }
  int64_t integer() const { return static_cast<int64_t>(value); }

 private:
  uint64_t varint() {
    uint64_t number_read = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      number_read |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return number_read;
    }
  }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) throw std::runtime_error("a message ends too early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::string_view rest_;
};

template <class T>
std::vector<T> numbers_in(std::string_view bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

OnnxArray array_from(std::vector<int64_t> dims, bool is_integer, std::string_view bytes) {
  if (is_integer) return OnnxArray::of(std::move(dims), numbers_in<int64_t>(bytes));
  const std::vector<float> floats = numbers_in<float>(bytes);
  return OnnxArray::of(std::move(dims), std::vector<double>(floats.begin(), floats.end()));
}

class OnnxFileReader {
 public:
  explicit OnnxFileReader(const std::filesystem::path& path) : path_(path), bytes_(read_file(path)) {}

  OnnxFile read() {
    for (Fields f(bytes_); f.next();) {
      if (f.number == 1) file_.ir_version = f.integer();
      if (f.number == 7) graph(f.bytes);
      if (f.number == 8)
        for (Fields g(f.bytes); g.next();)
          if (g.number == 2) file_.opset = g.integer();
      if (f.number == 14) file_.metadata.insert(entry(f.bytes));
    }
    return std::move(file_);
  }

 private:
  static std::pair<std::string, std::string> entry(std::string_view bytes) {
    std::pair<std::string, std::string> both;
    for (Fields f(bytes); f.next();) (f.number == 1 ? both.first : both.second) = f.text();
    return both;
  }

  void graph(std::string_view bytes) {
    for (Fields f(bytes); f.next();) {
      if (f.number == 1) file_.nodes.push_back(node(f.bytes));
      if (f.number == 5) tensor(f.bytes);
      if (f.number == 11) file_.inputs.push_back(value(f.bytes));
      if (f.number == 12) file_.outputs.push_back(value(f.bytes));
    }
  }

  static OnnxFile::Node node(std::string_view bytes) {
    OnnxFile::Node node;
    for (Fields f(bytes); f.next();) {
      if (f.number == 1) node.in.push_back(f.text());
      if (f.number == 2) node.out.push_back(f.text());
      if (f.number == 4) node.op = f.text();
      if (f.number != 5) continue;
      std::string name;
      float real = 0;
      int64_t integer = 0, type = 0;
      std::vector<int64_t> list;
      for (Fields g(f.bytes); g.next();) {
        if (g.number == 1) name = g.text();
        if (g.number == 2) std::memcpy(&real, &g.value, sizeof real);
        if (g.number == 3) integer = g.integer();
        if (g.number == 8) list.push_back(g.integer());
        if (g.number == 20) type = g.integer();
      }
      if (type == 1) node.reals[name] = real;
      if (type == 2) node.integers[name] = integer;
      if (type == 7) node.lists[name] = list;
    }
    return node;
  }

  void tensor(std::string_view bytes) {
    std::vector<int64_t> dims;
    int64_t type = 0;
    std::string name;
    std::optional<std::string_view> raw;
    std::map<std::string, std::string> external;
    for (Fields f(bytes); f.next();) {
      if (f.number == 1) dims.push_back(f.integer());
      if (f.number == 2) type = f.integer();
      if (f.number == 8) name = f.text();
      if (f.number == 9) raw = f.bytes;
      if (f.number == 13) external.insert(entry(f.bytes));
    }
    std::string beside;
    if (!external.empty()) {
      beside = read_file(path_.parent_path() / external.at("location"));
      const size_t offset = std::stoull(external.at("offset"));
      file_.external[name] = static_cast<int64_t>(offset);
      raw = std::string_view(beside).substr(offset, std::stoull(external.at("length")));
    }
    EXPECT_TRUE(raw && (type == 1 || type == 7)) << name;
    if (!raw) return;
    OnnxArray array = array_from(dims, type == 7, *raw);
    EXPECT_EQ(array.elements(), static_cast<int64_t>(array.reals.size() + array.integers.size())) << name;
    EXPECT_TRUE(file_.initializers.emplace(name, std::move(array)).second) << name << " is there twice";
  }

  static OnnxFile::Value value(std::string_view bytes) {
    OnnxFile::Value value;
    for (Fields f(bytes); f.next();) {
      if (f.number == 1) value.name = f.text();
      if (f.number != 2) continue;
      for (Fields type(f.bytes); type.next();)
        for (Fields tensor(type.bytes); tensor.next();) {
          if (tensor.number == 1) value.type = tensor.integer();
          if (tensor.number != 2) continue;
          for (Fields dim(tensor.bytes); dim.next();)
            for (Fields g(dim.bytes); g.next();)
              value.dims.push_back(g.number == 1 ? std::to_string(g.integer()) : g.text());
        }
    }
    return value;
  }

  std::filesystem::path path_;
  std::string bytes_;
  OnnxFile file_;
};

}  // namespace

int64_t OnnxArray::elements() const {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

OnnxFile read_onnx(const std::filesystem::path& path) { return OnnxFileReader(path).read(); }

OnnxArrays read_npz(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  const auto at = [&](size_t place, auto number) {
    if (place + sizeof number > bytes.size()) throw std::runtime_error("an archive ends too early");
    std::memcpy(&number, bytes.data() + place, sizeof number);
    return number;
  };
  const size_t end = bytes.rfind("PK\x06\x06");
  if (end == bytes.npos) throw std::runtime_error("no Zip64 directory");
  OnnxArrays arrays;
  size_t entry = at(end + 48, uint64_t{});
  for (uint64_t left = at(end + 32, uint64_t{}); left > 0; --left) {
    const size_t name_bytes = at(entry + 28, uint16_t{}), extra = at(entry + 30, uint16_t{});
    std::string name = bytes.substr(entry + 46, name_bytes);
    const size_t sizes = entry + 46 + name_bytes + 4, local = at(sizes + 16, uint64_t{});
    const size_t begin = local + 30 + at(local + 26, uint16_t{}) + at(local + 28, uint16_t{});
    const std::string_view npy = std::string_view(bytes).substr(begin, at(sizes, uint64_t{}));
    entry += 46 + name_bytes + extra;
    const size_t head_bytes = at(begin + 8, uint16_t{});
    const std::string head(npy.substr(10, head_bytes));
    std::vector<int64_t> dims;
    for (size_t p = head.find('(') + 1; head[p] != ')';) {
      size_t digits = 0;
      dims.push_back(std::stoll(head.substr(p), &digits));
      p = head.find_first_not_of(", ", p + digits);
    }
    if (!name.ends_with(".npy") || npy.substr(1, 5) != "NUMPY") throw std::runtime_error(name);
    name.resize(name.size() - 4);
    arrays[name] = array_from(dims, head.find("<i8") != head.npos, npy.substr(10 + head_bytes));
  }
  return arrays;
}

}  // namespace hctr::test
