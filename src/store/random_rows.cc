#include "store/random_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "core/base/random.h"

namespace hctr {

void make_random_rows(const StoreTableSource& from, const StoreRowSink& sink, ThreadPool& threads) {
  constexpr int64_t kBytesAtOnce = int64_t{32} << 20, kRowsOfTask = 256;
  constexpr int64_t kWideRow = 64;  // rows of at least this dim use random_bits(), which computes 128 values at once
  const auto dim = static_cast<size_t>(from.dim);
  const uint64_t key = random_key(from.random.seed, random_stream(from.name));
  const float bound = 1 / std::sqrt(static_cast<float>(from.dim));
  const int64_t most = std::max<int64_t>(1, kBytesAtOnce / (from.dim * 4));
  std::vector<int64_t> keys;
  std::vector<float> rows;
  for (int64_t first = 0; first < from.random.rows; first += most) {
    keys.resize(static_cast<size_t>(std::min(most, from.random.rows - first)));
    std::iota(keys.begin(), keys.end(), first);
    rows.resize(keys.size() * dim);
    threads.parallel_for(std::ssize(keys), kRowsOfTask, [&](int64_t begin, int64_t end) {
      std::vector<uint32_t> bits((dim + 3) / 4 * 4);
      for (int64_t i = begin; i < end; ++i) {
        const auto row_key = static_cast<uint64_t>(first + i);
        if (from.dim < kWideRow)
          for (size_t d = 0; d < dim; d += 4)
            std::memcpy(&bits[d], philox(key, row_key, d / 4).v, 4 * sizeof(uint32_t));
        else
          random_bits(key, row_key, 0, from.dim, bits.data());
        float* const row = rows.data() + i * from.dim;
        for (size_t d = 0; d < dim; ++d) row[d] = symmetric_float(bits[d], bound);
      }
    });
    sink({}, keys, rows);
  }
}

}  // namespace hctr
