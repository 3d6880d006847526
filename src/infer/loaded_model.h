// A saved model in the memory of one rank: weights and tables, without gradients, optimizer states or a trainer.
#pragma once

#include <cstdint>
#include <memory>

#include "config/sections/config.h"
#include "core/base/log.h"
#include "core/comm/communicator.h"
#include "core/device/context.h"
#include "infer/saved_model.h"
#include "net/model/replica.h"

namespace hctr {

struct LoadOnRank {
  Device device{};
  int threads = 1;             ///< on a CPU, for operators
  bool sync_launches = false;  ///< see RuntimeOptions
  int64_t samples = 1;         ///< of this rank in a batch of Replica::evaluate()
  RowMemoryLimits row_memory{};
  bool with_tables = true;  ///< without them, vectors of keys come from elsewhere, and files of tables are not read
};

/// The model that evaluation, prediction, export and Model use. Not movable.
class LoadedModel {
 public:
  /// Collective. `config`: as read; its initial model files and optimizers are dropped. The communicator outlives the
  /// model. Errors: Error(data) when the files do not fit, with the layers that differ; Error(io); Error(device).
  LoadedModel(Config config, SavedModel, Communicator&, const LoadOnRank&, const Log&);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  const Config& config() const { return config_; }
  const SavedModel& saved() const { return saved_; }
  Device device() const { return runtime_.device(); }
  Communicator& comm() const { return comm_; }
  Runtime& runtime() { return runtime_; }
  Replica& replica() { return replica_; }
  const Replica& replica() const { return replica_; }

 private:
  void load(const Log&);

  SavedModel saved_;
  Config config_;
  Communicator& comm_;
  Runtime runtime_;
  Replica replica_;
};

}  // namespace hctr
