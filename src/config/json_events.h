// Parses JSON text into events, for texts that would take too much memory as a Json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hctr {

/// Receives the values of a JSON text in order. A callback returns false to stop parsing.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual bool null() = 0;
  virtual bool boolean(bool) = 0;
  virtual bool integer(int64_t) = 0;
  virtual bool large_integer(uint64_t) = 0;  ///< 2^63 or larger
  /// `text`: the number as written. Also called for an integer beyond 64 bits.
  virtual bool fraction(double, const std::string& text) = 0;
  virtual bool string(std::string&) = 0;
  virtual bool key(std::string&) = 0;
  virtual bool begin_object() = 0;
  virtual bool end_object() = 0;
  virtual bool begin_array() = 0;
  virtual bool end_array() = 0;
};

/// Returns false if a callback stopped the parsing. Errors: Error(config) "<name>: line 3, column 14: ..." for invalid
/// JSON and more than 200 levels.
bool read_json_events(std::string_view text, std::string_view name, JsonEvents&);

}  // namespace hctr
