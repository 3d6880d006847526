#include "config/json.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "config/json_events.h"
#include "core/base/expect.h"
#include "core/base/files.h"

namespace hctr {
namespace {

/// The text "line 3, column 14" for a byte offset.
std::string position_of(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  return cat("line ", line, ", column ", newline == before.npos ? before.size() + 1 : before.size() - newline);
}

/// Maximum nesting depth, more than any config needs. Writing and destroying a Json use recursion, so deeper nesting
/// could exhaust the stack.
constexpr size_t kMaxDepth = 200;

/// Maximum number of values in a file: enough for half a million layers, or for lists with half a million slots. The
/// limit bounds the memory, because a value takes at least 40 bytes in memory, but its text may have only 2 bytes.
constexpr size_t kMostValues = size_t{1} << 22;

/// Counts the bytes that the parser has read, because parser events do not report offsets.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t& count) : at_(at), count_(&count) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  size_t* count_;
};

/// Builds a Json from parser events. The builder has its own stack to detect duplicate keys.
class Builder : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  Builder(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Json build() {
    nlohmann::ordered_json::sax_parse(CountingIterator(text_.data(), read_),
                                      CountingIterator(text_.data() + text_.size(), read_), this);
    return std::move(root_);
  }

  bool null() override { return put({}); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    return value <= static_cast<number_unsigned_t>(std::numeric_limits<int64_t>::max())
               ? put(static_cast<int64_t>(value))
               : put(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    // An integer beyond 64 bits would be rounded. It is an error, because no field accepts such a number.
    if (text.find_first_not_of("-0123456789") == text.npos)
      fail(read_ - text.size() - 1,
           cat("the integer ", text, " exceeds 64 bits; write larger numbers with an exponent: 1e30"));
    return put(value);
  }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON text has no binary values
  bool start_object(std::size_t) override { return open(Json(Json::Object{})); }
  bool start_array(std::size_t) override { return open(Json(Json::Array{})); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& key) override {
    if (!seen_.back().insert(key).second)
      fail(read_ - key.size() - 2, cat("the key \"", key, "\" appears twice in one object"));
    keys_.push_back(key);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& error) override {
    // has the form "[json.exception.parse_error.101] parse error at line 1, column 2: <reason>"
    std::string reason = error.what();
    if (const size_t colon = reason.find(": "); colon != std::string::npos) reason = reason.substr(colon + 2);
    if (token.empty() || position >= text_.size()) reason += " (the file ends too early: is a bracket missing?)";
    fail(position > 0 ? position - 1 : 0, "not valid JSON: " + reason);
  }

 private:
  [[noreturn]] void fail(size_t offset, const std::string& what) const {
    throw Error(Kind::config, cat(name_, ": ", position_of(text_, offset), ": ", what));
  }
  bool open(Json container) {
    if (stack_.size() == kMaxDepth)
      fail(read_ - 1,
           cat("an object or array is nested inside ", kMaxDepth, " others; at most ", kMaxDepth, " levels are read"));
    stack_.push_back(std::move(container));
    seen_.emplace_back();
    return true;
  }
  bool close() {
    Json done = std::move(stack_.back());
    stack_.pop_back();
    seen_.pop_back();
    return put(std::move(done));
  }
  bool put(Json value) {
    if (++values_ > kMostValues)
      fail(read_ - 1, cat("more than ", kMostValues,
                          " values: expected fewer; move long lists to separate files, such as vocabularies"));
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (stack_.back().array()) {
      stack_.back().add(std::move(value));
    } else {
      stack_.back().set(keys_.back(), std::move(value));
      keys_.pop_back();
    }
    return true;
  }

  std::string_view text_, name_;
  size_t values_ = 0;
  size_t read_ = 0;  // bytes read, including the current event's token
  Json root_;
  std::vector<Json> stack_;
  // keys of each open object; a set, because an object may have 10^5 keys
  std::vector<std::unordered_set<std::string>> seen_;
  std::vector<std::string> keys_;
};

/// Forwards parser events to JsonEvents.
class EventPasser : public nlohmann::json_sax<nlohmann::json> {
 public:
  EventPasser(std::string_view text, std::string_view name, JsonEvents& to) : text_(text), name_(name), to_(to) {}

  bool null() override { return to_.null(); }
  bool boolean(bool value) override { return to_.boolean(value); }
  bool number_integer(number_integer_t value) override { return to_.integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return value <= static_cast<number_unsigned_t>(std::numeric_limits<int64_t>::max())
               ? to_.integer(static_cast<int64_t>(value))
               : to_.large_integer(value);
  }
  bool number_float(number_float_t value, const string_t& text) override { return to_.fraction(value, text); }
  bool string(string_t& value) override { return to_.string(value); }
  bool binary(binary_t&) override { return false; }  // JSON text has no binary values
  bool start_object(std::size_t) override { return deeper() && to_.begin_object(); }
  bool key(string_t& key) override { return to_.key(key); }
  bool end_object() override { return --depth_, to_.end_object(); }
  bool start_array(std::size_t) override { return deeper() && to_.begin_array(); }
  bool end_array() override { return --depth_, to_.end_array(); }
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& error) override {
    std::string reason = error.what();
    if (const size_t colon = reason.find(": "); colon != std::string::npos) reason = reason.substr(colon + 2);
    if (token.empty() || position >= text_.size()) reason += " (the text ends too early: is a bracket missing?)";
    throw Error(Kind::config,
                cat(name_, ": ", position_of(text_, position > 0 ? position - 1 : 0), ": not valid JSON: ", reason));
  }

 private:
  bool deeper() {
    if (++depth_ > kMaxDepth) throw Error(Kind::config, cat(name_, ": more than ", kMaxDepth, " levels of JSON"));
    return true;
  }

  std::string_view text_, name_;
  JsonEvents& to_;
  size_t depth_ = 0;
};

nlohmann::ordered_json to_nlohmann(const Json& value) {
  if (const bool* b = value.boolean()) return *b;
  if (const int64_t* i = value.integer()) return *i;
  if (value.is_number()) return value.number();
  if (const std::string* s = value.string()) return *s;
  if (const auto* array = value.array()) {
    auto out = nlohmann::ordered_json::array();
    for (const Json& element : *array) out.push_back(to_nlohmann(element));
    return out;
  }
  if (const auto* object = value.object()) {
    // a plain vector, because operator[] of the object would search all previous keys
    nlohmann::ordered_json::object_t out;
    std::unordered_map<std::string_view, size_t> places;
    for (const auto& [key, member] : *object)
      if (const auto [at, is_new] = places.emplace(key, out.size()); is_new)
        out.emplace_back(key, to_nlohmann(member));
      else  // if a key is duplicate, the last value wins
        (out.begin() + static_cast<std::ptrdiff_t>(at->second))->second = to_nlohmann(member);
    return out;
  }
  return nullptr;
}

}  // namespace

Json::Json() = default;
Json::Json(bool value) : value_(value) {}
Json::Json(int64_t value) : value_(value) {}
Json::Json(int value) : value_(int64_t{value}) {}
Json::Json(double value) : value_(value) {}
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(Array value) : value_(std::move(value)) {}
Json::Json(Object value) : value_(std::move(value)) {}
// Copies by assignment, because libstdc++ before 14 destroys an unconstructed value if the copy constructor of
// std::variant throws.
Json::Json(const Json& other) { value_ = other.value_; }
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::parse(std::string_view text, std::string_view name) { return Builder(text, name).build(); }

bool read_json_events(std::string_view text, std::string_view name, JsonEvents& to) {
  EventPasser passer(text, name, to);
  return nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &passer);
}

Json Json::read_file(const std::filesystem::path& path) { return parse(read_text(path, ""), path.string()); }

double Json::number() const {
  if (const int64_t* i = integer()) return static_cast<double>(*i);
  return std::get<double>(value_);
}

const Json* Json::find(std::string_view key) const {
  if (const Object* members = object())
    for (const auto& [name, value] : *members)
      if (name == key) return &value;
  return nullptr;
}

Json& Json::set(std::string_view key, Json value) {
  if (is_null()) value_ = Object{};
  auto& members = std::get<Object>(value_);
  members.emplace_back(std::string(key), std::move(value));
  return *this;
}

Json& Json::add(Json value) {
  if (is_null()) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

std::string Json::text(int indent) const {
  return to_nlohmann(*this).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Json::kind() const {
  if (boolean()) return *boolean() ? "true" : "false";
  if (integer()) return cat("the integer ", *integer());
  if (is_number()) return cat("the number ", number());
  if (string()) return cat("the string \"", *string(), "\"");
  if (array()) return cat("an array of ", array()->size());
  if (object()) return "an object";
  return "null";
}

}  // namespace hctr
