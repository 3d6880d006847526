// The page of a report: HTML with its style, script and numbers in one text.
#pragma once

#include <string>
#include <string_view>

#include "config/json.h"

namespace hctr {

/// The page that draws `data`. The parts are the files in page/. Texts of `title` and `data` cannot end their element
/// or be read as HTML.
std::string page_html(const std::string& title, const Json& data);

/// The text with & < > " ' as entities.
std::string html_escaped(std::string_view text);
/// JSON text that may stand in a <script> element: without <, >, & and the line separators of JavaScript.
std::string script_json(const Json&);

}  // namespace hctr
