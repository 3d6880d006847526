#include "plugins/grpc/grpc_service.h"

#include <algorithm>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hctr::serve {
namespace {

/// Maximum unanswered messages of one stream.
constexpr int kMostInFlight = 64;

/// Reads the messages of a call, passes them to the handler, and writes the answers: one for a unary call, many for a
/// stream. This object must live until OnDone(), because gRPC refers to it, and until every message is answered,
/// because messages refer to it.
class CarriedCall : public grpc::ServerGenericBidiReactor {
 public:
  static CarriedCall* begin(GrpcHandler handler, grpc::GenericCallbackServerContext* context) {
    auto* const call = new CarriedCall(handler, context);
    call->own_.reset(call);
    call->StartRead(&call->incoming_);
    return call;
  }
  CarriedCall(GrpcHandler handler, grpc::GenericCallbackServerContext* context)
      : handler_(handler), context_(context), is_stream_(context->method().find("StreamInfer") != std::string::npos) {}

  void OnReadDone(bool ok) override {
    if (!ok) {
      {
        const std::lock_guard lock(mutex_);
        reads_done_ = true;
      }
      return advance();
    }
    auto message = std::make_unique<Message>(own_, incoming_);
    incoming_.Clear();
    bool reads = is_stream_;
    {
      const std::lock_guard lock(mutex_);
      ++in_flight_;
      reads_done_ = !is_stream_;
      if (is_stream_ && is_full()) {
        reads = false;
        waits_to_read_ = true;
      }
    }
    const GrpcBytes request = message->request();
    handler_.call(handler_.self, context_->method().c_str(), request, microseconds_left(), message.release());
    if (reads) StartRead(&incoming_);
  }
  void OnWriteDone(bool) override {
    bool reads = false;
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      outgoing_.pop_front();
      reads = resumes_reading();
    }
    if (reads) read_next();
    advance();
  }
  void OnCancel() override {}
  void OnDone() override { const std::shared_ptr<CarriedCall> last = std::move(own_); }

 private:
  /// A message that is not answered yet. The call ends when all its messages are answered.
  class Message : public GrpcCall {
   public:
    Message(std::shared_ptr<CarriedCall> call, const grpc::ByteBuffer& request) : call_(std::move(call)) {
      if (!request.TrySingleSlice(&slice_).ok()) joined_ = joined(request);
    }
    GrpcBytes request() const {
      if (!joined_.empty()) return {joined_.data(), static_cast<int64_t>(joined_.size())};
      return {reinterpret_cast<const char*>(slice_.begin()), static_cast<int64_t>(slice_.size())};
    }
    bool cancelled() const override { return call_->context_->IsCancelled(); }
    void answer(int status, const char* message, GrpcBytes response) override {
      call_->answered(grpc::Status(static_cast<grpc::StatusCode>(status), message), response);
    }

   private:
    std::shared_ptr<CarriedCall> call_;
    grpc::Slice slice_;
    std::string joined_;  // copy of a message that arrived in several slices
  };

  int64_t microseconds_left() const {
    const auto deadline = context_->deadline();
    if (deadline == std::chrono::system_clock::time_point::max()) return -1;
    const auto left = deadline - std::chrono::system_clock::now();
    return std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(left).count());
  }

  void answered(const grpc::Status& status, GrpcBytes response) {
    bool reads = false;
    {
      const std::lock_guard lock(mutex_);
      --in_flight_;
      if (status.ok())
        outgoing_.push_back(buffer_of(response));
      else if (status_.ok())
        status_ = status;
      reads = resumes_reading();
    }
    if (reads) read_next();
    advance();
  }

  /// Whether the call has reached the limit for a stream. Unanswered messages count, and so do answers that the client
  /// has not read.
  bool is_full() const { return in_flight_ + std::ssize(outgoing_) >= kMostInFlight; }

  /// Whether to call read_next(): true if reading has stopped because of is_full(), and may continue now.
  bool resumes_reading() {
    if (!waits_to_read_ || is_full()) return false;
    waits_to_read_ = false;
    ++in_flight_;  // so that the call does not end before StartRead()
    return true;
  }

  void read_next() {
    StartRead(&incoming_);
    const std::lock_guard lock(mutex_);
    --in_flight_;
  }

  /// Starts the next write, or finishes the call.
  void advance() {
    grpc::Status status;
    {
      const std::lock_guard lock(mutex_);
      if (writing_ || finished_) return;
      if (!outgoing_.empty()) {
        writing_ = true;
        if (is_stream_) return StartWrite(&outgoing_.front());
        finished_ = true;
        return StartWriteAndFinish(&outgoing_.front(), {}, grpc::Status::OK);  // the answer and the status in one write
      }
      if (!reads_done_ || in_flight_ > 0) return;
      finished_ = true;
      status = status_;
    }
    Finish(status);
  }

  std::shared_ptr<CarriedCall> own_;
  GrpcHandler handler_;
  grpc::GenericCallbackServerContext* context_;
  const bool is_stream_;
  grpc::ByteBuffer incoming_;
  std::mutex mutex_;
  std::list<grpc::ByteBuffer> outgoing_;  // answers to write; the first one is being written
  int in_flight_ = 0;
  bool reads_done_ = false, waits_to_read_ = false, writing_ = false, finished_ = false;
  grpc::Status status_;
};

}  // namespace

grpc::ServerGenericBidiReactor* CarryingService::CreateReactor(grpc::GenericCallbackServerContext* context) {
  return CarriedCall::begin(handler_, context);
}

std::string joined(const grpc::ByteBuffer& buffer) {
  std::string bytes;
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

grpc::ByteBuffer buffer_of(GrpcBytes bytes) {
  const grpc::Slice slice(bytes.data, static_cast<size_t>(bytes.size));
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace hctr::serve
