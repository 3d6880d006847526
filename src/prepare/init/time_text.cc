#include "prepare/init/time_text.h"

#include <cstddef>

namespace hctr {
namespace {

struct Group {
  int value = 0;
  size_t digits = 0;
};

/// Three groups of up to four digits with one sign between them; `rest` is what follows.
struct ThreeGroups {
  Group groups[3];
  char sign = '\0';
  std::string_view rest;
};

bool read_groups(std::string_view text, ThreeGroups& read) {
  size_t at = 0;
  for (int g = 0; g < 3; ++g) {
    if (g > 0) {
      if (at == text.size() || (g > 1 && text[at] != read.sign)) return false;
      read.sign = text[at++];
    }
    Group& group = read.groups[g];
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, ++group.digits) {
      if (group.digits == 4) return false;
      group.value = group.value * 10 + (text[at] - '0');
    }
    if (group.digits == 0) return false;
  }
  read.rest = text.substr(at);
  return true;
}

bool is_year(const Group& group) {
  return group.digits == 2 || (group.digits == 4 && group.value >= 1000 && group.value < 3000);
}

bool is_within(const Group& group, int most) { return group.digits <= 2 && group.value >= 1 && group.value <= most; }

/// Year, month and day, or day and month in either order and the year.
bool is_date(const Group (&groups)[3]) {
  const auto& [a, b, c] = groups;
  if (a.digits == 4) return is_year(a) && is_within(b, 12) && is_within(c, 31);
  return is_year(c) && ((is_within(a, 31) && is_within(b, 12)) || (is_within(a, 12) && is_within(b, 31)));
}

bool is_time_of_day(const Group (&groups)[3]) {
  return groups[0].digits <= 2 && groups[0].value < 24 && groups[1].digits == 2 && groups[1].value < 60 &&
         groups[2].digits == 2 && groups[2].value <= 60;
}

}  // namespace

bool is_time_text(std::string_view text) {
  ThreeGroups read;
  if (text.size() < 6 || text.size() > 40 || !read_groups(text, read)) return false;
  const std::string_view rest = read.rest;
  const char next = rest.size() > 1 ? rest[1] : '\0';
  const bool digit_follows = next >= '0' && next <= '9';
  switch (read.sign) {
    case ':':
      return is_time_of_day(read.groups) && (rest.empty() || (rest[0] == '.' && digit_follows));
    case '-':
    case '/':
    case '.':
      return is_date(read.groups) && (rest.empty() || ((rest[0] == ' ' || rest[0] == 'T') && digit_follows));
    default:
      return false;
  }
}

}  // namespace hctr
