#include "report/page.h"

#include <gtest/gtest.h>

namespace hctr::test {
namespace {

TEST(ReportPage, TextsOfConfigsAndNamesStayTexts) {
  const std::string evil = "</script><img src=x onerror=alert(1)>&\xe2\x80\xa8\"'{{script}}{{data}}";
  const Json data(Json::Object{{"name", evil}});
  const std::string json = script_json(data);
  EXPECT_EQ(json.find_first_of("<>&"), std::string::npos) << json;
  EXPECT_EQ(json.find("\xe2\x80\xa8"), std::string::npos);
  EXPECT_EQ(Json::parse(json, "json").text(), data.text()) << "it still means the same";
  const std::string page = page_html(evil, data);
  EXPECT_EQ(page.find("onerror=alert(1)>"), std::string::npos);
  EXPECT_NE(page.find(json), std::string::npos);
  EXPECT_NE(page.find("{{script}}{{data}}"), std::string::npos) << "marks in a text are no marks";
}

TEST(ReportPage, NeedsNothingElse) {
  const std::string page = page_html("runs", Json(Json::Object{}));
  for (const char* word : {"src=", "@import", "url(", "https:", "fetch(", "XMLHttpRequest"})
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  EXPECT_EQ(html_escaped("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
}

}  // namespace
}  // namespace hctr::test
