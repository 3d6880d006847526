#include "engine/rows/key_reports.h"

#include <atomic>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"

namespace hctr {

void throw_key_outside(const std::string& label, bool evaluation, const std::string& what, const SettingWords& words) {
  throw Error(Kind::data, cat(label, ": ", evaluation ? "evaluation" : "training", " data: ", what,
                              ". Keys are numbered across all slots: the keys of each slot follow those of the "
                              "previous slot. Correct the sizes, or use a hash index, which accepts any key: ",
                              words.hash));
}

KeyReports::KeyReports(Runtime& runtime, const DirectKeys& keys, const std::string& label, const SettingWords& words)
    : runtime_(runtime),
      keys_(keys),
      label_(label),
      words_(words),
      state_(runtime.device(), keys.empty() ? 0 : 2 * sizeof(ops::OutOfRangeState)),
      host_(runtime.device(), 2 * sizeof(ops::OutOfRangeKey)) {
  forget();
}

void KeyReports::check() const {
  if (keys_.empty()) return;
  for (const bool evaluation : {false, true}) {
    ops::OutOfRangeKey* const key = of(evaluation).host;
    if (!std::atomic_ref<int32_t>(key->found).load(std::memory_order_acquire)) continue;
    throw_key_outside(label_, evaluation, keys_.outside(key->key, key->slot), words_);
  }
}

void KeyReports::forget() {
  if (keys_.empty()) return;
  const StreamRef stream = runtime_.compute_stream();
  const ops::OutOfRangeState none[2] = {};
  copy_bytes(stream, state_.data(), none, sizeof none);
  stream.synchronize();
  for (const bool evaluation : {false, true})
    std::atomic_ref<int32_t>(of(evaluation).host->found).store(0, std::memory_order_release);
}

}  // namespace hctr
