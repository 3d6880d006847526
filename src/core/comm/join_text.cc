#include "core/comm/join_text.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/expect.h"
#include "core/base/printable.h"
#include "core/comm/job_secret.h"

namespace hctr {
namespace {

constexpr std::string_view kTableTitle = "members", kSecretTitle = "secret ";
constexpr size_t kMostName = 255, kMostVersion = 255;

/// Whether `text` is a valid host name or address. Requires printable characters without blanks.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostName &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

std::string as_name(const std::string& text) {
  std::string name = text.substr(0, kMostName);
  for (char& c : name)
    if (!is_name({&c, 1})) c = '_';
  return name;
}

/// Splits the text into lines; a final line end does not start another line.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// Removes and returns the text before the first blank.
std::string_view take_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

}  // namespace

std::optional<int> whole_number(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) return std::nullopt;
  return value;
}

std::string text_of(const Greeting& greeting) {
  return cat("process ", greeting.process, "\nprocesses ", greeting.processes, "\nport ", greeting.port, "\nhost ",
             as_name(greeting.host), "\nversion ", greeting.version);
}

std::optional<Greeting> greeting_from(std::string_view text) {
  if (text.size() > kMostGreeting) return std::nullopt;
  std::map<std::string_view, std::string_view> fields;
  for (std::string_view line : lines_of(text)) {
    const std::string_view name = take_word(line);
    if (!fields.emplace(name, line).second) return std::nullopt;
  }
  if (fields.size() != 5) return std::nullopt;
  const auto process = whole_number(fields["process"], 0, kMostProcesses - 1),
             processes = whole_number(fields["processes"], 1, kMostProcesses),
             port = whole_number(fields["port"], 0, 65535);
  const std::string_view host = fields["host"], version = fields["version"];
  if (fields.size() != 5 || !process || !processes || !port || !is_name(host) || version.size() > kMostVersion)
    return std::nullopt;
  return Greeting{*process, *processes, *port, std::string(host), printable(version)};
}

std::string text_of(const std::vector<Whereabout>& table) {
  std::string text(kTableTitle);
  for (const Whereabout& each : table)
    text += cat("\n", each.launched, " ", each.port, " ", each.address, " ", as_name(each.host));
  return text;
}

std::vector<Whereabout> table_from(std::string_view text, int self, int processes) {
  const std::vector<std::string_view> lines = lines_of(text);
  const auto expect = [](bool holds, size_t line, std::string_view why) {
    if (!holds) throw Error(Kind::comm, cat("the table of processes cannot be read: line ", line + 1, ": ", why));
  };
  expect(!lines.empty() && lines[0] == kTableTitle, 0, "expected the title");
  std::vector<Whereabout> table;
  bool has_self = false;
  for (size_t i = 1; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    const int least = table.empty() ? 0 : table.back().launched + 1;
    const auto launched = whole_number(take_word(line), least, table.empty() ? 0 : processes - 1);
    expect(launched.has_value(), i, "expected a process number in ascending order");
    const auto port = whole_number(take_word(line), *launched == 0 ? 0 : 1, 65535);
    expect(port.has_value(), i, "expected a port");
    const std::string_view address = take_word(line);
    expect(is_name(address) && is_name(line), i, "expected an address and a host");
    table.push_back({*launched, *port, std::string(address), std::string(line)});
    has_self = has_self || *launched == self;
  }
  expect(!table.empty(), lines.size(), "expected process 0");
  expect(has_self, lines.size(), cat("expected process ", self));
  return table;
}

std::string text_of_secret(std::string_view secret) { return cat(kSecretTitle, secret); }

std::optional<std::string> secret_from(std::string_view text) {
  if (!text.starts_with(kSecretTitle)) return std::nullopt;
  text.remove_prefix(kSecretTitle.size());
  if (text.size() != AgreedSecret::kCharacters || text.find_first_not_of("0123456789abcdef") != text.npos)
    return std::nullopt;
  return std::string(text);
}

int exit_code_from(std::string_view text) {
  const auto code = whole_number(text, 1, 255);
  for (const Kind kind : {Kind::usage, Kind::config, Kind::data, Kind::io, Kind::device, Kind::bug, Kind::interrupted})
    if (code == exit_code(kind)) return *code;
  return exit_code(Kind::comm);
}

}  // namespace hctr
