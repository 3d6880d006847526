#include "store/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"
#include "core/base/expect.h"
#include "core/base/half.h"

namespace hctr {
namespace {

constexpr int64_t kRowsOfBlock = 8192, kMostHeader = 100'000'000;  // rows per read; maximum header bytes of the format
constexpr const char *kSafetensors = "safetensors file", *kKeyArray = "key", *kVectorArray = "vector";

struct StoredTensor {
  std::string name, type;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  // byte range in the file
  int64_t width() const { return type == "I64" || type == "F64" ? 8 : type == "F32" || type == "I32" ? 4 : 2; }
};

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const fs::path& path) : path_(path), file_(open_to_read(path, kSafetensors)) {
    const int64_t bytes = size_of_file(path, kSafetensors);
    uint64_t header = 0;
    if (std::fread(&header, sizeof header, 1, file_.get()) != 1 || header > static_cast<uint64_t>(kMostHeader) ||
        static_cast<int64_t>(header) > bytes - 8)
      refuse("has no header");
    std::string text(header, ' ');
    if (std::fread(text.data(), 1, text.size(), file_.get()) != text.size()) refuse("is truncated");
    const Json json = Json::parse(text, path.string());
    if (!json.object()) refuse("has a header that is not an object");
    for (const auto& [name, about] : *json.object())
      if (name != "__metadata__") tensors_.push_back(read_about(name, about, 8 + static_cast<int64_t>(header), bytes));
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Kind::data, cat("'", path_.string(), "' ", why));
  }
  const StoredTensor* find(const char* name) const {
    const auto found = std::ranges::find(tensors_, name, &StoredTensor::name);
    return found == tensors_.end() ? nullptr : &*found;
  }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  void read(const StoredTensor& from, int64_t first_byte, std::vector<std::byte>& to) const {
    if (std::fseek(file_.get(), static_cast<long>(from.begin + first_byte), SEEK_SET) != 0 ||
        std::fread(to.data(), 1, to.size(), file_.get()) != to.size())
      refuse("cannot be read");
  }

 private:
  StoredTensor read_about(const std::string& name, const Json& about, int64_t start, int64_t bytes) const {
    StoredTensor tensor{name, {}, {}};
    const Json *type = about.find("dtype"), *shape = about.find("shape"), *offsets = about.find("data_offsets");
    if (!type || !type->string() || !shape || !shape->array() || !offsets || !offsets->array() ||
        offsets->array()->size() != 2)
      refuse(cat("lacks dtype, shape or data_offsets of '", name, "'"));
    tensor.type = *type->string();
    const auto number = [&](const Json& json) {
      if (!json.integer() || *json.integer() < 0) refuse(cat("has a size of '", name, "' that is not a number"));
      return *json.integer();
    };
    for (const Json& size : *shape->array()) tensor.shape.push_back(number(size));
    tensor.begin = start + number((*offsets->array())[0]);
    tensor.end = start + number((*offsets->array())[1]);
    if (tensor.begin > tensor.end || tensor.end > bytes) refuse(cat("is too short for '", name, "'"));
    return tensor;
  }

  fs::path path_;
  File file_;
  std::vector<StoredTensor> tensors_;
};

float float_at(const std::string& type, const std::byte* at) {
  if (type == "F32") {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return type == "F16" ? static_cast<float>(std::bit_cast<Half>(bits))
                       : static_cast<float>(std::bit_cast<BFloat16>(bits));
}

int64_t integer_at(const std::string& type, const std::byte* at) {
  if (type == "I64") {
    int64_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  int32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

void read_safetensors(const fs::path& path, int64_t dim,
                      const std::function<void(std::span<const int64_t>, std::span<const float>)>& sink) {
  const SafetensorsFile file(path);
  const StoredTensor *keys = file.find(kKeyArray), *vectors = file.find(kVectorArray);
  if (!keys && !vectors && file.tensors().size() == 1) vectors = file.tensors().data();
  if (!vectors || (!keys && file.tensors().size() > 1))
    file.refuse("needs arrays 'key' and 'vector', or a single array whose rows have the keys 0, 1, 2, ...");
  if (vectors->type != "F32" && vectors->type != "F16" && vectors->type != "BF16")
    file.refuse(cat("has '", vectors->name, "' of type ", vectors->type, "; expected F32, F16 or BF16"));
  if (vectors->shape.size() != 2 || vectors->shape[1] != dim)
    file.refuse(cat("has '", vectors->name, "' of ", vectors->shape.size(), " dimensions with rows of ",
                    vectors->shape.empty() ? 0 : vectors->shape.back(), " elements; expected shape [rows, ", dim, "]"));
  const int64_t rows = vectors->shape[0];
  if (vectors->end - vectors->begin != rows * dim * vectors->width())
    file.refuse(
        "has vectors whose size does not "
        "match their shape");
  if (keys && ((keys->type != "I64" && keys->type != "I32") || keys->shape != std::vector{rows} ||
               keys->end - keys->begin != rows * keys->width()))
    file.refuse(cat("needs keys of type I64 or I32 and shape [", rows, "]"));
  std::vector<std::byte> bytes;
  std::vector<int64_t> block_keys;
  std::vector<float> block;
  for (int64_t first = 0; first < rows; first += kRowsOfBlock) {
    const int64_t count = std::min(kRowsOfBlock, rows - first);
    block_keys.resize(static_cast<size_t>(count));
    std::iota(block_keys.begin(), block_keys.end(), first);
    if (keys) {
      bytes.resize(static_cast<size_t>(count * keys->width()));
      file.read(*keys, first * keys->width(), bytes);
      for (int64_t i = 0; i < count; ++i)
        block_keys[static_cast<size_t>(i)] = integer_at(keys->type, bytes.data() + i * keys->width());
    }
    const int64_t width = vectors->width();
    bytes.resize(static_cast<size_t>(count * dim * width));
    file.read(*vectors, first * dim * width, bytes);
    block.resize(static_cast<size_t>(count * dim));
    for (int64_t i = 0; i < count * dim; ++i)
      block[static_cast<size_t>(i)] = float_at(vectors->type, bytes.data() + i * width);
    sink(block_keys, block);
  }
}

}  // namespace hctr
