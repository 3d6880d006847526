// The f32 scratch of the cross network in vector form.
//
// The layers y_{l+1} = x <y_l, w_l> + b_l + y_l, with y_0 = x, have the closed form y_l = s_l x + B_l.
// B_l = b_0 + ... + b_{l-1} is the same for all rows. The scalars s_l of a row start with s_0 = 1:
//   s_{l+1} = s_l + h_l,   h_l = <y_l, w_l> = s_l p_l + q_l,   p_l = <x, w_l>,   q_l = <B_l, w_l>.
// The gradients use the scalars c_l = <dy_{l+1}, x> = <dy, x> + sum over i > l of c_i p_i of each row:
//   dx   = s_L dy + sum over l of c_l s_l w_l
//   dw_l = sum over rows of (c_l s_l) x, + (sum over rows of c_l) B_l
//   db_l = sum over rows of dy, + sum over i > l of (sum over rows of c_i) w_i.
// A row therefore needs only x and its L scalars p_l; no y_l is stored.
#pragma once

#include "ops/common/row_parts.h"

namespace hctr::ops {

struct CrossLayout {
  int64_t layers, dim, batch, parts, part_width;
  // Offsets in f32 elements:
  int64_t bias_sum;   ///< B_L [dim]
  int64_t constants;  ///< q [layers]
  int64_t products;   ///< p [batch, layers]
  int64_t slopes;     ///< c_l s_l of each row: [batch, layers]
  int64_t gradients;  ///< c [batch, layers]
  int64_t part_sums;  ///< [parts, part_width]: partial sums of (c_l s_l) x [layers, dim], of dy [dim], of c_l [layers]
  int64_t totals;     ///< [part_width]: sums of part_sums over parts
  int64_t numbers;

  CrossLayout(int64_t batch_, int64_t dim_, int64_t layers_)
      : layers(layers_),
        dim(dim_),
        batch(batch_),
        parts(row_parts(batch_)),
        part_width((layers_ + 1) * dim_ + layers_) {
    int64_t end = 0;
    const auto reserve = [&](int64_t count) {
      const int64_t begin = end;
      end += (count + 3) / 4 * 4;  // aligned to 16 bytes
      return begin;
    };
    bias_sum = reserve(dim);
    constants = reserve(layers);
    products = reserve(batch * layers);
    slopes = reserve(batch * layers);
    gradients = reserve(batch * layers);
    part_sums = reserve(parts * part_width);
    totals = reserve(part_width);
    numbers = end;
  }
};

}  // namespace hctr::ops
