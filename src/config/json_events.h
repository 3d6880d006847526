// JSON text as events, for texts whose values would take too much memory as Json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hctr {

/// Gets the values of a text in their order. An event returns false to end the reading.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual bool null() = 0;
  virtual bool boolean(bool) = 0;
  virtual bool integer(int64_t) = 0;
  virtual bool large_integer(uint64_t) = 0;  ///< above 2^63 - 1
  /// `text`: as it stands there, also of an integer beyond 64 bits.
  virtual bool fraction(double, const std::string& text) = 0;
  virtual bool string(std::string&) = 0;
  virtual bool key(std::string&) = 0;
  virtual bool begin_object() = 0;
  virtual bool end_object() = 0;
  virtual bool begin_array() = 0;
  virtual bool end_array() = 0;
};

/// Returns false where an event has ended the reading. Errors: Error(config) "<name>: line 3, column 14: ...", also for
/// more than 200 levels.
bool read_json_events(std::string_view text, std::string_view name, JsonEvents&);

}  // namespace hctr
