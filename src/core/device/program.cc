#include "core/device/program.h"

#include <algorithm>
#include <utility>

#include "core/base/platform.h"
#include "core/device/cuda_recording.h"
#include "core/device/cuda_runtime_calls.h"

namespace hctr {
namespace {

/// Calls the body in each run. If `at_the_end_`, work passed to outside() runs at the end of its piece, as in a
/// recorded program. CPU and GPU then execute work in the same order.
class CalledEachTime : public Recording {
 public:
  explicit CalledEachTime(bool at_the_end) : at_the_end_(at_the_end) {}
  void outside(std::function<void()> work) override {
    if (!at_the_end_) return work();
    waiting_.push_back(std::move(work));
  }
  void cut() override {
    for (const auto& work : std::exchange(waiting_, {})) work();
  }

 private:
  bool at_the_end_;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace

/// The recorded graphs, and the calls after each graph.
class Program::Pieces : public Recording {
 public:
  explicit Pieces(StreamRef stream) : stream_(stream) {}
  ~Pieces() override {
    for (const Piece& piece : pieces_) destroy(piece);
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  void record(const std::function<void(Recording&)>& body) {
    pieces_.emplace_back();
    if constexpr (kCudaBuild) {
      void* const last = cuda::record_graph(stream_, [&] { body(*this); });
      pieces_.back().graph = last;
    }
  }
  void outside(std::function<void()> work) override { pieces_.back().after.push_back(std::move(work)); }
  void cut() override {
    if constexpr (kCudaBuild) pieces_.back().graph = cuda::cut_graph(stream_);
    pieces_.emplace_back();
  }
  void run() const {
    for (const Piece& piece : pieces_) {
      if constexpr (kCudaBuild)
        if (piece.graph) cuda::launch_graph(piece.graph, stream_);
      for (const auto& work : piece.after) work();
    }
  }
  size_t graphs() const {
    return static_cast<size_t>(std::count_if(pieces_.begin(), pieces_.end(), [](const Piece& p) { return p.graph; }));
  }

 private:
  struct Piece {
    void* graph = nullptr;  // cudaGraphExec_t; null: the piece has no recorded work
    std::vector<std::function<void()>> after{};
  };
  static void destroy(const Piece& piece) {
    if constexpr (kCudaBuild)
      if (piece.graph) cuda::destroy_graph(piece.graph);
  }

  StreamRef stream_;
  std::vector<Piece> pieces_;
};

Program::Program(StreamRef stream, bool record, std::function<void()> body)
    : Program(stream, record, std::function<void(Recording&)>([body = std::move(body)](Recording&) { body(); })) {}

Program::Program(StreamRef stream, bool record, std::function<void(Recording&)> body)
    : stream_(stream), record_(record), body_(std::move(body)) {
  if (!record || !stream.device.is_cuda()) return;
  pieces_ = std::make_unique<Pieces>(stream);
  pieces_->record(body_);
}

Program::~Program() = default;
Program::Program(Program&&) noexcept = default;

void Program::run(bool recorded) {
  if (pieces_ && recorded) return pieces_->run();
  CalledEachTime calls(record_ && recorded);
  body_(calls);
  calls.cut();
}

size_t Program::pieces() const { return pieces_ ? pieces_->graphs() : 0; }

}  // namespace hctr
