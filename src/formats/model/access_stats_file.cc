#include "formats/model/access_stats_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "config/json.h"
#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr const char* kStatsFile = "file of access statistics";
constexpr const char *kLastSeen = "last_seen", *kOccurrences = "occurrences";

AccessStatsHead parse_head(const std::string& text, const fs::path& path) {
  const auto refuse = [&](const std::string& why) {
    return Error(Kind::data, cat(kStatsFile, " '", path.string(), "' ", why));
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
      throw refuse(cat("lacks the integer \"", name, "\" of at least 0"));
    return *value->integer();
  };
  if (number("schema") != formats::kAccessStatsSchema)
    throw refuse(cat("has schema ", number("schema"), "; this version reads ", formats::kAccessStatsSchema));
  AccessStatsHead head{.steps = number("steps"), .rows = number("rows")};
  const Json* fields = json->find("marks");
  for (const Json& field : fields && fields->array() ? *fields->array() : Json::Array{}) {
    head.last_seen = head.last_seen || (field.string() && *field.string() == kLastSeen);
    head.occurrences = head.occurrences || (field.string() && *field.string() == kOccurrences);
  }
  return head;
}

}  // namespace

std::filesystem::path access_stats_path(std::filesystem::path sparse_model_file) {
  sparse_model_file += formats::kAccessStatsEnding;
  return sparse_model_file;
}

AccessStatsWriter::AccessStatsWriter(AtomicFile& file, const RowPolicy& policy, int64_t steps)
    : file_(file),
      head_{.steps = steps, .last_seen = policy.tracks_last_step(), .occurrences = policy.counts_occurrences()} {
  file_.write(head_text());
}

/// The header is padded to a fixed length, because finish() rewrites it with the number of rows.
std::string AccessStatsWriter::head_text() const {
  Json fields(Json::Array{});
  if (head_.last_seen) fields.add(kLastSeen);
  if (head_.occurrences) fields.add(kOccurrences);
  std::string text =
      Json(
          Json::Object{
              {"schema", formats::kAccessStatsSchema}, {"steps", head_.steps}, {"rows", head_.rows}, {"marks", fields}})
          .text();
  HCTR_EXPECT(text.size() < formats::kAccessStatsHeadBytes, "a head of ", text.size(), " bytes");
  text.resize(formats::kAccessStatsHeadBytes - 1, ' ');
  return text + '\n';
}

void AccessStatsWriter::add(const RowBlock& block) {
  std::vector<formats::RowAccess> rows(block.keys.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = {.key = block.keys[i], .slot = block.slots.empty() ? 0 : block.slots[i]};
    if (head_.last_seen) rows[i].last_seen = block.last_seen[i];
    if (head_.occurrences) rows[i].occurrences = block.occurrences[i];
  }
  head_.rows += static_cast<int64_t>(rows.size());
  file_.write(rows.data(), rows.size() * sizeof rows[0]);
}

void AccessStatsWriter::finish() {
  const std::string head = head_text();
  file_.write_at(0, head.data(), head.size());
  file_.finish();
}

AccessStatsHead read_access_stats(
    const fs::path& path,
    const std::function<void(const AccessStatsHead&, std::span<const formats::RowAccess>)>& sink) {
  const File file = open_to_read(path, kStatsFile);
  std::string text(formats::kAccessStatsHeadBytes, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  const AccessStatsHead head = parse_head(text, path);
  std::error_code error;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  constexpr auto kHead = static_cast<int64_t>(formats::kAccessStatsHeadBytes),
                 kRow = static_cast<int64_t>(sizeof(formats::RowAccess));
  if (error || head.rows != (bytes - kHead) / kRow || (bytes - kHead) % kRow != 0)
    throw Error(Kind::data, cat(kStatsFile, " '", path.string(), "' has ", bytes,
                                " bytes, which is not the size of its ", head.rows, " rows: the file is damaged"));
  std::vector<formats::RowAccess> rows;
  for (int64_t first = 0; first < head.rows; first += static_cast<int64_t>(rows.size())) {
    rows.resize(static_cast<size_t>(std::min<int64_t>(head.rows - first, 1 << 18)));
    if (std::fread(rows.data(), sizeof rows[0], rows.size(), file.get()) != rows.size())
      throw Error(Kind::io,
                  cat("cannot read ", kStatsFile, " '", path.string(), "': ",
                      std::ferror(file.get()) ? std::strerror(errno) : "the file was truncated while being read"));
    for (const formats::RowAccess& row : rows)
      if (row.occurrences > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        throw Error(Kind::data, cat(kStatsFile, " '", path.string(), "' says that key ", row.key, " occurred ",
                                    row.occurrences, " times: the file is damaged"));
    sink(head, rows);
  }
  return head;
}

}  // namespace hctr
