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
  int threads = 1;             ///< number of CPU threads for operators
  bool sync_launches = false;  ///< see RuntimeOptions
  int64_t samples = 1;         ///< samples of this rank in a batch of Replica::evaluate()
  RowMemoryLimits row_memory{};
  bool with_tables = true;  ///< false: table files are not read, and the vectors of keys come from a store
};

/// The model used by evaluation, prediction, export and Model. Not movable.
class LoadedModel {
 public:
  /// Collective. `config`: as read from its file; its initial model files and optimizers are ignored. The communicator
  /// must outlive the model. Errors: Error(data) if the files do not match, naming the layers that differ; Error(io);
  /// Error(device).
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
