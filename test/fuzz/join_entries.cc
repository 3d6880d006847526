// Fuzz entries for messages between processes: when they join the job, and when one process aborts another.
#include <algorithm>
#include <cstdlib>

#include "core/comm/join_text.h"
#include "fuzz/entry_tools.h"

namespace hctr::fuzz {

void join_greeting(Bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  const auto greeting = greeting_from(text);
  if (!greeting) return;
  expect(text.size() <= kMostGreeting && greeting->processes >= 1 && greeting->processes <= kMostProcesses &&
         greeting->process >= 0 && greeting->port >= 0 && greeting->port <= 65535);
  expect(greeting->host.find_first_of(" \n\t\x1b") == std::string::npos && !greeting->host.empty());
  if (greeting->version.find('\\') != std::string::npos) return;  // escaped text may exceed the length limit
  const auto same = greeting_from(text_of(*greeting));
  expect(same && same->process == greeting->process && same->processes == greeting->processes &&
         same->port == greeting->port && same->host == greeting->host && same->version == greeting->version);
}

void join_table(Bytes bytes) {
  const int self = take(bytes), processes = take(bytes);
  std::vector<Whereabout> table;
  try {
    table = table_from(std::string(bytes.begin(), bytes.end()), self, processes);
  } catch (const Error& error) {
    expect(error.kind() == Kind::comm);
    return;
  }
  expect(!table.empty() && table.size() <= static_cast<size_t>(std::max(processes, 1)) && table[0].launched == 0);
  bool has_self = false;
  for (size_t i = 0; i < table.size(); ++i) {
    expect(i == 0 || (table[i].launched > table[i - 1].launched && table[i].port > 0));
    has_self = has_self || table[i].launched == self;
  }
  expect(has_self);
  const std::string text = text_of(table);
  expect(text_of(table_from(text, self, processes)) == text);
}

void join_number(Bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  const int code = exit_code_from(text);
  expect(code >= 1 && code <= 255);
  const auto secret = secret_from(text);
  expect(!secret || text_of_secret(*secret) == text);
  const auto number = whole_number(text, 0, kMostProcesses);
  expect(!number || std::strtoll(text.c_str(), nullptr, 10) == *number);
}

}  // namespace hctr::fuzz
