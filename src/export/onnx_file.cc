#include "export/onnx_file.h"

#include <algorithm>
#include <charconv>

#include "core/base/build_info.h"
#include "export/proto_message.h"

namespace hctr {
namespace {

constexpr int64_t kIrVersion = 7;     // the IR version that introduced opset 13
constexpr int64_t kAlignment = 4096;  // alignment of external arrays for memory mapping
constexpr int64_t kSmallBytes = 1024;

// Constants of onnx.proto: TensorProto.DataType and AttributeProto.AttributeType.
constexpr int64_t kFloat = 1, kInt64 = 7;
constexpr int64_t kAttributeFloat = 1, kAttributeInt = 2, kAttributeInts = 7;

int64_t type_number(DType dtype) { return dtype == DType::i64 ? kInt64 : kFloat; }

ProtoMessage entry(const std::string& key, const std::string& value) {
  return std::move(ProtoMessage().text(1, key).text(2, value));
}

ProtoMessage attribute_message(const OnnxAttribute& attribute) {
  ProtoMessage message;
  message.text(1, attribute.name);
  if (const auto* real = std::get_if<float>(&attribute.value)) {
    message.real(2, *real).number(20, kAttributeFloat);
  } else if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
    message.number(3, *number).number(20, kAttributeInt);
  } else {
    for (const int64_t each : std::get<std::vector<int64_t>>(attribute.value)) message.number(8, each);
    message.number(20, kAttributeInts);
  }
  return message;
}

ProtoMessage node_message(const OnnxNode& node) {
  ProtoMessage message;
  for (const std::string& in : node.in) message.text(1, in);
  for (const std::string& out : node.out) message.text(2, out);
  message.text(3, node.out[0]).text(4, node.op);
  for (const OnnxAttribute& attribute : node.attributes) message.message(5, attribute_message(attribute));
  return message;
}

ProtoMessage value_message(const OnnxValue& value) {
  ProtoMessage shape;
  for (const std::string& dim : value.dims) {
    int64_t number = 0;
    const auto [end, status] = std::from_chars(dim.data(), dim.data() + dim.size(), number);
    ProtoMessage message;
    if (status == std::errc() && end == dim.data() + dim.size())
      message.number(1, number);
    else
      message.text(2, dim);
    shape.message(1, std::move(message));
  }
  ProtoMessage tensor, type, message;
  tensor.number(1, type_number(value.dtype)).message(2, std::move(shape));
  type.message(1, std::move(tensor));
  message.text(1, value.name).message(2, std::move(type));
  return message;
}

ProtoMessage tensor_head(const StoredArray& array) {
  ProtoMessage message;
  for (const int64_t dim : array.dims) message.number(1, dim);
  message.number(2, type_number(array.dtype)).text(8, array.name);
  return message;
}

StoredArray array_of(const OnnxConstant& constant) {
  return std::visit([&](const auto& values) { return stored(constant.name, constant.dims, values); }, constant.values);
}

/// Writes initializers into the graph message or into an external file.
class Initializers {
 public:
  Initializers(FileSet& set, fs::path path, int64_t most_inline)
      : set_(set), path_(std::move(path)), most_inline_(most_inline) {}

  void add(const StoredArray& array, ProtoMessage& graph) {
    ProtoMessage message = tensor_head(array);
    if (array.bytes() <= most_inline_)
      message.array(9, array);
    else
      refer(array, message);
    graph.message(5, std::move(message));
  }
  void finish() {
    if (file_) file_->finish();
  }

 private:
  void refer(const StoredArray& array, ProtoMessage& message) {
    if (!file_) file_ = &set_.add(path_);
    const std::string gap(static_cast<size_t>((kAlignment - at_ % kAlignment) % kAlignment), '\0');
    file_->write(gap);
    at_ += static_cast<int64_t>(gap.size());
    message.message(13, entry("location", path_.filename().string()))
        .message(13, entry("offset", std::to_string(at_)))
        .message(13, entry("length", std::to_string(array.bytes())))
        .number(14, 1);
    array.write([&](std::span<const std::byte> bytes) { file_->write(bytes.data(), bytes.size()); });
    at_ += array.bytes();
  }

  FileSet& set_;
  fs::path path_;
  int64_t most_inline_, at_ = 0;
  AtomicFile* file_ = nullptr;
};

}  // namespace

void write_onnx(FileSet& set, const fs::path& path, const OnnxModel& model, int64_t most_inline) {
  most_inline = std::clamp(most_inline, kSmallBytes, kMostOnnxBytes);
  int64_t together = 0;
  for (const StoredArray& array : model.initializers)
    if (array.bytes() <= most_inline) together += array.bytes();
  if (together > kMostOnnxBytes) most_inline = kSmallBytes;
  fs::path data = path;
  data += ".data";
  AtomicFile& file = set.add(path);
  Initializers initializers(set, data, most_inline);
  ProtoMessage graph, opset, whole;
  for (const OnnxNode& node : model.graph.nodes()) graph.message(1, node_message(node));
  graph.text(2, "huge_ctr");
  for (const OnnxConstant& constant : model.graph.constants()) {
    ProtoMessage message = tensor_head(array_of(constant));
    message.array(9, array_of(constant));
    graph.message(5, std::move(message));
  }
  for (const StoredArray& array : model.initializers) initializers.add(array, graph);
  for (const OnnxValue& input : model.inputs) graph.message(11, value_message(input));
  for (const OnnxValue& output : model.outputs) graph.message(12, value_message(output));
  whole.number(1, kIrVersion).text(2, "huge_ctr").text(3, version()).message(7, std::move(graph));
  whole.message(8, std::move(opset.text(1, "").number(2, kOnnxOpset)));
  for (const auto& [key, value] : model.metadata) whole.message(14, entry(key, value));
  whole.write([&](std::span<const std::byte> bytes) { file.write(bytes.data(), bytes.size()); });
  file.finish();
  initializers.finish();
}

}  // namespace hctr
