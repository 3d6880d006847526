#include <algorithm>

#include "core/base/expect.h"
#include "stream/delta_assembler.h"
#include "stream/topic_reader.h"

namespace hctr {
namespace {

constexpr int64_t kReadMs = 100;  // timeout of one read

}  // namespace

struct DeltaSource::State {
  bool has_group;
  TopicReader reader;
  DeltaAssembler assembler;

  TopicOffsets offsets() const {
    TopicOffsets all = reader.offsets();
    for (const auto& [partition, offset] : assembler.offsets()) all[{0, partition}] = offset;
    return all;
  }
};

DeltaSource::DeltaSource(StreamOptions options, std::string_view position, std::string run, int64_t iteration) {
  if (options.topic.empty()) throw Error(Kind::config, "a stream needs a \"topic\"");
  const std::vector<std::string> topics = {options.topic};
  state_.reset(new State{.has_group = !options.group.empty(),
                         .reader = TopicReader(options, topics, read_offsets_text(position, topics)),
                         .assembler = DeltaAssembler(std::move(run), iteration, options.held_bytes)});
}

DeltaSource::~DeltaSource() = default;

std::shared_ptr<const StreamedDelta> DeltaSource::next(double seconds) {
  const auto end = after_seconds(seconds);
  State& s = *state_;
  for (bool first = true;; first = false) {
    if (auto delta = s.assembler.next()) return delta;
    const int64_t left = ms_until(end);
    if (left == 0 && !first) return nullptr;
    if (const KafkaMessage* const message = s.reader.read(std::min(left, kReadMs)))
      s.assembler.take(message->partition, message->offset,
                       {static_cast<const char*>(message->bytes), static_cast<size_t>(message->size)});
  }
}

void DeltaSource::taken() { state_->assembler.taken(); }

std::string DeltaSource::position() const { return offsets_text(state_->offsets(), state_->reader.topics()); }

void DeltaSource::stored() {
  if (state_->has_group) state_->reader.note(state_->offsets());
}

void DeltaSource::skip_to(int64_t iteration) { state_->assembler.skip_to(iteration); }

bool DeltaSource::caught_up(double seconds) { return state_->reader.caught_up(seconds); }

StreamStatistics DeltaSource::statistics() const {
  StreamStatistics all = state_->assembler.statistics();
  if (all.trouble.empty()) all.trouble = state_->reader.trouble();
  all.behind = state_->reader.behind();
  return all;
}

}  // namespace hctr
