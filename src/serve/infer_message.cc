#include "serve/infer_message.h"

#include <utility>

#include "core/base/expect.h"
#include "serve/proto_reader.h"

namespace hctr::serve {
namespace {

// Initial capacity of two lists: the dimensions of a tensor, and the inputs of a request.
constexpr size_t kUsualRank = 3, kUsualInputs = 4;

/// Reads one entry of a map from names to InferParameter.
void read_parameter(std::string_view entry, Parameters& to) {
  std::string key;
  Parameter value = false;
  for (ProtoReader field(entry); field.next();) {
    if (field.number() == 1) key = field.text();
    if (field.number() != 2) continue;
    for (ProtoReader one(field.bytes()); one.next();) {
      if (one.number() == 1) value = one.integer() != 0;
      if (one.number() == 2) value = static_cast<int64_t>(one.integer());
      if (one.number() == 3) value = one.text();
      if (one.number() == 4) value = one.real();
      if (one.number() == 5) value = one.integer();
    }
  }
  to[key] = std::move(value);
}

/// Appends the lowest `bytes` bytes of a number. `bytes`: the width of the datatype.
void append_value_bits(std::string& to, uint64_t bits, size_t bytes) {
  to.append(reinterpret_cast<const char*>(&bits), bytes);
}

/// Converts the values of an InferTensorContents message to bytes of the tensor's datatype.
std::string read_contents(std::string_view contents, const NamedTensor& tensor) {
  std::string bytes;
  const size_t width = size_of(tensor.type);
  for (ProtoReader field(contents); field.next();) {
    const int kind = field.number();  // field numbers 1 to 8: bool, int32, int64, uint32, uint64, fp32, fp64, bytes
    const bool fits = kind == 1   ? tensor.type == Datatype::boolean
                      : kind == 2 ? tensor.type >= Datatype::i8 && tensor.type <= Datatype::i32
                      : kind == 3 ? tensor.type == Datatype::i64
                      : kind == 4 ? tensor.type >= Datatype::u8 && tensor.type <= Datatype::u32
                      : kind == 5 ? tensor.type == Datatype::u64
                      : kind == 6 ? tensor.type == Datatype::f32
                      : kind == 7 ? tensor.type == Datatype::f64
                                  : kind == 8 && tensor.type == Datatype::bytes;
    if (!fits)
      throw Refusal::invalid("input '", tensor.name, "' has contents that do not match its datatype ",
                             word_of(tensor.type));
    if (kind == 8) {
      append_fixed(bytes, field.bytes().size(), 4);
      bytes += field.bytes();
      continue;
    }
    field.each(kind == 6   ? 4
               : kind == 7 ? 8
                           : 0,
               [&](uint64_t bits) {
                 // 8-bit and 16-bit integers are transmitted as 32 bits
                 if (width < 4 && tensor.type != Datatype::boolean) {
                   const auto value =
                       static_cast<int64_t>(kind == 2 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits));
                   const int64_t high = int64_t{1} << (8 * width - (kind == 2 ? 1 : 0)), low = kind == 2 ? -high : 0;
                   if (value < low || value >= high)
                     throw Refusal::invalid("input '", tensor.name, "': ", value, " is not a value of type ",
                                            word_of(tensor.type));
                 }
                 append_value_bits(bytes, bits, width);
               });
  }
  return bytes;
}

NamedTensor read_input(std::string_view message) {
  NamedTensor tensor;
  tensor.shape.reserve(kUsualRank);
  std::optional<std::string_view> contents;
  std::string datatype;
  for (ProtoReader field(message); field.next();) {
    if (field.number() == 1) tensor.name = field.text();
    if (field.number() == 2) datatype = field.text();
    if (field.number() == 3) field.each(0, [&](uint64_t size) { tensor.shape.push_back(static_cast<int64_t>(size)); });
    if (field.number() == 4) read_parameter(field.bytes(), tensor.parameters);
    if (field.number() == 5) contents = field.bytes();
  }
  const std::optional<Datatype> type = datatype_of(datatype);
  if (!type)
    throw Refusal::invalid("input '", tensor.name, "': '", datatype,
                           "' is not a datatype; expected one such as "
                           "FP32, INT64 or BYTES");
  tensor.type = *type;
  if (contents) {
    const auto own = std::make_shared<std::string>(read_contents(*contents, tensor));
    tensor.data = *own;
    tensor.owner = own;
  }
  return tensor;
}

}  // namespace

InferRequest read_infer_message(std::string_view bytes, const std::shared_ptr<const void>& owner) {
  InferRequest request;
  std::vector<std::string_view> raw;
  request.inputs.reserve(kUsualInputs);
  raw.reserve(kUsualInputs);
  for (ProtoReader field(bytes); field.next();) {
    if (field.number() == 1) request.model = field.text();
    if (field.number() == 2) request.version = field.text();
    if (field.number() == 3) request.id = field.text();
    if (field.number() == 4) read_parameter(field.bytes(), request.parameters);
    if (field.number() == 5) request.inputs.push_back(read_input(field.bytes()));
    if (field.number() == 6) {
      WantedOutput& output = request.outputs.emplace_back();
      for (ProtoReader of_output(field.bytes()); of_output.next();) {
        if (of_output.number() == 1) output.name = of_output.text();
        if (of_output.number() == 2) read_parameter(of_output.bytes(), output.parameters);
      }
    }
    if (field.number() == 7) raw.push_back(field.bytes());
  }
  if (raw.empty()) return request;
  size_t next = 0;
  for (NamedTensor& input : request.inputs) {
    if (input.parameters.contains("shared_memory_region")) continue;
    if (input.owner)
      throw Refusal::invalid("input '", input.name,
                             "' has contents, but the request has raw_input_contents; send "
                             "only one of the two");
    if (next < raw.size()) {
      input.data = raw[next];
      input.owner = owner;
    }
    ++next;
  }
  if (next != raw.size())
    throw Refusal::invalid("the request has ", raw.size(), " raw_input_contents for ", next, " inputs");
  return request;
}

std::string write_infer_message(std::span<const WantedOutput> wanted, const InferResponse& response,
                                const std::vector<bool>& written) {
  const auto in_region = [&](size_t output) { return output < written.size() && written[output]; };
  constexpr size_t kHeadOfOutput = 64;
  size_t length = response.model.size() + response.id.size() + kHeadOfOutput;
  for (const NamedTensor& output : response.outputs) length += output.name.size() + output.data.size() + kHeadOfOutput;
  std::string bytes;
  bytes.reserve(length);
  append_bytes_field(bytes, 1, response.model);
  append_bytes_field(bytes, 2, response.version);
  if (!response.id.empty()) append_bytes_field(bytes, 3, response.id);
  for (size_t o = 0; o < response.outputs.size(); ++o) {
    const NamedTensor& output = response.outputs[o];
    std::string tensor, shape;
    append_bytes_field(tensor, 1, output.name);
    append_bytes_field(tensor, 2, word_of(output.type));
    for (const int64_t size : output.shape) append_varint(shape, static_cast<uint64_t>(size));
    append_bytes_field(tensor, 3, shape);
    if (in_region(o)) {
      std::string region, size, entry;
      append_bytes_field(region, 3, text_parameter(wanted[o].parameters, "shared_memory_region").value_or(""));
      append_integer_field(size, 2, output.data.size());
      append_bytes_field(entry, 1, "shared_memory_region");
      append_bytes_field(entry, 2, region);
      append_bytes_field(tensor, 4, entry);
      entry.clear();
      append_bytes_field(entry, 1, "shared_memory_byte_size");
      append_bytes_field(entry, 2, size);
      append_bytes_field(tensor, 4, entry);
    }
    append_bytes_field(bytes, 5, tensor);
  }
  // Clients find the bytes of an output by its position: an output in shared memory has an empty entry.
  for (size_t o = 0; o < response.outputs.size(); ++o)
    append_bytes_field(bytes, 6, in_region(o) ? std::string_view() : response.outputs[o].data);
  return bytes;
}

}  // namespace hctr::serve
