#include "net/layers/slot_columns_layer.h"

#include "ops/dense/slot_columns.h"

namespace hctr {
namespace {

class SlotColumns : public Layer {
 public:
  SlotColumns(int64_t slots, std::vector<int64_t> widths) : slots_(slots), widths_(std::move(widths)) {}

  LayerSpec spec(const Specs& inputs) const override {
    LayerSpec spec;
    for (const int64_t width : widths_)
      spec.outputs.emplace_back(inputs[0].dtype, Shape{inputs[0].rows() / slots_, slots_ * width});
    return spec;
  }

  void forward(Context& ctx, const LayerIo& io, Phase) const override {
    ops::split_slots(ctx, io.in[0], slots_, io.out);
  }

  void backward(Context& ctx, const LayerIo& io) const override {
    if (io.d_in[0]) ops::join_slots(ctx, io.d_out, slots_, *io.d_in[0]);
  }

 private:
  int64_t slots_;
  std::vector<int64_t> widths_;
};

}  // namespace

std::shared_ptr<const Layer> slot_columns(int64_t slots, std::vector<int64_t> widths) {
  return std::make_shared<SlotColumns>(slots, std::move(widths));
}

}  // namespace hctr
