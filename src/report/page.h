// Builds the page of a report: HTML with style, script and data in one text.
#pragma once

#include <string>
#include <string_view>

#include "config/json.h"

namespace hctr {

/// Returns the page that draws `data`, made from the files in page/. Texts in `title` and `data` cannot close their
/// element or be parsed as HTML.
std::string page_html(const std::string& title, const Json& data);

/// Replaces & < > " ' in a text by entities.
std::string html_escaped(std::string_view text);
/// JSON text that is safe inside a <script> element: without <, >, & and JavaScript's line separators.
std::string script_json(const Json&);

}  // namespace hctr
