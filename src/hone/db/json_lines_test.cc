#include "hone/db/json_lines.h"

#include <gtest/gtest.h>

#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

TEST(json_lines, a_record_reads_back_the_same) {
  Record r = sample_record(0x8000000000000001ULL, 1.0 / 3e3);
  r.steps = "split(a, b, [1, 2])\n\"quoted\" \\ \xc3\xa4";
  const std::string line = to_json_line(r);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Result<Record> back = parse_json_line(line);
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(to_json_line(*back), line);
  EXPECT_EQ(back->task, r.task);
  EXPECT_EQ(back->seed, r.seed);
  EXPECT_EQ(back->steps, r.steps);
  EXPECT_EQ(back->times, r.times);
  EXPECT_EQ(back->centre, r.centre);
  EXPECT_EQ(back->model, r.model);
  EXPECT_TRUE(back->verified);
}

TEST(json_lines, what_is_wrong_is_named_with_its_line) {
  const std::string good = to_json_line(sample_record(1, 1e-3));
  const auto message = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    const size_t at = bad.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    bad.replace(at, from.size(), to);
    const auto records = parse_json_lines(good + "\n\n" + bad + "\n", "file.jsonl");
    EXPECT_FALSE(records.ok()) << bad;
    return records.ok() ? std::string() : std::string(records.status().message());
  };
  for (const auto& [from, to, expected] :
       {std::tuple{"\"threads\":2", "\"threads\":\"2\"", "'threads'"},
        std::tuple{"\"kernel\"", "\"kernal\"", "'kernel'"},
        std::tuple{"\"outcome\":\"ok\"", "\"outcome\":\"odd\"", "'odd'"},
        std::tuple{"\"task\":\"", "\"task\":\"x", "'task'"},
        std::tuple{"{", "{\"more\":1,", "unknown"},
        std::tuple{"{", "", "expected a JSON object"}}) {
    const std::string text = message(from, to);
    EXPECT_NE(text.find("file.jsonl line 3"), std::string::npos) << text;
    EXPECT_NE(text.find(expected), std::string::npos) << text;
  }
  EXPECT_EQ(parse_json_lines(good + "\n" + good, "f")->size(), 2U);
  EXPECT_TRUE(parse_json_lines("", "f")->empty());
}

}  // namespace
}  // namespace hone::db
