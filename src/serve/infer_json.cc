#include "serve/infer_json.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "config/json.h"
#include "config/json_events.h"
#include "core/base/expect.h"
#include "serve/json_values.h"

namespace hctr::serve {
namespace {

/// Builds a request from JSON parser events. Unknown fields are skipped.
class RequestJson : public JsonEvents {
 public:
  InferRequest request;
  std::vector<std::string> bytes;  // JSON values of each input, as bytes
  bool has_inputs = false;

  bool null() override { return value_seen(); }
  bool boolean(bool value) override { return value_of(Parameter(value), JsonValues::Value(value)); }
  bool integer(int64_t value) override { return value_of(Parameter(value), JsonValues::Value(value)); }
  bool large_integer(uint64_t value) override { return value_of(Parameter(value), JsonValues::Value(value)); }
  bool fraction(double value, const std::string&) override {
    return value_of(Parameter(value), JsonValues::Value(JsonValues::Fraction{value}));
  }
  bool string(std::string& value) override {
    if (in_ != In::data || skips_ > 0) return value_of(Parameter(std::move(value)), JsonValues::Value(false));
    values_.add(std::move(value));
    return true;
  }
  bool key(std::string& key) override {
    key_ = std::move(key);
    return true;
  }
  bool begin_object() override {
    if (skips_ > 0) return ++skips_;
    switch (in_) {
      case In::nothing:
        return enter(In::request);
      case In::inputs:
        request.inputs.emplace_back();
        bytes.emplace_back();
        values_ = {};
        has_type_ = has_data_ = false;
        return enter(In::input);
      case In::outputs:
        request.outputs.emplace_back();
        return enter(In::output);
      case In::request:
      case In::input:
      case In::output:
        if (key_ == "parameters") return enter(In::parameters);
        break;
      default:
        break;
    }
    return skip("an object");
  }
  bool end_object() override {
    if (skips_ > 0) return --skips_, true;
    if (in_ == In::input) end_input();
    return leave();
  }
  bool begin_array() override {
    if (skips_ > 0) return ++skips_;
    if (in_ == In::request && key_ == "inputs") {
      has_inputs = true;
      return enter(In::inputs);
    }
    if (in_ == In::request && key_ == "outputs") return enter(In::outputs);
    if (in_ == In::input && key_ == "shape") {
      request.inputs.back().shape.clear();
      return enter(In::shape);
    }
    if (in_ == In::input && key_ == "data") {
      has_data_ = true;
      return enter(In::data);
    }
    if (in_ == In::data) return enter(In::data);
    return skip("an array");
  }
  bool end_array() override {
    if (skips_ > 0) return --skips_, true;
    return leave();
  }

 private:
  enum class In { nothing, request, inputs, input, shape, data, outputs, output, parameters };

  bool enter(In in) {
    above_.push_back(in_);
    in_ = in;
    return true;
  }
  bool leave() {
    in_ = above_.back();
    above_.pop_back();
    return true;
  }
  bool skip(const char* what) {
    if (in_ == In::shape || in_ == In::data || in_ == In::inputs || in_ == In::outputs || in_ == In::nothing)
      throw Refusal::invalid(where(), " holds ", what, ", which is not allowed there");
    return ++skips_;
  }
  std::string where() const {
    switch (in_) {
      case In::nothing:
        return "the request";
      case In::inputs:
        return "'inputs'";
      case In::outputs:
        return "'outputs'";
      default:
        return cat("input '", request.inputs.empty() ? "" : request.inputs.back().name, "'",
                   in_ == In::data    ? ": 'data'"
                   : in_ == In::shape ? ": 'shape'"
                                      : "");
    }
  }
  bool value_seen() {
    if (skips_ > 0 || in_ == In::request || in_ == In::input || in_ == In::output || in_ == In::parameters) return true;
    return skip("null");
  }
  Parameters& parameters() {
    return above_.back() == In::input    ? request.inputs.back().parameters
           : above_.back() == In::output ? request.outputs.back().parameters
                                         : request.parameters;
  }
  bool value_of(Parameter parameter, JsonValues::Value value) {
    if (skips_ > 0) return true;
    const auto* text = std::get_if<std::string>(&parameter);
    switch (in_) {
      case In::data:
        values_.add(std::move(value));
        return true;
      case In::shape: {
        const auto* size = std::get_if<int64_t>(&parameter);
        if (!size) throw Refusal::invalid(where(), " must be integers");
        request.inputs.back().shape.push_back(*size);
        return true;
      }
      case In::parameters:
        parameters()[key_] = std::move(parameter);
        return true;
      case In::request:
        if (key_ == "id") {
          if (const auto* number = std::get_if<int64_t>(&parameter))
            request.id = std::to_string(*number);
          else
            request.id = expect_text(text);
        }
        if (key_ == "inputs" || key_ == "outputs") throw Refusal::invalid("'", key_, "' must be an array");
        return true;
      case In::input:
        if (key_ == "name") request.inputs.back().name = expect_text(text);
        if (key_ == "datatype") set_type(expect_text(text));
        if (key_ == "data" || key_ == "shape") throw Refusal::invalid(where(), ": '", key_, "' must be an array");
        return true;
      case In::output:
        if (key_ == "name") request.outputs.back().name = expect_text(text);
        return true;
      default:
        return skip("a value");
    }
  }
  const std::string& expect_text(const std::string* text) const {
    if (!text) throw Refusal::invalid("'", key_, "' must be a text");
    return *text;
  }
  void set_type(const std::string& word) {
    const std::optional<Datatype> type = datatype_of(word);
    if (!type)
      throw Refusal::invalid(where(), ": '", word,
                             "' is not a datatype; expected one such as FP32, INT64 "
                             "or BYTES");
    request.inputs.back().type = *type;
    has_type_ = true;
    values_.set_type(*type);
  }
  void end_input() {
    NamedTensor& input = request.inputs.back();
    if (input.name.empty()) throw Refusal::invalid("input ", request.inputs.size() - 1, " has no 'name'");
    if (!has_type_) throw Refusal::invalid("input '", input.name, "' has no 'datatype'");
    if (has_data_ && static_cast<int64_t>(values_.count()) != elements_of(input))
      throw Refusal::invalid("Unable to parse 'data': Shape does not match the elements of data for '", input.name,
                             "': expecting ", elements_of(input), " elements, found ", values_.count());
    const bool elsewhere =
        input.parameters.contains("binary_data_size") || input.parameters.contains("shared_memory_region");
    if (!has_data_ && !elsewhere && elements_of(input) > 0)
      throw Refusal::invalid("input '", input.name, "' has no 'data'");
    if (has_data_ && elsewhere)
      throw Refusal::invalid("input '", input.name,
                             "' has 'data' in addition to binary "
                             "data or shared memory");
    bytes.back() = values_.take();
  }

  In in_ = In::nothing;
  std::vector<In> above_;
  std::string key_;
  int skips_ = 0;
  JsonValues values_;
  bool has_type_ = false, has_data_ = false;
};

template <class T>
void append_numbers(std::string& to, std::string_view data) {
  char text[32];
  for (size_t i = 0; i < data.size() / sizeof(T); ++i) {
    const T value = element<T>(data, i);
    if (i > 0) to += ',';
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) {
        to += std::isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity";
        continue;
      }
    }
    to.append(text, std::to_chars(text, text + sizeof text, value).ptr);
  }
}

}  // namespace

InferRequest read_infer_json(std::string_view json, std::string_view tail, const std::shared_ptr<const void>& owner) {
  RequestJson reading;
  try {
    read_json_events(json, "the request", reading);
  } catch (const Error& error) {
    throw Refusal::invalid("failed to parse the request JSON buffer: ", error.what());
  }
  if (!reading.has_inputs) throw Refusal::invalid("the request has no 'inputs'");
  InferRequest request = std::move(reading.request);
  size_t at = 0;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    NamedTensor& input = request.inputs[i];
    if (const auto size = count_parameter(input.parameters, "binary_data_size")) {
      if (static_cast<uint64_t>(*size) > tail.size() - at)
        throw Refusal::invalid("unexpected size for input '", input.name, "', expecting ",
                               static_cast<uint64_t>(*size) - (tail.size() - at), " additional bytes of binary data");
      input.data = tail.substr(at, static_cast<size_t>(*size));
      input.owner = owner;
      at += static_cast<size_t>(*size);
    } else if (!reading.bytes[i].empty()) {
      const auto own = std::make_shared<std::string>(std::move(reading.bytes[i]));
      input.data = *own;
      input.owner = own;
    }
  }
  if (at != tail.size())
    throw Refusal::invalid("unexpected additional input data: ", tail.size() - at, " bytes belong to no input");
  return request;
}

InferAnswer write_infer_json(const InferRequest& request, const InferResponse& response,
                             const std::vector<bool>& written) {
  const bool all_binary = flag_parameter(request.parameters, "binary_data_output").value_or(false);
  const auto quoted = [](const std::string& text) { return Json(text).text(); };
  InferAnswer answer;
  std::string& json = answer.body;
  std::string tail;
  json = "{";
  if (!response.id.empty()) json += cat("\"id\":", quoted(response.id), ",");
  json +=
      cat("\"model_name\":", quoted(response.model), ",\"model_version\":", quoted(response.version), ",\"outputs\":[");
  for (size_t o = 0; o < response.outputs.size(); ++o) {
    const NamedTensor& output = response.outputs[o];
    const Parameters none;
    const Parameters& wanted = o < request.outputs.size() ? request.outputs[o].parameters : none;
    const bool binary = flag_parameter(wanted, "binary_data").value_or(all_binary);
    json += cat(o == 0 ? "" : ",", "{\"name\":", quoted(output.name), ",\"datatype\":\"", word_of(output.type),
                "\",\"shape\":", text_of_shape(output.shape));
    if (written[o]) {
      json += cat(",\"parameters\":{\"shared_memory_region\":",
                  quoted(text_parameter(wanted, "shared_memory_region").value_or("")),
                  ",\"shared_memory_byte_size\":", output.data.size(), "}");
    } else if (binary) {
      answer.binary = true;
      json += cat(",\"parameters\":{\"binary_data_size\":", output.data.size(), "}");
      tail += output.data;
    } else {
      json += ",\"data\":[";
      append_numbers<float>(json, output.data);
      json += ']';
    }
    json += '}';
  }
  json += "]}";
  answer.json_bytes = json.size();
  json += tail;
  return answer;
}

}  // namespace hctr::serve
