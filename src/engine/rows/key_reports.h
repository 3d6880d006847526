// Reports keys outside the ranges of a table with direct keys. Kernels write the reports, and the host checks them.
#pragma once

#include <string>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "engine/spec/direct_keys.h"
#include "engine/spec/setting_words.h"
#include "ops/embedding/direct_index.h"

namespace hctr {

/// Throws Error(data) for a key outside its range. `what`: describes the key and its position.
[[noreturn]] void throw_key_outside(const std::string& label, bool evaluation, const std::string& what,
                                    const SettingWords&);

class KeyReports {
 public:
  /// If `keys` is empty, an index finds the rows, and nothing is reported. `label`: the table's name in messages. All
  /// references must outlive this object.
  KeyReports(Runtime&, const DirectKeys& keys, const std::string& label, const SettingWords&);

  /// The addresses of a report on the device and on the host.
  struct Report {
    ops::OutOfRangeState* state;
    ops::OutOfRangeKey* host;
  };
  Report of(bool evaluation) const {
    return {reinterpret_cast<ops::OutOfRangeState*>(state_.data()) + evaluation,
            reinterpret_cast<ops::OutOfRangeKey*>(host_.data()) + evaluation};
  }
  /// Errors: Error(data) if an earlier batch contained a key outside its range. Does not synchronize.
  void check() const;
  /// Clears the reports. Waits for queued work.
  void forget();

 private:
  Runtime& runtime_;
  const DirectKeys& keys_;
  const std::string& label_;
  const SettingWords& words_;
  Buffer state_;
  HostBuffer host_;
};

}  // namespace hctr
