#include "store/shared_level.h"

#include <cstring>
#include <utility>

#include "config/json.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr uint64_t kLengthBytes = 8;  // a root consists of the length of a JSON text (8 bytes) and the text

uint64_t whole_number(const Json& json, const char* name) {
  const Json* const member = json.find(name);
  if (!member || !member->integer() || *member->integer() < 0)
    throw Error(Kind::data, cat("the catalog in shared memory needs a number in '", name, "'"));
  return static_cast<uint64_t>(*member->integer());
}

std::string text_member(const Json& json, const char* name) {
  const Json* const member = json.find(name);
  if (!member || !member->string())
    throw Error(Kind::data, cat("the catalog in shared memory needs a text in '", name, "'"));
  return *member->string();
}

}  // namespace

SharedLevel::SharedLevel(const std::string& name) : segment_(SharedSegment::open(name)) {
  const std::lock_guard lock(mutex_);
  if (segment_->become_writer() && segment_->commits() == 0) segment_->set_loading(true);
  read_commit();
  if (segment_->writes()) take_over();
}

SharedLevel::~SharedLevel() { segment_->stop_writing(); }

std::string SharedLevel::why_read_only() const {
  return cat("process ", segment_->writer(), " updates the shared memory '", segment_->name(),
             "', which this process only reads");
}

std::shared_ptr<LevelTable> SharedLevel::table(const std::string& space, int64_t dim, int64_t expected) {
  const std::lock_guard lock(mutex_);
  const auto found = tables_.find(space);
  if (found != tables_.end()) {
    if (found->second->dim() != dim)
      throw Error(Kind::data, cat("'", space, "' has rows of ", found->second->dim(), " elements in shared memory '",
                                  segment_->name(), "', not ", dim));
    return found->second;
  }
  if (!writable()) throw Error(Kind::usage, cat("'", space, "' cannot be loaded: ", why_read_only()));
  return tables_[space] = std::make_shared<SharedRowTable>(segment_, dim, expected);
}

std::vector<std::string> SharedLevel::namespaces() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, table] : tables_) names.push_back(name);
  return names;
}

void SharedLevel::drop(const std::string& space) {
  const std::lock_guard lock(mutex_);
  const auto found = tables_.find(space);
  if (found == tables_.end() || !writable()) return;
  found->second->roll_back();
  if (!found->second->fresh()) dropped_.push_back(found->second);
  tables_.erase(found);
}

void SharedLevel::loaded() {
  if (writable()) segment_->set_loading(false);
}

std::string SharedLevel::note() const {
  const std::lock_guard lock(mutex_);
  return note_;
}

void SharedLevel::commit(const std::string& note) {
  const std::lock_guard lock(mutex_);
  std::vector<SharedSegment::Range> replaced;
  Json root, list(Json::Array{});
  for (const auto& [space, table] : tables_) {
    const SharedRowTable::Stored stored = table->prepare(replaced);
    Json one;
    one.set("namespace", space);
    one.set("dim", stored.dim);
    one.set("rows", stored.rows);
    one.set("blocks", static_cast<int64_t>(stored.blocks));
    one.set("directory", static_cast<int64_t>(stored.directory));
    list.add(std::move(one));
  }
  for (const auto& table : dropped_)
    for (const SharedSegment::Range& range : table->used()) replaced.push_back(range);
  root.set("note", note);
  root.set("tables", std::move(list));
  const std::string text = root.text();
  const uint64_t length = text.size();
  const SharedSegment::Range next{segment_->allocate(kLengthBytes + length), kLengthBytes + length,
                                  segment_->commits() + 1};
  std::memcpy(segment_->memory(next.offset), &length, kLengthBytes);
  std::memcpy(segment_->memory(next.offset) + kLengthBytes, text.data(), length);
  if (root_.bytes > 0) replaced.push_back(root_);
  segment_->publish(next.offset, replaced);
  root_ = next;
  note_ = note;
  pin_ = segment_->pin();
  dropped_.clear();
  for (const auto& [space, table] : tables_) table->committed(pin_);
  segment_->reclaim();
}

void SharedLevel::roll_back() {
  const std::lock_guard lock(mutex_);
  for (const auto& [space, table] : tables_) table->roll_back();
  std::erase_if(tables_, [](const auto& one) { return one.second->fresh(); });
}

/// Opens the tables of the last commit. Returns whether the note has changed.
bool SharedLevel::read_commit() {
  auto pin = segment_->pin();
  if (pin->root == 0 || (pin_ && pin_->commit == pin->commit)) return false;
  uint64_t length = 0;
  std::memcpy(&length, segment_->at(pin->root, kLengthBytes), kLengthBytes);
  segment_->at(pin->root, length);  // checks `length`, so that the sum below cannot overflow
  const SharedSegment::Range range{pin->root, kLengthBytes + length, pin->commit};
  const std::byte* const text = segment_->at(range.offset, range.bytes) + kLengthBytes;
  const Json root = Json::parse({reinterpret_cast<const char*>(text), length}, "the catalog in shared memory");
  const Json* const list = root.find("tables");
  if (!list || !list->array()) throw Error(Kind::data, "the catalog in shared memory needs a list in 'tables'");
  std::map<std::string, std::shared_ptr<SharedRowTable>> tables;
  for (const Json& one : *list->array()) {
    const std::string space = text_member(one, "namespace");
    const SharedRowTable::Stored stored{.dim = static_cast<int64_t>(whole_number(one, "dim")),
                                        .rows = static_cast<int64_t>(whole_number(one, "rows")),
                                        .blocks = whole_number(one, "blocks"),
                                        .directory = whole_number(one, "directory")};
    const auto before = tables_.find(space);
    tables.emplace(
        space, std::make_shared<SharedRowTable>(pin, stored, before == tables_.end() ? nullptr : before->second.get()));
  }
  std::string note = text_member(root, "note");
  const bool changed = note != note_;
  note_ = std::move(note);
  tables_ = std::move(tables);
  root_ = range;
  pin_ = std::move(pin);
  return changed;
}

/// Memory that the previous writer had allocated since its last commit becomes free.
void SharedLevel::take_over() {
  std::vector<SharedSegment::Range> used;
  if (root_.bytes > 0) used.push_back(root_);
  for (const auto& [space, table] : tables_)
    for (const SharedSegment::Range& range : table->used()) used.push_back(range);
  segment_->take_over(std::move(used));
}

bool SharedLevel::refresh() {
  const std::lock_guard lock(mutex_);
  if (segment_->writes()) {
    segment_->reclaim();
    return false;
  }
  const bool takes = segment_->become_writer();
  try {
    const bool changed = read_commit();
    if (takes) take_over();
    return changed;
  } catch (...) {
    segment_->stop_writing();
    throw;
  }
}

}  // namespace hctr
