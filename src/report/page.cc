#include "report/page.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "core/base/expect.h"
#include "page_files.h"  // generated from the files in page/

namespace hctr {
namespace {

/// Replaces each mark "{{name}}" of the page by its text, in one pass: inserted text is not searched for marks.
std::string filled(std::string_view page, std::initializer_list<std::pair<std::string_view, std::string_view>> texts) {
  std::string whole;
  size_t at = 0;
  for (const auto& [mark, text] : texts) {
    const size_t found = page.find(mark, at);
    HCTR_EXPECT(found != page.npos, "the page has no ", mark, " where it is expected");
    whole.append(page.substr(at, found - at)).append(text);
    at = found + mark.size();
  }
  return whole.append(page.substr(at));
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  return escaped;
}

std::string script_json(const Json& data) {
  // Escapes characters that have a meaning in HTML or JavaScript. JSON has these characters only inside strings, where
  // an escape sequence means the same character.
  std::string safe;
  const std::string text = data.text();
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view next(text.data() + i, std::min<size_t>(3, text.size() - i));
    if (text[i] == '<')
      safe += "\\u003c";
    else if (text[i] == '>')
      safe += "\\u003e";
    else if (text[i] == '&')
      safe += "\\u0026";
    else if (next == "\xe2\x80\xa8" || next == "\xe2\x80\xa9") {
      safe += next == "\xe2\x80\xa8" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

std::string page_html(const std::string& title, const Json& data) {
  return filled(page_files::kPage, {{"{{title}}", html_escaped(title)},
                                    {"{{style}}", page_files::kStyle},
                                    {"{{data}}", script_json(data)},
                                    {"{{script}}", cat(page_files::kChart, page_files::kSections)}});
}

}  // namespace hctr
