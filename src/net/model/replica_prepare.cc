// Prepares a batch before its step: sends its keys to their owner ranks, fetches rows from disk into memory, and looks
// up the keys.
#include <algorithm>

#include "core/device/profiler.h"
#include "core/device/recording.h"
#include "net/model/replica.h"

namespace hctr {

bool Replica::consume_look_up_flag() {
  bool any = false;
  for (const auto& table : tables_) any = table->consume_look_up_flag() || any;
  return any;
}

void Replica::exchange_keys(Context& ctx, Recording* recording, int buffer, const BatchTensors& batch) {
  if (comm_.size() == 1) return;
  const auto each = [&](const TableCall& body) {
    run_tables(tables_, preparation_groups(facts_of_tables_), ctx, "send keys", body);
  };
  each([&](Context& own, size_t e) {
    const size_t input = train_graph_.embedding_inputs[e];
    tables_[e]->send_keys(own, recording, buffer, batch.keys[input], batch.offsets[input]);
  });
  each([&](Context& own, size_t e) { tables_[e]->gather_keys(own, recording, buffer); });
  each([&](Context& own, size_t e) { tables_[e]->receive_keys(own, recording, buffer); });
}

void Replica::look_up(Context& ctx, Recording* recording, int buffer, const BatchTensors& batch) {
  if (std::any_of(tables_.begin(), tables_.end(), [](const auto& table) { return table->may_be_on_disk(); })) {
    outside(recording, ctx, [this, buffer, batch](Context& own) { bring_rows(own, buffer, batch); });
    if (recording) recording->cut();
  }
  run_tables(tables_, preparation_groups(facts_of_tables_), ctx, "prepare", [&](Context& own, size_t e) {
    const size_t input = train_graph_.embedding_inputs[e];
    tables_[e]->prepare(own, buffer, batch.keys[input], batch.offsets[input]);
  });
}

void Replica::bring_rows(Context& ctx, int buffer, const BatchTensors& batch) {
  bool waits = false;
  for (size_t e = 0; e < tables_.size(); ++e) {
    const size_t input = train_graph_.embedding_inputs[e];
    waits = tables_[e]->list_missing(ctx, buffer, batch.keys[input], batch.offsets[input]) || waits;
  }
  if (waits) {
    const ProfiledPart part(runtime_, "wait", "missing keys");
    ctx.stream().synchronize();
  }
  for (size_t e = 0; e < tables_.size(); ++e) {
    const size_t input = train_graph_.embedding_inputs[e];
    tables_[e]->bring_rows(ctx, buffer, batch.keys[input], batch.offsets[input]);
  }
}

}  // namespace hctr
