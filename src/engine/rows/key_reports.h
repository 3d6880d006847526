// Keys outside the ranges of a table with direct keys: reported by kernels, checked by the host.
#pragma once

#include <string>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "engine/spec/direct_keys.h"
#include "engine/spec/setting_words.h"
#include "ops/embedding/direct_index.h"

namespace hctr {

/// Throws the Error(data) for such a key, of which `what` says where it is.
[[noreturn]] void throw_key_outside(const std::string& label, bool evaluation, const std::string& what,
                                    const SettingWords&);

class KeyReports {
 public:
  /// `keys`: empty where rows are found by an index, then nothing is reported. `label`: of the table, in messages. All
  /// outlive it.
  KeyReports(Runtime&, const DirectKeys& keys, const std::string& label, const SettingWords&);

  /// Where they are reported, on the device and to the host.
  struct Report {
    ops::OutOfRangeState* state;
    ops::OutOfRangeKey* host;
  };
  Report of(bool evaluation) const {
    return {reinterpret_cast<ops::OutOfRangeState*>(state_.data()) + evaluation,
            reinterpret_cast<ops::OutOfRangeKey*>(host_.data()) + evaluation};
  }
  /// Errors: Error(data) when a batch so far held a key outside its range. Does not synchronize.
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
