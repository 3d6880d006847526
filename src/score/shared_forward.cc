#include "score/shared_forward.h"

#include "core/base/expect.h"
#include "core/device/lockstep.h"
#include "ops/embedding/bag_lengths.h"

namespace hctr {

SharedForward::SharedForward(Replica& replica, const Config& config, Runtime& runtime, Communicator& comm,
                             const BatchShape& shape, const ReaderOf& reader_of)
    : graph_(wired_graph(config, shape.samples, Phase::evaluate)),
      network_(graph_, Phase::evaluate, replica.weights(), replica.layer_state(), runtime, comm) {
  HCTR_EXPECT(comm.size() == 1, "a forward pass that shares the rows of a replica needs one rank, found ", comm.size());
  for (size_t e = 0; e < graph_.embedding_inputs.size(); ++e) {
    const BatchShape::Table& table = shape.tables[graph_.embedding_inputs[e]];
    auto reader = reader_of ? reader_of(e, table.key_capacity) : nullptr;
    of_replica_.push_back(!reader);
    if (!reader) reader = replica.embedding(e).reader(runtime, shape.samples, table.key_capacity);
    readers_.push_back(std::move(reader));
  }
}

std::vector<Tensor> SharedForward::logits(const Network::Binding& binding) const {
  std::vector<Tensor> tensors;
  for (const size_t loss : graph_.losses) tensors.push_back(binding.calls[loss].in[0]);
  return tensors;
}

void SharedForward::run(Context& ctx, const BatchTensors& batch, const Network::Binding& binding) {
  Lockstep lockstep(ctx);
  for (size_t e = 0; e < readers_.size(); ++e) {
    const size_t input = graph_.embedding_inputs[e];
    Context of_table = of_replica_[e] ? lockstep.next() : ctx;
    readers_[e]->lookup(of_table, batch.keys[input], batch.offsets[input], network_.embedding_output(e));
    if (const auto lengths = network_.embedding_lengths(e))
      ops::bag_lengths(of_table, batch.offsets[input].data<const int32_t>(), *lengths);
  }
  lockstep.run();
  network_.forward(ctx, binding);
}

}  // namespace hctr
