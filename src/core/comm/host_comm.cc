#include "core/comm/host_comm.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include "core/comm/arguments.h"
#include "core/comm/peer_exchange.h"

namespace hctr {
namespace {

// all-reduces of at most this number of elements need one exchange instead of two: each rank sends its whole tensor
constexpr int64_t kSmall = 4096;

Transfer::Piece piece(const Tensor& tensor, int64_t begin, int64_t count) {
  return {element(tensor, begin), static_cast<size_t>(count) * size_of(tensor.dtype())};
}

Transfer::Piece piece(std::string_view text) {
  return {const_cast<std::byte*>(reinterpret_cast<const std::byte*>(text.data())), text.size()};
}

template <class Body>
void dispatch_any(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::i32:
      return body.template operator()<int32_t, int32_t>();
    case DType::i64:
      return body.template operator()<int64_t, int64_t>();
    case DType::u32:
      return body.template operator()<uint32_t, uint32_t>();
    default:
      return dispatch_real(dtype, [&]<class T>() { body.template operator()<T, Acc<T>>(); });
  }
}

/// [rank]: last round in which the rank has written all its data; UINT64_MAX once the rank has left.
struct WrittenRounds {
  explicit WrittenRounds(int ranks) : of_rank(static_cast<size_t>(ranks)) {}
  std::vector<std::atomic<uint64_t>> of_rank;
};

/// A peer exchange between threads of one process.
class SharedMemoryExchange : public PeerExchange {
 public:
  /// `destinations`: indexed by rank. `group` must contain all ranks and outlive the exchange.
  SharedMemoryExchange(int rank, std::vector<std::byte*> destinations, std::shared_ptr<WrittenRounds> written,
                       RankGroup& group)
      : rank_(rank), destinations_(std::move(destinations)), written_(std::move(written)), group_(group) {
    nothing_.send.resize(destinations_.size());
    nothing_.receive.resize(destinations_.size());
  }
  /// A failing rank may be destroyed in the middle of a round. Its receive buffer must stay valid while other ranks
  /// write to it, so the destructor waits for these writes. But the other ranks may be waiting for this rank at a group
  /// barrier, so before that, the rank leaves the group.
  ~SharedMemoryExchange() override {
    if (std::uncaught_exceptions() > 0) group_.leave(rank_);
    set_written(UINT64_MAX);
    for (const auto& written : written_->of_rank)
      for (uint64_t seen = written; seen < round_; seen = written) written.wait(seen);
  }
  std::byte* destination(int rank) const override { return destinations_.at(static_cast<size_t>(rank)); }
  bool direct() const override { return true; }
  void begin_write(Context&) override {
    barrier();
    ++round_;
  }
  void end_write(Context&) override { set_written(round_); }
  void wait(Context&) override { barrier(); }

 private:
  void barrier() { group_.exchange(rank_, nothing_, Wait::limited, "an exchange of vectors"); }
  void set_written(uint64_t round) {
    auto& mine = written_->of_rank[static_cast<size_t>(rank_)];
    mine = round;
    mine.notify_all();
  }

  int rank_;
  std::vector<std::byte*> destinations_;
  std::shared_ptr<WrittenRounds> written_;
  RankGroup& group_;
  Transfer nothing_;
  uint64_t round_ = 0;  // last round that all ranks have begun
};

/// Reduces `ranks` consecutive arrays of `count` elements in `in` to `out`, in rank order.
void reduce_in_order(DType dtype, const std::byte* in, int ranks, int64_t count, std::byte* out, Reduce how) {
  dispatch_any(dtype, [&]<class T, class A>() {
    constexpr int64_t kBlock = 512;
    const auto* from = reinterpret_cast<const T*>(in);
    auto* to = reinterpret_cast<T*>(out);
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t n = std::min(kBlock, count - begin);
      A block[kBlock];
      for (int64_t i = 0; i < n; ++i) block[i] = static_cast<A>(from[begin + i]);
      for (int r = 1; r < ranks; ++r) {
        const T* next = from + r * count + begin;
        if (how == Reduce::sum)
          for (int64_t i = 0; i < n; ++i) block[i] += static_cast<A>(next[i]);
        else
          for (int64_t i = 0; i < n; ++i) block[i] = std::max(block[i], static_cast<A>(next[i]));
      }
      for (int64_t i = 0; i < n; ++i) to[begin + i] = static_cast<T>(block[i]);
    }
  });
}

}  // namespace

Transfer HostComm::empty() const {
  const std::vector<Transfer::Piece> none(static_cast<size_t>(size()));
  return {none, none};
}

void HostComm::all_to_all(Context&, Tensor in, const RankRanges& send, Tensor out, const RankRanges& receive) {
  expect_ranges(in, send, out, receive, size());
  Transfer transfer = empty();
  for (size_t r = 0; r < transfer.send.size(); ++r) {
    transfer.send[r] = piece(in, send.begin[r], send.count[r]);
    transfer.receive[r] = piece(out, receive.begin[r], receive.count[r]);
  }
  group_.exchange(rank_, transfer, Wait::limited, "all_to_all");
}

void HostComm::reduce_range(Tensor in, int64_t each, std::byte* out, Reduce how, const char* name) {
  const int64_t count = std::clamp<int64_t>(in.elements() - rank_ * each, 0, each);
  const auto bytes = static_cast<size_t>(count) * size_of(in.dtype());
  arrived_.resize(bytes * static_cast<size_t>(size()));
  Transfer transfer = empty();
  for (int r = 0; r < size(); ++r) {
    const int64_t begin = std::min(r * each, in.elements());
    transfer.send[static_cast<size_t>(r)] = piece(in, begin, std::min(each, in.elements() - begin));
    transfer.receive[static_cast<size_t>(r)] = {arrived_.data() + static_cast<size_t>(r) * bytes, bytes};
  }
  group_.exchange(rank_, transfer, Wait::limited, name);
  reduce_in_order(in.dtype(), arrived_.data(), size(), count, out, how);
}

void HostComm::all_reduce(Context&, Tensor inout, Reduce how) {
  HCTR_EXPECT(inout.dense(), "all_reduce() needs dense rows, found strided rows");
  const int64_t n = inout.elements();
  if (n <= kSmall) {
    const auto bytes = static_cast<size_t>(n) * size_of(inout.dtype());
    arrived_.resize(bytes * static_cast<size_t>(size()));
    Transfer transfer = empty();
    for (size_t r = 0; r < transfer.send.size(); ++r) {
      transfer.send[r] = piece(inout, 0, n);
      transfer.receive[r] = {arrived_.data() + r * bytes, bytes};
    }
    group_.exchange(rank_, transfer, Wait::limited, "all_reduce");
    return reduce_in_order(inout.dtype(), arrived_.data(), size(), n, inout.bytes(), how);
  }
  const int64_t each = (n + size() - 1) / size();
  reduce_range(inout, each, element(inout, std::min(rank_ * each, n)), how, "all_reduce");
  Transfer transfer = empty();
  for (int r = 0; r < size(); ++r) {
    const auto range = [&](int of) {
      return piece(inout, std::min(of * each, n), std::clamp<int64_t>(n - of * each, 0, each));
    };
    if (r == rank_) continue;
    transfer.send[static_cast<size_t>(r)] = range(rank_);
    transfer.receive[static_cast<size_t>(r)] = range(r);
  }
  group_.exchange(rank_, transfer, Wait::limited, "all_reduce");
}

void HostComm::reduce_scatter(Context&, Tensor in, Tensor out, Reduce how) {
  expect_equal_ranges("reduce_scatter", out, in, size());
  reduce_range(in, out.elements(), out.bytes(), how, "reduce_scatter");
}

void HostComm::all_gather(Context& ctx, Tensor in, Tensor out) {
  expect_equal_ranges("all_gather", in, out, size());
  RankRanges send;
  for (int r = 0; r < size(); ++r) send.add(0, in.elements());
  all_to_all(ctx, in, send, out, RankRanges::equal(size(), in.elements()));
}

void HostComm::broadcast(Context&, Tensor inout, int root) {
  HCTR_EXPECT(inout.dense() && 0 <= root && root < size(), "broadcast from rank ", root, " of ", size());
  Transfer transfer = empty();
  const Transfer::Piece all = piece(inout, 0, inout.elements());
  if (rank_ != root)
    transfer.receive[static_cast<size_t>(root)] = all;
  else
    for (int r = 0; r < size(); ++r)
      if (r != root) transfer.send[static_cast<size_t>(r)] = all;
  group_.exchange(rank_, transfer, Wait::limited, "broadcast");
}

bool HostComm::any(bool mine) {
  auto value = static_cast<std::byte>(mine);
  std::vector<std::byte> all(static_cast<size_t>(size()));
  Transfer transfer = empty();
  for (size_t r = 0; r < all.size(); ++r) {
    transfer.send[r] = {&value, 1};
    transfer.receive[r] = {&all[r], 1};
  }
  group_.exchange(rank_, transfer, Wait::limited, "the next step");
  return std::any_of(all.begin(), all.end(), [](std::byte one) { return one != std::byte{0}; });
}

std::vector<std::string> HostComm::gather(std::string_view mine, int root) {
  const auto at = static_cast<size_t>(root);
  uint64_t bytes = mine.size();
  std::vector<uint64_t> sizes(static_cast<size_t>(size()));
  Transfer lengths = empty(), texts = empty();
  const auto number = [](uint64_t& of) { return Transfer::Piece{reinterpret_cast<std::byte*>(&of), sizeof of}; };
  lengths.send[at] = number(bytes);
  if (rank_ == root)
    for (size_t r = 0; r < sizes.size(); ++r) lengths.receive[r] = number(sizes[r]);
  group_.exchange(rank_, lengths, Wait::unlimited, "gather");

  texts.send[at] = piece(mine);
  std::vector<std::string> all(rank_ == root ? sizes.size() : 0);
  for (size_t r = 0; r < all.size(); ++r) {
    all[r].resize(sizes[r]);
    texts.receive[r] = piece(all[r]);
  }
  group_.exchange(rank_, texts, Wait::unlimited, "gather");
  return all;
}

std::string HostComm::broadcast(std::string_view text, int root) {
  uint64_t bytes = text.size();
  std::string all(rank_ == root ? text : "");
  const auto from_root = [&](Transfer::Piece what) {
    Transfer transfer = empty();
    if (rank_ != root)
      transfer.receive[static_cast<size_t>(root)] = what;
    else
      for (int r = 0; r < size(); ++r)
        if (r != root) transfer.send[static_cast<size_t>(r)] = what;
    group_.exchange(rank_, transfer, Wait::unlimited, "broadcast");
  };
  from_root({reinterpret_cast<std::byte*>(&bytes), sizeof bytes});
  all.resize(bytes);
  from_root(piece(all));
  return all;
}

void HostComm::barrier() { group_.exchange(rank_, empty(), Wait::unlimited, "barrier"); }

std::unique_ptr<PeerExchange> HostComm::make_peer_exchange(const PeerExchangeSpec& spec) {
  if (group_.local_ranks().count < size()) return make_all_to_all_exchange(*this, spec);
  // Data that each rank sends to the others. All ranks are threads of this process, so pointers are valid.
  struct Info {
    std::byte* destination;
    const std::shared_ptr<WrittenRounds>* written;
  };
  const auto own = std::make_shared<WrittenRounds>(size());
  std::vector<Info> mine, theirs(static_cast<size_t>(size()));
  for (const int64_t begin : spec.receive.begin) mine.push_back({element(spec.receive_buffer, begin), &own});
  Transfer transfer = empty();
  for (size_t r = 0; r < theirs.size(); ++r) {
    transfer.send[r] = {reinterpret_cast<std::byte*>(&mine.at(r)), sizeof(Info)};
    transfer.receive[r] = {reinterpret_cast<std::byte*>(&theirs[r]), sizeof(Info)};
  }
  group_.exchange(rank_, transfer, Wait::unlimited, "make_peer_exchange");
  std::vector<std::byte*> destinations;
  for (const Info& info : theirs) destinations.push_back(info.destination);
  auto exchange = std::make_unique<SharedMemoryExchange>(rank_, std::move(destinations), *theirs[0].written, group_);
  barrier();  // waits until all ranks have copied rank 0's `own`, which this call destroys
  return exchange;
}

}  // namespace hctr
