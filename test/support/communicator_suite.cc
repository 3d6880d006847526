#include "support/communicator_suite.h"

#include <gtest/gtest.h>

#include "core/comm/peer_exchange.h"
#include "core/device/buffer.h"
#include "core/device/copy_bytes.h"

namespace hctr::test {
namespace {

/// Element i of rank r. Values are integers, so sums are exact in any order.
template <class T>
T value(int rank, int64_t i) {
  return static_cast<T>(static_cast<float>((rank + 1) * 3 + i % 17));
}

template <class T>
struct DeviceArray {
  DeviceArray(Device device, int64_t elements)
      : buffer(device, static_cast<size_t>(elements) * sizeof(T)),
        tensor(buffer.data(), TensorSpec(kDTypeOf<T>, {elements}), device) {}
  Buffer buffer;
  Tensor tensor;
};

struct Suite {
  Communicator& comm;
  Context ctx;
  const int rank = comm.rank(), size = comm.size();

  template <class T>
  DeviceArray<T> filled(int64_t elements) {
    DeviceArray<T> array(ctx.device(), elements);
    std::vector<T> values;
    for (int64_t i = 0; i < elements; ++i) values.push_back(value<T>(rank, i));
    from_host(ctx.stream(), array.tensor, values);
    return array;
  }
  template <class T, class Expected>
  void expect(const DeviceArray<T>& got, const char* what, const Expected& expected) {
    const std::vector<T> values = to_host<T>(ctx.stream(), got.tensor);
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(static_cast<double>(static_cast<float>(values[i])),
                static_cast<double>(expected(static_cast<int64_t>(i))))
          << what << " of " << name_of(kDTypeOf<T>) << ", element " << i << " on rank " << rank << " of " << size;
  }

  template <class T>
  void reductions(int64_t elements) {
    const auto sum = [&](int64_t i) {
      float all = 0;
      for (int r = 0; r < size; ++r) all += static_cast<float>(value<T>(r, i));
      return all;
    };
    const auto most = [&](int64_t i) { return static_cast<float>(value<T>(size - 1, i)); };
    const DeviceArray<T> a = filled<T>(elements), b = filled<T>(elements);
    comm.all_reduce(ctx, a.tensor, Reduce::sum);
    expect(a, "all_reduce", sum);
    comm.all_reduce(ctx, b.tensor, Reduce::max);
    expect(b, "all_reduce max", most);
    const DeviceArray<T> whole = filled<T>(elements * size), part(ctx.device(), elements),
                         largest(ctx.device(), elements);
    comm.reduce_scatter(ctx, whole.tensor, part.tensor, Reduce::sum);
    expect(part, "reduce_scatter", [&](int64_t i) { return sum(rank * elements + i); });
    comm.reduce_scatter(ctx, whole.tensor, largest.tensor, Reduce::max);
    expect(largest, "reduce_scatter max", [&](int64_t i) { return most(rank * elements + i); });
  }

  template <class T>
  void moves(int64_t elements) {
    const DeviceArray<T> mine = filled<T>(elements), all(ctx.device(), elements * size);
    comm.all_gather(ctx, mine.tensor, all.tensor);
    expect(all, "all_gather",
           [&](int64_t i) { return static_cast<float>(value<T>(static_cast<int>(i / elements), i % elements)); });
    for (int root = 0; root < size; ++root) {
      const DeviceArray<T> x = filled<T>(elements);
      comm.broadcast(ctx, x.tensor, root);
      expect(x, "broadcast", [&](int64_t i) { return static_cast<float>(value<T>(root, i)); });
    }
  }

  /// The number of elements that rank `from` sends to rank `to`. The counts differ, and some are 0.
  int64_t sent(int from, int to) const { return (from + 2 * to) % 4 * 5; }

  template <class T>
  void unequal_ranges() {
    RankRanges send, receive;
    int64_t out = 0, in = 0;
    for (int r = 0; r < size; ++r) {
      send.add(out, sent(rank, r));
      out += sent(rank, r) + 3;  // the 3 leaves gaps between the parts
      receive.add(in, sent(r, rank));
      in += sent(r, rank);
    }
    const DeviceArray<T> from = filled<T>(out), to(ctx.device(), in);
    comm.all_to_all(ctx, from.tensor, send, to.tensor, receive);
    std::vector<float> expected;
    for (int r = 0; r < size; ++r) {
      int64_t begin = 0;
      for (int before = 0; before < rank; ++before) begin += sent(r, before) + 3;
      for (int64_t i = 0; i < sent(r, rank); ++i) expected.push_back(static_cast<float>(value<T>(r, begin + i)));
    }
    expect(to, "all_to_all", [&](int64_t i) { return expected[static_cast<size_t>(i)]; });

    RankRanges same;
    for (int r = 0; r < size; ++r) same.add(2, 6);
    const DeviceArray<T> one = filled<T>(9), everyones(ctx.device(), 6 * size);
    comm.all_to_all(ctx, one.tensor, same, everyones.tensor, RankRanges::equal(size, 6));
    expect(everyones, "all_to_all of one range",
           [&](int64_t i) { return static_cast<float>(value<T>(static_cast<int>(i / 6), 2 + i % 6)); });
  }

  /// Runs many rounds of one peer exchange, with or without a send buffer. Without a send buffer, ranks write directly
  /// to each other's memory.
  template <class T>
  void peer_exchange(int64_t dim, bool with_send_buffer, bool reaches_memory) {
    RankRanges send, receive;
    int64_t out = 0, in = 0;
    for (int r = 0; r < size; ++r) {
      send.add(out, sent(rank, r) * dim);
      out += sent(rank, r) * dim + 3 * (r % 2);
      receive.add(in, sent(r, rank) * dim);
      in += sent(r, rank) * dim + 5 * (r % 2);
    }
    const DeviceArray<T> staged(ctx.device(), out), received(ctx.device(), in);
    PeerExchangeSpec spec{received.tensor, receive};
    if (with_send_buffer) spec.send_buffer = staged.tensor, spec.send = send;
    const std::unique_ptr<PeerExchange> exchange = comm.make_peer_exchange(spec);
    ASSERT_EQ(exchange != nullptr, with_send_buffer || reaches_memory);
    if (!exchange) return;
    EXPECT_EQ(exchange->direct(), reaches_memory);
    const auto at = [](int round, int from, int to, int64_t i) { return value<T>(from + round, i + 7 * to); };
    for (int round = 0; round < 12; ++round) {
      exchange->begin_write(ctx);
      for (int r = 0; r < size; ++r) {
        std::vector<T> part;
        for (int64_t i = 0; i < sent(rank, r) * dim; ++i) part.push_back(at(round, rank, r, i));
        copy_bytes(ctx.stream(), exchange->destination(r), part.data(), part.size() * sizeof(T));
        ctx.stream().synchronize();
      }
      exchange->end_write(ctx);
      exchange->wait(ctx);
      const std::vector<T> got = to_host<T>(ctx.stream(), received.tensor);
      for (int r = 0; r < size; ++r)
        for (int64_t i = 0; i < sent(r, rank) * dim; ++i)
          ASSERT_EQ(static_cast<float>(got[static_cast<size_t>(receive.begin[static_cast<size_t>(r)] + i)]),
                    static_cast<float>(at(round, r, rank, i)))
              << "round " << round << ", element " << i << " from rank " << r;
      // Overwrites the receive buffer. It belongs to the receiver until the receiver itself begins the next round, even
      // if another rank has already begun that round.
      const std::vector<T> wiped(got.size(), T{});
      from_host(ctx.stream(), received.tensor, wiped);
    }
  }

  void texts() {
    for (int root = 0; root < size; ++root) {
      const auto all = comm.gather(std::string(static_cast<size_t>(rank) * 3, static_cast<char>('a' + rank)), root);
      ASSERT_EQ(all.size(), rank == root ? static_cast<size_t>(size) : 0u);
      for (size_t r = 0; r < all.size(); ++r) EXPECT_EQ(all[r], std::string(r * 3, static_cast<char>('a' + r)));
      EXPECT_EQ(comm.broadcast(rank == root ? "from " + std::to_string(root) : "not this", root),
                "from " + std::to_string(root));
    }
    comm.barrier();
    EXPECT_FALSE(comm.any(false));
    EXPECT_TRUE(comm.any(rank == size - 1));
    EXPECT_FALSE(comm.any(false));
  }
};

}  // namespace

void check_communicator(Communicator& comm, Runtime& runtime, bool reaches_memory) {
  ASSERT_GE(comm.rank(), 0);
  ASSERT_LT(comm.rank(), comm.size());
  Suite suite{comm, Context(runtime, runtime.compute_stream())};
  for (const int64_t elements : {1, 100, 5000, 20011}) {
    suite.reductions<float>(elements);
    suite.reductions<int32_t>(elements);
    suite.reductions<int64_t>(elements);
    suite.moves<float>(elements);
    suite.moves<int64_t>(elements);
  }
  suite.reductions<Half>(777);
  suite.reductions<BFloat16>(33);
  suite.unequal_ranges<float>();
  suite.unequal_ranges<int64_t>();
  suite.unequal_ranges<int32_t>();
  for (const int64_t dim : {1, 3, 8, 200}) {
    for (const bool with_send_buffer : {true, false}) {
      suite.peer_exchange<float>(dim, with_send_buffer, reaches_memory);
      suite.peer_exchange<Half>(dim, with_send_buffer, reaches_memory);
    }
  }
  suite.texts();
}

}  // namespace hctr::test
