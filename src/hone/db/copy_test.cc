#include "hone/db/copy.h"

#include <fstream>

#include "hone/base/file.h"
#include "hone/db/json_lines.h"
#include "hone/db/store_test_support.h"

namespace hone::db {
namespace {

std::unique_ptr<Store> open(const std::string& path) {
  auto store = open_store(path);
  EXPECT_TRUE(store.ok()) << store.status().message();
  return std::move(store).value();
}

std::vector<Record> all(Store& store) {
  Filter filter;
  filter.with_task_text = true;
  auto records = store.query(filter);
  EXPECT_TRUE(records.ok());
  return std::move(records).value();
}

Record odd_record() {
  Record r = sample_record(0xffffffffffffffffULL, 1.0 / 3e5);
  r.message = "tab\t, \"quotes\" and\nlines";
  r.times = {1e-300, 0.1 + 0.2, 1.7976931348623157e308};
  r.outcome = measure::Outcome::kWrongAnswer;
  r.verified = false;
  r.unix_time = 1'800'000'000'000;
  return r;
}

TEST(json_lines, a_record_survives_the_way_there_and_back) {
  for (const Record& record : {sample_record(1, 1e-3), odd_record()}) {
    const std::string line = to_json_line(record);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const Result<Record> back = parse_json_line(line);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(to_json_line(*back), line);
    EXPECT_EQ(back->times, record.times);
    EXPECT_EQ(back->seed, record.seed);
    EXPECT_EQ(identity(*back), identity(record));
  }
}

TEST(json_lines, what_is_wrong_with_a_line_is_said) {
  const std::string good = to_json_line(sample_record(1, 1e-3));
  const auto message = [&good](const std::string& from, const std::string& to) {
    std::string line = good;
    line.replace(line.find(from), from.size(), to);
    const Result<Record> record = parse_json_line(line);
    return record.ok() ? "parsed" : record.status().message();
  };
  EXPECT_EQ(message("\"threads\":2", "\"threads\":\"2\""), "field threads: expected an integer");
  EXPECT_EQ(message("\"threads\":2", "\"threads\":99999999999"),
            "field threads: expected a smaller integer");
  EXPECT_EQ(message("\"threads\"", "\"thread\""), "field threads: expected an integer");
  EXPECT_EQ(message("\"threads\":2", "\"threads\":0"),
            "a record has 0 threads, expected at least 1");
  EXPECT_EQ(message("\"task\":\"0", "\"task\":\"x"), "field task: expected 16 hexadecimal digits");
  EXPECT_EQ(message("\"ok\"", "\"fine\""), "field outcome: expected an outcome such as ok");
  EXPECT_EQ(message("{", "{\"more\":1,"), "found 21 fields, expected 20");
  EXPECT_EQ(message("}", ""), "expected a JSON object");
}

TEST(copy, export_and_import_keep_every_record_once) {
  const TestFolder folder;
  const auto from = open(folder.file("from.db")), to = open(folder.file("to.db"));
  std::vector<Record> records = {sample_record(1, 1e-3), sample_record(1, 2e-3), odd_record()};
  ASSERT_TRUE(from->add(records).ok());
  const std::string file = folder.file("trials.jsonl");
  const Result<int64_t> lines = export_json_lines(*from, {}, file);
  ASSERT_TRUE(lines.ok()) << lines.status().message();
  EXPECT_EQ(*lines, 3);
  for (const int64_t added : {3, 0}) {  // the second time all are known
    const Result<Copied> copied = import_json_lines(file, *to);
    ASSERT_TRUE(copied.ok()) << copied.status().message();
    EXPECT_EQ(copied->added, added);
    EXPECT_EQ(copied->known, 3 - added);
  }
  const std::vector<Record> there = all(*to);
  ASSERT_EQ(there.size(), 3U);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(to_json_line(there[i]), to_json_line(records[i]));
}

TEST(copy, a_bad_line_is_named_and_nothing_is_imported) {
  const TestFolder folder;
  const auto to = open(folder.file("to.db"));
  const std::string file = folder.file("trials.jsonl");
  std::ofstream(file) << to_json_line(sample_record(1, 1e-3)) << "\n\n{\"task\": 1}\n";
  const Result<Copied> copied = import_json_lines(file, *to);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.status().message(), file + " line 3: field task: expected a text");
  EXPECT_TRUE(all(*to).empty());
  EXPECT_EQ(import_json_lines(folder.file("no"), *to).status().code(), Code::kNotFound);
}

TEST(copy, merging_adds_what_is_new) {
  const TestFolder folder;
  const auto a = open(folder.file("a.db")), b = open(folder.file("b.db"));
  ASSERT_TRUE(a->add(std::vector{sample_record(1, 1e-3), sample_record(2, 1e-3)}).ok());
  ASSERT_TRUE(b->add(std::vector{sample_record(2, 1e-3), sample_record(3, 1e-3)}).ok());
  const Result<Copied> copied = copy_records(*b, *a);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->added, 1);
  EXPECT_EQ(copied->known, 1);
  EXPECT_EQ(all(*a).size(), 3U);
  EXPECT_EQ(all(*a)[2].task_text, "task text");
}

TEST(copy, an_export_that_fails_leaves_no_file) {
  const TestFolder folder;
  const auto from = open(folder.file("from.db"));
  ASSERT_TRUE(from->add(std::vector{sample_record(1, 1e-3)}).ok());
  EXPECT_FALSE(export_json_lines(*from, {}, folder.file("no/trials.jsonl")).ok());
  EXPECT_FALSE(std::filesystem::exists(folder.file("no")));
}

TEST(store, removes_trials_and_the_tasks_without_any) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  const auto ids = store->add(
      std::vector{sample_record(1, 1e-3), sample_record(1, 2e-3), sample_record(2, 1e-3)});
  ASSERT_TRUE(ids.ok());
  ASSERT_TRUE(store->remove(std::vector{(*ids)[0], (*ids)[2]}).ok());
  const std::vector<Record> left = all(*store);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].id, (*ids)[1]);
  EXPECT_TRUE(store->best(best_of(2))->empty());
  // Its number is not given to another trial.
  EXPECT_EQ(store->add(std::vector{sample_record(2, 1e-3)})->front(), 4);
  const Result<std::vector<std::string>> problems = store->verify();
  ASSERT_TRUE(problems.ok());
  EXPECT_TRUE(problems->empty());
}

}  // namespace
}  // namespace hone::db
