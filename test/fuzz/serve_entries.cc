// Fuzz entries for requests to the service and for its config files.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/entry_tools.h"
#include "serve/http_parser.h"
#include "serve/infer_json.h"
#include "serve/infer_message.h"
#include "serve/key_look_up.h"
#include "serve/model_config.h"
#include "serve/proto_text.h"

namespace hctr::fuzz {
namespace {

using serve::HttpParser;

/// Runs `body`, which may throw Refusal or Error(config), no other Error.
template <class Body>
void tolerate_refusal(const Body& body) {
  try {
    body();
  } catch (const serve::Refusal&) {
  } catch (const Error& error) {
    expect(error.kind() == Kind::config);
  }
}

/// Splits the keys of tables, if the request has key inputs. Then converts each tensor with the calls by which a
/// model's inputs are read.
void read_tensors_of(const serve::InferRequest& request) {
  if (serve::has_key_inputs(request)) {
    size_t keys = 0;
    for (const std::vector<int64_t>& table : serve::read_keys_of_tables(request, 2)) keys += table.size();
    const auto given = std::ranges::find(request.inputs, "KEYS", &serve::NamedTensor::name);
    expect(static_cast<int64_t>(keys) == serve::elements_of(*given));
  }
  for (const serve::NamedTensor& input : request.inputs) {
    serve::expect_whole(input);
    if (input.type == serve::Datatype::bytes)
      (void)serve::texts_of(input);
    else
      (void)serve::floats_of(input);
  }
}

serve::HttpLimits limits_of_fuzzing() {
  serve::HttpLimits limits;
  limits.header_bytes = 4096;
  limits.body_bytes = 4096;
  return limits;
}

}  // namespace

void http_request(Bytes bytes) {
  if (bytes.empty()) return;
  // Parses the request as a whole, and in parts of `part` bytes.
  const std::string text(bytes.begin() + 1, bytes.end());
  const size_t part = 1 + bytes[0] % 16;
  HttpParser whole(limits_of_fuzzing()), parts(limits_of_fuzzing());
  const size_t taken = whole.feed(text);
  size_t at = 0;
  while (at < text.size() && !parts.complete() && parts.refused() == 0)
    at += parts.feed(std::string_view(text).substr(at, part));
  expect(whole.complete() == parts.complete() && whole.refused() == parts.refused());
  if (!whole.complete()) return;
  expect(at == taken);
  const serve::HttpRequest one = whole.take(), other = parts.take();
  expect(one.method == other.method && one.target == other.target && one.headers == other.headers &&
         one.body == other.body && one.body.size() <= 4096);
}

void infer_json(Bytes bytes) {
  const auto text = std::make_shared<std::string>(bytes.begin(), bytes.end());
  const size_t json = std::min(text->find('\0'), text->size());
  tolerate_refusal([&] {
    read_tensors_of(serve::read_infer_json(std::string_view(*text).substr(0, json),
                                           std::string_view(*text).substr(std::min(json + 1, text->size())), text));
  });
}

void infer_message(Bytes bytes) {
  const auto text = std::make_shared<std::string>(bytes.begin(), bytes.end());
  tolerate_refusal([&] { read_tensors_of(serve::read_infer_message(*text, text)); });
}

void model_config_text(Bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  tolerate_refusal([&] {
    const Json json = serve::read_proto_text(text, "config.pbtxt");
    (void)serve::read_model_config(json, "config.pbtxt", {});
  });
}

}  // namespace hctr::fuzz
