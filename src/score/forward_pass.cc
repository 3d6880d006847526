#include "score/forward_pass.h"

#include "core/base/expect.h"
#include "score/shared_forward.h"

namespace hctr {
namespace {

class OfReplica : public ForwardPass {
 public:
  explicit OfReplica(Replica& replica) : replica_(replica) {}

  Network::Binding bind(const BatchTensors& batch) const override { return replica_.bind(Phase::evaluate, batch); }
  void run(Context& ctx, const BatchTensors& batch, const Network::Binding& binding) override {
    replica_.evaluate(ctx, batch, binding);
  }
  std::vector<Tensor> losses() const override {
    std::vector<Tensor> losses = {replica_.loss(Phase::evaluate)};
    for (const Tensor& loss : replica_.losses(Phase::evaluate)) losses.push_back(loss);
    return losses;
  }
  std::vector<Tensor> predictions() const override { return replica_.predictions(Phase::evaluate); }
  std::vector<Tensor> labels(const Network::Binding& binding) const override {
    return replica_.labels(Phase::evaluate, binding);
  }
  void check_keys() const override { replica_.check_keys(); }

 private:
  Replica& replica_;
};

class InOwnMemory : public ForwardPass {
 public:
  InOwnMemory(Replica& replica, const Config& config, Runtime& runtime, Communicator& comm, const BatchShape& shape)
      : replica_(replica), forward_(replica, config, runtime, comm, shape) {
    for (size_t e = 0; e < replica.embeddings(); ++e)
      if (!replica.table_spec(e).direct.empty()) direct_.push_back({e, replica.graph().embedding_inputs[e]});
  }

  Network::Binding bind(const BatchTensors& batch) const override {
    Network::Binding binding = forward_.network().bind(batch.label, batch.dense);
    binding.weights_are_fixed = true;
    return binding;
  }
  void run(Context& ctx, const BatchTensors& batch, const Network::Binding& binding) override {
    forward_.run(ctx, batch, binding);
    replica_.add_penalties(ctx, forward_.network());
  }
  std::vector<Tensor> losses() const override {
    std::vector<Tensor> losses = {forward_.network().loss()};
    for (const Tensor& loss : forward_.network().losses()) losses.push_back(loss);
    return losses;
  }
  std::vector<Tensor> predictions() const override { return forward_.network().predictions(); }
  std::vector<Tensor> labels(const Network::Binding& binding) const override {
    return forward_.network().labels(binding);
  }
  void expect_keys(const BatchView& batch) const override {
    for (const DirectTable& table : direct_) {
      const BatchView::Table& keys = batch.tables[table.input];
      const TableSpec& spec = replica_.table_spec(table.embedding);
      for (int64_t bag = 0; bag < spec.slots * batch.state->samples; ++bag)
        for (int64_t k = keys.offset(bag); k < keys.offset(bag + 1); ++k)
          if (const int64_t slot = bag / batch.state->samples; !spec.direct.has(keys.key(k), slot))
            throw Error(Kind::data,
                        cat("table '", spec.name, "': evaluation data: ", spec.direct.outside(keys.key(k), slot)));
    }
  }

 private:
  struct DirectTable {
    size_t embedding, input;
  };
  Replica& replica_;
  SharedForward forward_;
  std::vector<DirectTable> direct_;
};

}  // namespace

std::unique_ptr<ForwardPass> forward_pass_of(Replica& replica) { return std::make_unique<OfReplica>(replica); }

std::unique_ptr<ForwardPass> forward_pass_in_own_memory(Replica& replica, const Config& config, Runtime& runtime,
                                                        Communicator& comm, const BatchShape& shape) {
  return std::make_unique<InOwnMemory>(replica, config, runtime, comm, shape);
}

}  // namespace hctr
