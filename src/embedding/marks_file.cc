#include "embedding/marks_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "base/error.h"
#include "config/json.h"

namespace hctr {
namespace {

constexpr const char* kWhat = "file of row marks";
constexpr const char *kLastSeen = "last_seen", *kOccurrences = "occurrences";

MarksHead parse_head(const std::string& text, const fs::path& path) {
  const auto refuse = [&](const std::string& why) {
    return Error(Kind::data, cat(kWhat, " '", path.string(), "' ", why));
  };
  std::optional<Json> json;
  try {
    json = Json::parse(text, path.string());
  } catch (const Error&) {
    throw refuse("does not begin with a line of JSON");
  }
  const auto number = [&](const char* name) {
    const Json* value = json->find(name);
    if (!value || !value->integer() || *value->integer() < 0)
      throw refuse(cat("has no \"", name, "\" that is a whole number"));
    return *value->integer();
  };
  if (number("schema") != formats::kMarksSchema)
    throw refuse(cat("has schema ", number("schema"), "; this version reads ", formats::kMarksSchema));
  MarksHead head{.steps = number("steps"), .rows = number("rows")};
  const Json* marks = json->find("marks");
  for (const Json& mark : marks && marks->array() ? *marks->array() : Json::Array{}) {
    head.last_seen = head.last_seen || (mark.string() && *mark.string() == kLastSeen);
    head.occurrences = head.occurrences || (mark.string() && *mark.string() == kOccurrences);
  }
  return head;
}

}  // namespace

std::filesystem::path marks_path_beside(std::filesystem::path sparse_model_file) {
  sparse_model_file += formats::kMarksEnding;
  return sparse_model_file;
}

MarksWriter::MarksWriter(std::filesystem::path path, const RowPolicy& policy, int64_t steps)
    : file_(std::move(path)),
      head_{.steps = steps, .last_seen = policy.marks_steps(), .occurrences = policy.marks_occurrences()} {
  file_.write(head_text());
}

/// As long for any number of rows, which is known at the end.
std::string MarksWriter::head_text() const {
  Json marks(Json::Array{});
  if (head_.last_seen) marks.add(kLastSeen);
  if (head_.occurrences) marks.add(kOccurrences);
  std::string text =
      Json(Json::Object{
               {"schema", formats::kMarksSchema}, {"steps", head_.steps}, {"rows", head_.rows}, {"marks", marks}})
          .text();
  HCTR_EXPECT(text.size() < formats::kMarksHeadBytes, "a head of ", text.size(), " bytes");
  text.resize(formats::kMarksHeadBytes - 1, ' ');
  return text + '\n';
}

void MarksWriter::add(const RowBlock& block) {
  std::vector<formats::RowMark> marks(block.keys.size());
  for (size_t i = 0; i < marks.size(); ++i) {
    marks[i] = {.key = block.keys[i], .slot = block.slots.empty() ? 0 : block.slots[i]};
    if (head_.last_seen) marks[i].last_seen = block.last_seen[i];
    if (head_.occurrences) marks[i].occurrences = block.occurrences[i];
  }
  head_.rows += static_cast<int64_t>(marks.size());
  file_.write(marks.data(), marks.size() * sizeof marks[0]);
}

void MarksWriter::commit() {
  const std::string head = head_text();
  file_.write_at(0, head.data(), head.size());
  file_.commit();
}

MarksHead read_marks(const fs::path& path,
                     const std::function<void(const MarksHead&, std::span<const formats::RowMark>)>& take) {
  const File file = open_to_read(path, kWhat);
  std::string text(formats::kMarksHeadBytes, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  const MarksHead head = parse_head(text, path);
  std::error_code error;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  constexpr auto kHead = static_cast<int64_t>(formats::kMarksHeadBytes),
                 kRow = static_cast<int64_t>(sizeof(formats::RowMark));
  if (error || head.rows != (bytes - kHead) / kRow || (bytes - kHead) % kRow != 0)
    throw Error(Kind::data, cat(kWhat, " '", path.string(), "' has ", bytes, " bytes, and its ", head.rows,
                                " rows do not fill it: it is damaged"));
  std::vector<formats::RowMark> marks;
  for (int64_t first = 0; first < head.rows; first += static_cast<int64_t>(marks.size())) {
    marks.resize(static_cast<size_t>(std::min<int64_t>(head.rows - first, 1 << 18)));
    if (std::fread(marks.data(), sizeof marks[0], marks.size(), file.get()) != marks.size())
      throw Error(Kind::io, cat("cannot read ", kWhat, " '", path.string(),
                                "': ", std::ferror(file.get()) ? std::strerror(errno) : "it became shorter meanwhile"));
    for (const formats::RowMark& mark : marks)
      if (mark.occurrences > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        throw Error(Kind::data, cat(kWhat, " '", path.string(), "' says that key ", mark.key, " came ",
                                    mark.occurrences, " times: it is damaged"));
    take(head, marks);
  }
  return head;
}

}  // namespace hctr
