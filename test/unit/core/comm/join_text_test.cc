// Parses texts from other processes, which may contain arbitrary bytes.
#include "core/comm/join_text.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "core/comm/job_secret.h"
#include "core/comm/rank_list.h"
#include "support/message_of.h"

namespace hctr::test {
namespace {

TEST(JoinText, AGreetingIsReadAsItWasSaid) {
  const auto same = greeting_from(text_of(Greeting{3, 8, 40000, "host 7\n", "0.1.0 (1a2b3c4)"}));
  ASSERT_TRUE(same);
  EXPECT_EQ(same->process, 3);
  EXPECT_EQ(same->processes, 8);
  EXPECT_EQ(same->port, 40000);
  EXPECT_EQ(same->host, "host_7_");
  EXPECT_EQ(same->version, "0.1.0 (1a2b3c4)");
}

TEST(JoinText, ANumberIsReadWhole) {
  EXPECT_EQ(whole_number("0", 0, 9), 0);
  EXPECT_EQ(whole_number("65535", 0, 65535), 65535);
  for (const char* text :
       {"", " 1", "1 ", "+1", "-1", "1x", "x", "0x1", "1.0", "65536", "4294967297", "99999999999999999999999"})
    EXPECT_FALSE(whole_number(text, 0, 65535)) << text;
}

TEST(JoinText, ATableIsReadAsItWasSaid) {
  const auto same = table_from(text_of({{0, 0, "10.0.0.1", "a"}, {2, 5000, "fe80::1%eth0", "unknown host"}}), 2, 3);
  ASSERT_EQ(same.size(), 2u);
  EXPECT_EQ(same[1].launched, 2);
  EXPECT_EQ(same[1].port, 5000);
  EXPECT_EQ(same[1].address, "fe80::1%eth0");
  EXPECT_EQ(same[1].host, "unknown_host");
}

TEST(JoinText, ATableNamesTheLineThatIsWrong) {
  const auto why = [](const std::string& text) { return message_of(Kind::comm, [&] { table_from(text, 1, 4); }); };
  const std::string first = "members\n0 0 a a\n";
  EXPECT_EQ(why("members"), "the table of processes cannot be read: line 2: expected process 0");
  EXPECT_NE(why("nothing").find("line 1: expected the title"), std::string::npos);
  EXPECT_NE(why(first).find("line 3: expected process 1"), std::string::npos);
  EXPECT_NE(why("members\n1 5 a a\n").find("line 2: expected a process number"), std::string::npos);
  EXPECT_NE(why(first + "1 5 a a\n1 5 a a").find("line 4: expected a process number in ascending order"),
            std::string::npos);
  EXPECT_NE(why(first + "4 5 a a").find("line 3: expected a process number"), std::string::npos);
  EXPECT_NE(why(first + "1 65536 a a").find("line 3: expected a port"), std::string::npos);
  EXPECT_NE(why(first + "1 0 a a").find("line 3: expected a port"), std::string::npos);
  EXPECT_NE(why(first + "1 5 a").find("line 3: expected an address and a host"), std::string::npos);
  EXPECT_NE(why(first + "1 5 a b c").find("line 3: expected an address and a host"), std::string::npos);
  EXPECT_NE(why(first + "1 5 a \x1b[31m").find("line 3: expected an address and a host"), std::string::npos);
}

TEST(JoinText, ASecretIsReadAsItWasSaid) {
  const std::string secret = make_job_secret();
  EXPECT_EQ(secret_from(text_of_secret(secret)), secret);
  EXPECT_NE(make_job_secret(), secret);
  for (const std::string& text :
       {std::string(), secret, std::string("secret"), cat("secret ", secret, "a"), cat("secret  ", secret),
        cat("secret ", std::string(64, 'x')), cat("secret ", secret.substr(1))})
    EXPECT_FALSE(secret_from(text)) << text;
}

TEST(JoinText, NobodyEndsARunThatIsNotOverWithSuccess) {
  for (const char* text : {"", "0", "00", "x", "-1", "1x", "256", "4294967296", " 5", "75"})
    EXPECT_EQ(exit_code_from(text), exit_code(Kind::comm)) << text;
  for (const Kind kind :
       {Kind::usage, Kind::config, Kind::data, Kind::io, Kind::device, Kind::comm, Kind::bug, Kind::interrupted})
    EXPECT_EQ(exit_code_from(std::to_string(exit_code(kind))), exit_code(kind));
}

TEST(RankList, NumbersOfRanksThatNoProcessHasAreNamed) {
  const std::vector<std::string> hosts = {"a", "b", "c"};
  check_rank_counts({8, 8, 8}, hosts);
  for (const int wrong : {0, -1, INT32_MIN, INT32_MAX, 65536})
    EXPECT_NE(message_of(Kind::comm, [&] { check_rank_counts({1, wrong, 1}, hosts); })
                  .find(cat("process 1 on b reports ", wrong, " ranks")),
              std::string::npos);
}

TEST(RankList, OfMoreThanAReaderReadsIsShort) {
  std::set<int> many;
  for (int i = 0; i < 60000; ++i) many.insert(i);
  const std::string list = process_list(many);
  EXPECT_TRUE(list.starts_with("processes 0, 1, 2, ")) << list;
  EXPECT_TRUE(list.ends_with(", 31 and 59968 more")) << list;
}

}  // namespace
}  // namespace hctr::test
