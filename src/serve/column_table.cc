#include "serve/column_table.h"

#include <memory>
#include <utility>

#include "formats/parquet/arrow_c_data.h"
#include "formats/parquet/memory_table.h"

namespace hctr::serve {
namespace {

/// An Arrow array that owns its buffers.
struct OwnArray {
  ArrowArray array{};
  std::vector<std::string> buffers;
  std::vector<const void*> pointers;
  std::unique_ptr<OwnArray> items;
  std::vector<std::unique_ptr<OwnArray>> columns;
  std::vector<ArrowArray*> children;

  void complete(int64_t length, bool with_validity) {
    if (with_validity) pointers.push_back(nullptr);
    for (const std::string& buffer : buffers) pointers.push_back(buffer.data());
    if (items) children.push_back(&items->array);
    for (const auto& column : columns) children.push_back(&column->array);
    array.length = length;
    array.n_buffers = static_cast<int64_t>(pointers.size());
    array.buffers = pointers.data();
    array.n_children = static_cast<int64_t>(children.size());
    array.children = children.data();
  }
};

struct OwnSchema {
  ArrowSchema schema{};
  std::string format, name;
  std::vector<std::unique_ptr<OwnSchema>> parts;
  std::vector<ArrowSchema*> children;

  void complete() {
    for (const auto& part : parts) children.push_back(&part->schema);
    schema.format = format.c_str();
    schema.name = name.c_str();
    schema.flags = 2;  // the value of ARROW_FLAG_NULLABLE
    schema.n_children = static_cast<int64_t>(children.size());
    schema.children = children.data();
  }
};

const char* arrow_format(Datatype type) {
  constexpr const char* kFormats[] = {"b", "C", "S", "I", "L", "c", "s", "i", "l", "e", "f", "f", "g", "u"};
  return kFormats[static_cast<size_t>(type)];
}

std::string bytes_of(const auto& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])};
}

std::unique_ptr<OwnArray> values_of(const NamedTensor& tensor) {
  auto own = std::make_unique<OwnArray>();
  const int64_t count = elements_of(tensor);
  if (tensor.type == Datatype::boolean) {
    std::string bits(static_cast<size_t>(count + 7) / 8, '\0');
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      if (tensor.data[i]) bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << (i % 8));
    own->buffers = {std::move(bits)};
  } else if (tensor.type == Datatype::bytes) {
    std::vector<int32_t> ends = {0};
    std::string texts;
    for (const std::string_view text : texts_of(tensor)) {
      texts += text;
      ends.push_back(static_cast<int32_t>(texts.size()));
    }
    own->buffers = {bytes_of(ends), std::move(texts)};
  } else if (tensor.type == Datatype::bf16) {
    own->buffers = {bytes_of(floats_of(tensor))};
  } else {
    own->buffers = {std::string(tensor.data)};
  }
  own->complete(count, true);
  return own;
}

std::unique_ptr<OwnArray> array_of(const TableColumn& column, int64_t rows) {
  if (column.values && column.ends.empty()) return values_of(*column.values);
  auto own = std::make_unique<OwnArray>();
  if (column.values) {
    own->buffers = {bytes_of(column.ends)};
    own->items = values_of(*column.values);
  } else {
    own->array.null_count = rows;
  }
  own->complete(rows, column.values != nullptr);
  return own;
}

std::unique_ptr<OwnSchema> schema_of(const TableColumn& column) {
  auto own = std::make_unique<OwnSchema>();
  own->name = column.name;
  own->format = column.values ? arrow_format(column.values->type) : "n";
  if (column.values && !column.ends.empty()) {
    auto items = std::make_unique<OwnSchema>();
    items->name = "item";
    items->format = std::exchange(own->format, "+l");
    items->complete();
    own->parts.push_back(std::move(items));
  }
  own->complete();
  return own;
}

/// Transfers ownership to an Arrow struct, whose release callback frees the memory. Child structs need no release
/// callback.
template <class Own, class Struct>
Struct handed_over(std::unique_ptr<Own> own, Struct Own::*member) {
  Struct given = (*own).*member;
  given.private_data = own.release();
  given.release = [](Struct* released) {
    delete static_cast<Own*>(released->private_data);
    released->release = nullptr;
  };
  return given;
}

}  // namespace

ColumnTable::ColumnTable(int64_t rows, const std::vector<TableColumn>& columns) {
  auto schema = std::make_unique<OwnSchema>();
  auto array = std::make_unique<OwnArray>();
  schema->format = "+s";
  for (const TableColumn& column : columns) {
    schema->parts.push_back(schema_of(column));
    array->columns.push_back(array_of(column, rows));
  }
  schema->complete();
  array->complete(rows, true);
  ArrowSchema given = handed_over(std::move(schema), &OwnSchema::schema);
  std::vector<ArrowArray> batches = {handed_over(std::move(array), &OwnArray::array)};
  source_ = add_memory_source(memory_table(given, batches));
}

ColumnTable::~ColumnTable() { remove_memory_source(source_); }

}  // namespace hctr::serve
