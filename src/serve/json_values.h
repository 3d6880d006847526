// Converts a tensor's JSON values to bytes of its datatype.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "serve/named_tensor.h"

namespace hctr::serve {

/// Values may precede the datatype in the JSON: they are buffered until the datatype is known.
class JsonValues {
 public:
  struct Fraction {
    double value;
  };
  using Value = std::variant<bool, int64_t, uint64_t, Fraction, std::string>;

  /// Errors: Refusal for a value that the datatype cannot represent.
  void add(Value);
  void set_type(Datatype);
  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }
  std::string take() { return std::move(bytes_); }

 private:
  void encode(const Value&);

  std::optional<Datatype> type_;
  std::vector<Value> waiting_;
  std::string bytes_;
  size_t count_ = 0;
};

}  // namespace hctr::serve
