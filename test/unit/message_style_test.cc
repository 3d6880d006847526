// Messages in the sources have one style: subject, verb, expected value, in the terms of the field.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/paths.h"

namespace {

namespace fs = std::filesystem;

/// Adjacent string literals of the source, joined. Escapes are not decoded.
struct Literal {
  size_t line = 0;
  std::string text;
  bool begins_error = false;  // whether the literal starts the message of an Error(Kind::...)
  bool ends_error = false;    // whether the literal ends the message of an Error(Kind::...)
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Extracts the literals of a source file. Skips comments, raw strings and includes.
class Scanner {
 public:
  explicit Scanner(const std::string& source) : s_(source) {}

  std::vector<Literal> literals() {
    while (at_ < s_.size()) {
      if (skip_comment()) continue;
      const char c = s_[at_];
      if (c == '"' && at_ > 0 && s_[at_ - 1] == 'R') {
        skip_raw();
      } else if (c == '"') {
        literal();
      } else if (c == '\'' && (at_ == 0 || !is_word(s_[at_ - 1]))) {  // not the separator of 1'000
        at_ += s_[at_ + 1] == '\\' ? 4 : 3;
      } else if (c == '#' && s_.compare(at_, 8, "#include") == 0) {
        at_ = std::min(s_.find('\n', at_), s_.size());
      } else {
        parenthesis(c);
        at_ += 1;
      }
    }
    return std::move(found_);
  }

 private:
  bool skip_comment() {
    if (s_.compare(at_, 2, "//") == 0)
      at_ = std::min(s_.find('\n', at_), s_.size());
    else if (s_.compare(at_, 2, "/*") == 0)
      at_ = std::min(s_.find("*/", at_) + 2, s_.size());
    else
      return false;
    return true;
  }

  void skip_raw() {
    const size_t open = s_.find('(', at_);
    const std::string close = ")" + s_.substr(at_ + 1, open - at_ - 1) + "\"";
    at_ = std::min(s_.find(close, open) + close.size(), s_.size());
  }

  /// Tracks where the arguments of an Error begin and end.
  void parenthesis(char c) {
    constexpr std::string_view kError = "Error(Kind::";
    if (c == '(') depth_ += 1;
    if (c == ')') depth_ -= 1;
    if (depth_ < error_depth_) error_depth_ = 0;
    if (error_depth_ != 0 || s_.compare(at_, kError.size(), kError) != 0 || (at_ > 0 && is_word(s_[at_ - 1]))) return;
    error_depth_ = depth_ += 1;
    size_t begin = at_ + kError.size();
    while (begin < s_.size() && is_word(s_[begin])) begin += 1;
    begin = s_.find_first_not_of(", \n", begin);
    if (begin != std::string::npos && s_.compare(begin, 4, "cat(") == 0) begin = s_.find_first_not_of(" \n", begin + 4);
    error_text_ = begin;
    at_ += kError.find('(');
  }

  void literal() {
    Literal one;
    one.line = static_cast<size_t>(std::count(s_.begin(), s_.begin() + static_cast<std::ptrdiff_t>(at_), '\n')) + 1;
    one.begins_error = error_depth_ != 0 && at_ == error_text_;
    while (at_ < s_.size() && s_[at_] == '"') {
      for (at_ += 1; at_ < s_.size() && s_[at_] != '"'; at_ += 1) {
        if (s_[at_] == '\\') one.text += s_[at_++];
        one.text += s_[at_];
      }
      at_ += 1;
      size_t next = s_.find_first_not_of(" \n", at_);
      while (next != std::string::npos && s_.compare(next, 2, "//") == 0)
        next = s_.find_first_not_of(" \n", s_.find('\n', next));
      if (next == std::string::npos || s_[next] != '"') break;
      at_ = next;
    }
    int closing = 0;
    for (size_t i = at_; i < s_.size() && (s_[i] == ')' || s_[i] == ' ' || s_[i] == '\n'); ++i) closing += s_[i] == ')';
    one.ends_error = error_depth_ != 0 && depth_ - closing < error_depth_;
    found_.push_back(std::move(one));
  }

  const std::string& s_;
  size_t at_ = 0;
  int depth_ = 0, error_depth_ = 0;  // `error_depth_`: depth of the parentheses of an Error; 0 outside
  size_t error_text_ = 0;
  std::vector<Literal> found_;
};

/// Whether `text` contains `phrase` at word boundaries.
bool says(const std::string& text, std::string_view phrase) {
  for (size_t at = text.find(phrase); at != std::string::npos; at = text.find(phrase, at + 1)) {
    const size_t end = at + phrase.size();
    if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

struct Word {
  const char* phrase;
  const char* better;
};

/// Words to avoid: politeness, blame, idioms, and words for people where a program, thread or rank acts.
constexpr Word kWords[] = {
    {"please", "state what to do"},
    {"sorry", "state the error"},
    {"oops", "state the error"},
    {"unfortunately", "state the error"},
    {"illegal", "state what is expected"},
    {"should", "expected, must"},
    {"got", "found, has"},
    {"wanted", "expected, required"},
    {"wants", "expects, requires"},
    {"goes on", "continues"},
    {"go on", "continue"},
    {"left out", "omitted, skipped"},
    {"beside", "next to, in addition to"},
    {"behind", "after"},
    {"meanwhile", "concurrently, until then"},
    {"all the same", "anyway"},
    {"anyhow", "anyway"},
    {"cut off", "truncated"},
    {"nobody", "name the user or thread"},
    {"somebody", "name the user or thread"},
    {"whoever", "name the user or thread"},
    {"told", "notified"},
    {"tells", "states"},
    {"hears", "receives"},
    {"heard", "received"},
    {"for people", "readable"},
    {"not there yet", "not supported yet"},
    {"is not there", "does not exist"},
    {"matrix product", "GEMM"},
    {"matrix products", "GEMMs"},
};

/// Lines of file formats, which must not change.
constexpr std::string_view kFixedTexts[] = {"<!doctype html", "huge_ctr algorithms of matrix products 1\\n"};

/// Whether `word` is an abbreviation (MASTER_PORT, GPU, NCCL) or the name of a data format.
bool is_name(const std::string& word) {
  constexpr std::string_view kFormats[] = {"Norm", "Raw", "Parquet", "Csv", "Criteo"};
  return (word.size() > 1 && std::isupper(static_cast<unsigned char>(word[1])) != 0) ||
         std::find(std::begin(kFormats), std::end(kFormats), word) != std::end(kFormats);
}

/// Returns the style violation of a message; empty if there is none.
std::string fault_of(const Literal& one) {
  const std::string& text = one.text;
  if (std::find(std::begin(kFixedTexts), std::end(kFixedTexts), text) != std::end(kFixedTexts)) return "";
  if (text.find(' ') != std::string::npos) {
    std::string lower = text;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    for (const Word& word : kWords)
      if (says(lower, word.phrase)) return std::string("says \"") + word.phrase + "\"; better: " + word.better;
    if (says(lower, "invalid") && !says(lower, "expected") && !says(lower, "with"))
      return "says \"invalid\"; better: what is expected, and what was found";
  }
  if (text.find("! ") != std::string::npos || (text.size() > 2 && text.ends_with('!')))
    return "has an exclamation mark";
  if (one.begins_error && !text.empty() && std::isupper(static_cast<unsigned char>(text[0])) != 0 &&
      !is_name(text.substr(0, text.find_first_of(" :,("))))
    return "is an error that starts with a capital: \"error (kind): \" precedes it";
  if (one.ends_error && (text.ends_with('.') || text.ends_with('!')))
    return "is an error that ends with a full stop: context may follow it";
  return "";
}

std::vector<std::string> faults_of(const std::string& file, const std::string& source) {
  std::vector<std::string> faults;
  for (const Literal& one : Scanner(source).literals())
    if (const std::string fault = fault_of(one); !fault.empty())
      faults.push_back(file + ":" + std::to_string(one.line) + ": \"" + one.text + "\" " + fault);
  return faults;
}

TEST(MessageStyle, IsTheSameInEverySource) {
  size_t files = 0;
  for (const char* folder : {"src", "tools", "include"})
    for (const auto& entry : fs::recursive_directory_iterator(hctr::test::source_dir() / folder)) {
      const std::string ending = entry.path().extension().string();
      if (ending != ".h" && ending != ".cc" && ending != ".cu" && ending != ".cuh") continue;
      files += 1;
      std::ifstream file(entry.path());
      std::stringstream text;
      text << file.rdbuf();
      for (const std::string& fault : faults_of(fs::relative(entry.path(), hctr::test::source_dir()), text.str()))
        ADD_FAILURE() << fault;
    }
  EXPECT_GT(files, 500u) << "sources were found";
}

TEST(MessageStyle, ABadMessageIsSeen) {
  for (const char* line :
       {R"(throw Error(Kind::data, "Batch has no keys");)",
        R"(throw Error(Kind::data, cat("the batch has ", n, " keys."));)",
        R"(throw Error(Kind::io, cat("'", path, "' is not there"));)", R"(log.warn("rank 1 goes on without rank 2");)",
        R"(problems.error(at, cat("invalid value ", value));)", R"(log.info("done!");)",
        R"(HCTR_EXPECT(rows > 0, "rows should be positive");)",
        "log.info(\"a line that is split \"\n         \"right where it goes \" // here\n  \"on\");",
        R"(const char c = '"'; log.info("please wait");)"})
    EXPECT_EQ(faults_of("a.cc", line).size(), 1u) << line;
  const std::string two = R"(throw Error(Kind::data, "Batch is empty."); log.info("nobody reads it");)";
  EXPECT_EQ(faults_of("a.cc", two).size(), 2u);
}

TEST(MessageStyle, CodeCommentsAndGoodMessagesAreFine) {
  for (const char* line :
       {R"(throw Error(Kind::data, cat("'", path, "' has ", n, " bytes, expected ", m));)",
        R"(throw Error(Kind::usage, "GPU 3 does not exist: expected at most 2");)",
        R"(throw Error(Kind::comm, cat("process ", p, " ended"));)", R"(log.info("Saved the model.");)",
        R"(int x = 1'000; // please, "nobody" goes on)", "/* \"sorry, no\" */ int y;", R"(find("got");)",
        R"x(const char* text = R"(please read it!)";)x", R"(if (!a && b != c) log.info("a != b");)"})
    EXPECT_EQ(faults_of("a.cc", line), std::vector<std::string>()) << line;
}

}  // namespace
