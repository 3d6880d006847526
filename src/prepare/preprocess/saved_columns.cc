#include "prepare/preprocess/saved_columns.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>

#include "config/checked_json.h"
#include "core/base/expect.h"
#include "core/base/file_checksum.h"
#include "core/base/random.h"
#include "formats/data/numbering.h"

namespace hctr {
namespace {

constexpr std::string_view kMagic = "HCTRVOC2", kMagicWithoutChecksum = "HCTRVOC1";
constexpr size_t kChecksumBytes = sizeof(uint64_t);

const char* normalize_word(Normalize normalize) {
  return normalize == Normalize::minmax ? "minmax" : normalize == Normalize::standard ? "standard" : "none";
}

/// Hashes a sequence of numbers and texts.
class SequenceHash {
 public:
  void add(uint64_t value) { hash_ = mix64(hash_ ^ mix64(value + ++count_)); }
  void add(double value) { add(std::bit_cast<uint64_t>(value)); }
  void add(const std::string& text) {
    add(static_cast<uint64_t>(text.size()));
    for (const char c : text) add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
  }
  std::string text() const {
    std::string digits;
    for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[hash_ >> shift & 15];
    return digits;
  }

 private:
  uint64_t hash_ = 0, count_ = 0;
};

void add(SequenceHash& hash, const NumberStatistics& all) {
  hash.add(static_cast<uint64_t>(all.moments.count()));
  for (const double value : {all.least, all.most, all.moments.mean(), all.moments.squares()}) hash.add(value);
}

bool is_criteo(const PreprocessOptions& options) { return !options.table.quotes; }

Json to_json(const NumberStatistics& all) {
  Json json(Json::Object{{"count", all.moments.count()}});
  if (all.moments.count() > 0)
    json.set("least", all.least)
        .set("most", all.most)
        .set("mean", all.moments.mean())
        .set("squares", all.moments.squares());
  return json;
}

/// Accesses the members of an object. A missing member is an error that names it.
struct Members {
  const Json& json;
  const Json& operator[](const char* name) const {
    const Json* found = json.find(name);
    if (!found) throw Error(Kind::data, cat("it lacks \"", name, "\""));
    return *found;
  }
  int64_t whole(const char* name) const {
    const int64_t* value = (*this)[name].integer();
    if (!value) throw Error(Kind::data, cat("its \"", name, "\" is ", (*this)[name].kind()));
    return *value;
  }
  double number(const char* name) const {
    if (!(*this)[name].is_number()) throw Error(Kind::data, cat("its \"", name, "\" is ", (*this)[name].kind()));
    return (*this)[name].number();
  }
  bool flag(const char* name) const {
    const bool* value = (*this)[name].boolean();
    if (!value) throw Error(Kind::data, cat("its \"", name, "\" is ", (*this)[name].kind()));
    return *value;
  }
  const std::string& text(const char* name) const {
    const std::string* value = (*this)[name].string();
    if (!value) throw Error(Kind::data, cat("its \"", name, "\" is ", (*this)[name].kind()));
    return *value;
  }
  const Json::Array& list(const char* name) const {
    const Json::Array* values = (*this)[name].array();
    if (!values) throw Error(Kind::data, cat("its \"", name, "\" is ", (*this)[name].kind()));
    return *values;
  }
  std::vector<std::string> texts(const char* name) const {
    std::vector<std::string> texts;
    for (const Json& value : list(name)) {
      if (!value.string()) throw Error(Kind::data, cat("its \"", name, "\" has ", value.kind()));
      texts.push_back(*value.string());
    }
    return texts;
  }
};

NumberStatistics read_statistics(const Json& json) {
  const Members from{json};
  const int64_t count = from.whole("count");
  if (count == 0) return {};
  return {Moments(count, from.number("mean"), from.number("squares")), from.number("least"), from.number("most")};
}

uint64_t checksum_of(std::string_view bytes) { return crc32_of(std::as_bytes(std::span(bytes))); }

void warn_unchecked(const fs::path& path, const Log& log) {
  log.warning("'", path.string(),
              "' comes from a version that wrote no checksum: damage to the file may not be "
              "detected");
}

/// Reads a vocabulary file and verifies its checksum. Returns the content without the checksum.
std::string checked_vocabularies(const fs::path& path, const Log& log) {
  std::string bytes = read_text(path, "file of vocabularies");
  if (bytes.starts_with(kMagicWithoutChecksum)) {
    warn_unchecked(path, log);
    return bytes;
  }
  if (!bytes.starts_with(kMagic)) throw Error(Kind::data, cat("'", path.string(), "' is not a file of vocabularies"));
  uint64_t expected = 0;
  const size_t end = bytes.size() - std::min(bytes.size() - kMagic.size(), kChecksumBytes);
  std::memcpy(&expected, bytes.data() + end, bytes.size() - end);
  bytes.resize(end);
  if (checksum_of(bytes) != expected)
    throw Error(Kind::data, cat("'", path.string(), "' is damaged: the checksum at its end does not match"));
  return bytes;
}

std::vector<Vocabulary> read_vocabularies(const fs::path& path, const Log& log) {
  const std::string bytes = checked_vocabularies(path, log);
  size_t at = kMagic.size();
  const auto next = [&] {
    uint64_t value = 0;
    if (bytes.size() - at < sizeof value) throw Error(Kind::data, cat("'", path.string(), "' ends too early"));
    std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
    return value;
  };
  std::vector<Vocabulary> all;
  for (uint64_t slots = next(); slots > 0; --slots) {
    const uint64_t kept = next();
    Vocabulary::Totals totals;
    totals.distinct = static_cast<int64_t>(next());
    totals.missing = static_cast<int64_t>(next());
    totals.rare = static_cast<int64_t>(next());
    if (kept > (bytes.size() - at) / sizeof(uint64_t))
      throw Error(Kind::data, cat("'", path.string(), "' ends too early"));
    std::vector<uint64_t> codes(kept);
    if (kept > 0) std::memcpy(codes.data(), bytes.data() + at, kept * sizeof(uint64_t));
    at += kept * sizeof(uint64_t);
    all.emplace_back(codes, totals);
  }
  if (at != bytes.size()) throw Error(Kind::data, cat("'", path.string(), "' is longer than its vocabularies"));
  return all;
}

}  // namespace

std::string numbering_of(const PreprocessOptions& options, const FittedColumns& fitted) {
  SequenceHash hash;
  hash.add(uint64_t{is_criteo(options)});
  for (const std::string& name : options.table.numbers()) hash.add(name);
  for (const TextColumn& column : options.table.columns)
    if (column.notation && (column.kind == ColumnKind::number || column.kind == ColumnKind::label)) {
      hash.add(column.name);
      hash.add(describe(*column.notation));
    }
  for (const std::string& name : options.slot_names()) hash.add(name);
  hash.add(static_cast<uint64_t>(options.passes));
  hash.add(static_cast<uint64_t>(options.passes == 1 ? options.range : 0));
  hash.add(static_cast<uint64_t>(options.modulo));
  hash.add(uint64_t{options.float_label_dense});
  hash.add(uint64_t{options.dense.log});
  hash.add(std::string(normalize_word(options.dense.normalize)));
  hash.add(options.dense.fill_with_mean ? 0 : options.dense.fill);
  for (const DenseColumn& column : fitted.dense) {
    if (options.dense.fill_with_mean) hash.add(column.raw.moments.mean());
    if (options.dense.normalize == Normalize::none) continue;
    add(hash, column.scaled);
    hash.add(static_cast<uint64_t>(column.missing));
  }
  for (const Vocabulary& vocabulary : fitted.vocabularies) {
    hash.add(static_cast<uint64_t>(vocabulary.size()));
    for (uint64_t id = kFirstValue; id < vocabulary.by_id().size(); ++id) hash.add(vocabulary.by_id()[id].code);
  }
  return hash.text();
}

namespace {

/// The number notations of the columns that have their own: {"price": {"number_format": "1,234.5", "unit": "$"}}.
Json notations_of(const TextTable& table) {
  Json notations(Json::Object{});
  for (const TextColumn& column : table.columns) {
    if (!column.notation || column.kind == ColumnKind::split) continue;
    Json one(Json::Object{{"number_format", word_of(column.notation->format.value_or(NumberFormat::plain))}});
    if (!column.notation->unit.empty()) one.set("unit", column.notation->unit);
    notations.set(column.name, std::move(one));
  }
  return notations;
}

std::map<std::string, NumberNotation> read_notations(const Json* json) {
  std::map<std::string, NumberNotation> notations;
  if (!json || !json->object()) return notations;  // files of earlier versions have no notations
  for (const auto& [column, one] : *json->object()) {
    NumberNotation notation;
    const std::string word = Members{one}.text("number_format");
    for (const auto& [known, format] : EnumWords<NumberFormat>::table())
      if (known == word) notation.format = format;
    if (!notation.format) throw Error(Kind::data, cat("unknown \"number_format\" '", word, "'"));
    if (one.find("unit")) notation.unit = Members{one}.text("unit");
    notations.emplace(column, std::move(notation));
  }
  return notations;
}

}  // namespace

Json describe_columns(const PreprocessOptions& options, const FittedColumns& fitted) {
  std::vector<std::string> categories, lists;
  const std::vector<std::string> all = options.table.categories();
  for (size_t place = 0; place < all.size(); ++place)
    (options.table.is_list(place) ? lists : categories).push_back(all[place]);
  Json crosses(Json::Array{}), statistics(Json::Array{});
  for (const auto& [a, b] : options.crosses) crosses.add(Json::Array{all[a], all[b]});
  for (const DenseColumn& column : fitted.dense)
    statistics.add(
        Json::Object{{"missing", column.missing}, {"raw", to_json(column.raw)}, {"scaled", to_json(column.scaled)}});
  Json json(Json::Object{{"criteo", is_criteo(options)},
                         {"labels", to_json(options.table.labels())},
                         {"dense", to_json(options.table.numbers())},
                         {"categories", to_json(categories)},
                         {"lists", to_json(lists)},
                         {"crosses", std::move(crosses)},
                         {"passes", options.passes},
                         {"range", options.range},
                         {"modulo", options.modulo},
                         {"min_count", options.min_count},
                         {"fill", options.dense.fill},
                         {"fill_with_mean", options.dense.fill_with_mean},
                         {"log", options.dense.log},
                         {"normalize", normalize_word(options.dense.normalize)},
                         {"floats", options.float_label_dense},
                         {"statistics", std::move(statistics)}});
  if (options.passes == 2) json.set("vocabulary", kVocabularyFile);
  if (Json notations = notations_of(options.table); !notations.object()->empty())
    json.set("notations", std::move(notations));
  return json;
}

void write_vocabularies(const fs::path& path, const FittedColumns& fitted) {
  std::string bytes(kMagic);
  const auto put = [&](uint64_t value) {
    char word[sizeof value];
    std::memcpy(word, &value, sizeof value);
    bytes.append(word, sizeof word);
  };
  put(fitted.vocabularies.size());
  for (const Vocabulary& vocabulary : fitted.vocabularies) {
    put(vocabulary.by_id().size() - kFirstValue);
    for (const int64_t total : {vocabulary.distinct(), vocabulary.missing(), vocabulary.rare()})
      put(static_cast<uint64_t>(total));
    for (uint64_t id = kFirstValue; id < vocabulary.by_id().size(); ++id) put(vocabulary.by_id()[id].code);
  }
  put(checksum_of(bytes));
  write_text(path, bytes);
}

SavedColumns read_columns(const fs::path& path, const Log& log) {
  bool checked = false;
  const Json json = read_json_checked_from(kCheckedDescription, path, "", checked);
  if (!checked) warn_unchecked(path, log);
  SavedColumns saved;
  in_context(
      [&] {
        return cat("reading '", path.string(),
                   "', expected in the format that this version of preprocess "
                   "writes");
      },
      [&] {
        const Members file{json};
        saved.numbering = file.text("numbering");
        const Members from{file["columns"]};
        saved.criteo = from.flag("criteo");
        saved.roles = {from.texts("labels"), from.texts("dense"), from.texts("categories"), from.texts("lists"), {}};
        saved.roles.notations = read_notations(from.json.find("notations"));
        for (const Json& cross : from.list("crosses")) {
          const Json::Array* pair = cross.array();
          if (!pair || pair->size() != 2 || !(*pair)[0].string() || !(*pair)[1].string())
            throw Error(Kind::data, cat("its \"crosses\" have ", cross.text()));
          saved.crosses.emplace_back(*(*pair)[0].string(), *(*pair)[1].string());
        }
        saved.passes = static_cast<int>(from.whole("passes"));
        saved.range = from.whole("range");
        saved.modulo = from.whole("modulo");
        saved.min_count = from.whole("min_count");
        saved.dense.fill = from.number("fill");
        saved.dense.fill_with_mean = from.flag("fill_with_mean");
        saved.dense.log = from.flag("log");
        const std::string& normalize = from.text("normalize");
        for (const Normalize each : {Normalize::none, Normalize::minmax, Normalize::standard})
          if (normalize == normalize_word(each)) saved.dense.normalize = each;
        for (const Json& column : from.list("statistics")) {
          const Members of{column};
          DenseColumn& dense = saved.fitted.dense.emplace_back();
          dense.missing = of.whole("missing");
          dense.raw = read_statistics(of["raw"]);
          dense.scaled = read_statistics(of["scaled"]);
        }
        if (saved.fitted.dense.size() != saved.roles.numbers.size())
          throw Error(Kind::data, cat("found statistics for ", saved.fitted.dense.size(), " of ",
                                      saved.roles.numbers.size(), " dense columns"));
      });
  const size_t slots = saved.crosses.size() + saved.roles.categories.size() + saved.roles.lists.size();
  if (saved.passes == 2) {
    const fs::path vocabularies = path.parent_path() / kVocabularyFile;
    saved.fitted.vocabularies = read_vocabularies(vocabularies, log);
    if (saved.fitted.vocabularies.size() != slots)
      throw Error(Kind::data, cat("'", vocabularies.string(), "' has ", saved.fitted.vocabularies.size(),
                                  " vocabularies, but '", path.string(), "' has ", slots, " slots"));
    for (const Vocabulary& vocabulary : saved.fitted.vocabularies) saved.fitted.slot_sizes.push_back(vocabulary.size());
  } else {
    saved.fitted.slot_sizes.assign(slots, saved.range);
  }
  return saved;
}

void apply_columns(SavedColumns saved, PreprocessOptions& options) {
  const std::vector<std::string> categories = options.table.categories();
  const auto place = [&](const std::string& name) {
    const auto found = std::find(categories.begin(), categories.end(), name);
    HCTR_EXPECT(found != categories.end(), "no category '", name, "'");
    return static_cast<size_t>(found - categories.begin());
  };
  for (const auto& [a, b] : saved.crosses) options.crosses.emplace_back(place(a), place(b));
  options.passes = saved.passes;
  if (saved.passes == 1) options.range = saved.range;
  options.modulo = saved.modulo;
  options.min_count = saved.min_count;
  options.dense = saved.dense;
  options.applied = std::make_shared<const FittedColumns>(std::move(saved.fitted));
}

}  // namespace hctr
