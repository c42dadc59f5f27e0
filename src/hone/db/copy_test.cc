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

std::vector<trial::Record> all(Store& store) {
  Filter filter;
  filter.with_task_text = true;
  filter.parts = Filter::Parts::kAll;
  auto records = store.query(filter);
  EXPECT_TRUE(records.ok());
  return std::move(records).value();
}

TEST(copy, export_and_import_keep_every_record_once) {
  const TestFolder folder;
  const auto from = open(folder.file("from.db")), to = open(folder.file("to.db"));
  std::vector<trial::Record> records = {sample_record(1, 1e-3), sample_record(1, 2e-3),
                                        sample_part(1, 1e-6), odd_record()};
  ASSERT_TRUE(from->add(records).ok());
  const std::string file = folder.file("trials.jsonl");
  const Result<int64_t> lines = export_json_lines(*from, {}, file);
  ASSERT_TRUE(lines.ok()) << lines.status().message();
  EXPECT_EQ(*lines, 4);
  for (const int64_t added : {4, 0}) {  // the second time all are known
    const Result<CopiedTrials> copied = import_json_lines(file, *to);
    ASSERT_TRUE(copied.ok()) << copied.status().message();
    EXPECT_EQ(copied->added, added);
    EXPECT_EQ(copied->known, 4 - added);
  }
  const std::vector<trial::Record> there = all(*to);
  ASSERT_EQ(there.size(), 4U);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(to_json_line(there[i]), to_json_line(records[i]));
}

TEST(copy, records_of_memory_are_added_once) {
  const TestFolder folder;
  const auto to = open(folder.file("to.db"));
  const std::vector<trial::Record> records = {sample_record(1, 1e-3), odd_record(), odd_record()};
  const Result<CopiedTrials> copied = add_records(records, *to);
  ASSERT_TRUE(copied.ok()) << copied.status().message();
  EXPECT_EQ(copied->added, 2);
  EXPECT_EQ(copied->known, 1);
  EXPECT_EQ(to_json_line(all(*to).back()), to_json_line(odd_record()));
}

TEST(copy, a_bad_line_is_named_and_nothing_is_imported) {
  const TestFolder folder;
  const auto to = open(folder.file("to.db"));
  const std::string file = folder.file("trials.jsonl");
  std::ofstream(file) << to_json_line(sample_record(1, 1e-3)) << "\n\n{\"task\": 1}\n";
  const Result<CopiedTrials> copied = import_json_lines(file, *to);
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.status().message(),
            file + " line 3: field 'task': expected 16 hexadecimal digits");
  EXPECT_TRUE(all(*to).empty());
  EXPECT_EQ(import_json_lines(folder.file("no"), *to).status().code(), Code::kNotFound);
  EXPECT_EQ(import_json_lines("/dev/null", *to).status().message(),
            "cannot import /dev/null: it is not a file");
}

TEST(copy, merging_adds_what_is_new) {
  const TestFolder folder;
  const auto a = open(folder.file("a.db")), b = open(folder.file("b.db"));
  ASSERT_TRUE(a->add(std::vector{sample_record(1, 1e-3), sample_record(2, 1e-3)}).ok());
  ASSERT_TRUE(b->add(std::vector{sample_record(2, 1e-3), sample_record(3, 1e-3)}).ok());
  const Result<CopiedTrials> copied = copy_records(*b, *a);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->added, 1);
  EXPECT_EQ(copied->known, 1);
  EXPECT_EQ(all(*a).size(), 3U);
  EXPECT_EQ(all(*a)[2].task_text, "task text");
}

TEST(copy, what_another_store_found_to_be_wrong_is_wrong_here_too) {
  const TestFolder folder;
  const auto a = open(folder.file("a.db")), b = open(folder.file("b.db"));
  const std::vector<trial::Record> both = {sample_record(1, 1e-3), sample_record(1, 2e-3)};
  const auto in_a = a->add(both), in_b = b->add(both);
  ASSERT_TRUE(in_a.ok() && in_b.ok());
  ASSERT_TRUE(b->set_verified((*in_b)[0], trial::Outcome::kWrongAnswer, "element 3").ok());
  for (int round = 0; round < 2; ++round) {
    const Result<CopiedTrials> copied = copy_records(*b, *a);
    ASSERT_TRUE(copied.ok()) << copied.status().message();
    EXPECT_EQ(copied->added, 0);
    EXPECT_EQ(copied->known, 2);
    EXPECT_EQ(a->best(best_of(1))->front().id, (*in_a)[1]);
    EXPECT_EQ(all(*a)[0].message, "element 3");
  }
  // ... and a store that thinks it is right changes nothing where it was found wrong.
  const auto c = open(folder.file("c.db"));
  ASSERT_TRUE(c->add(both).ok());
  ASSERT_TRUE(copy_records(*c, *b).ok());
  EXPECT_EQ(b->best(best_of(1, 9))->size(), 1U);
}

// The file was put together from several exports.
TEST(copy, of_a_trial_that_comes_twice_the_failure_stays) {
  const TestFolder folder;
  trial::Record wrong = sample_record(1, 1e-3);
  wrong.outcome = trial::Outcome::kWrongAnswer;
  wrong.verified = wrong.crowned = false;
  wrong.message = "element 3";
  for (const int others : {1, 1500}) {  // in one batch, and in two
    SCOPED_TRACE(others);
    std::vector<trial::Record> records = {sample_record(1, 1e-3)};
    for (int i = 0; i < others; ++i) records.push_back(sample_record(1, 2e-3 + 1e-6 * i));
    records.push_back(wrong);
    records.push_back(records.front());
    const auto to = open(folder.file(fmt::format("to{}.db", others)));
    const Result<CopiedTrials> copied = add_records(records, *to);
    ASSERT_TRUE(copied.ok()) << copied.status().message();
    EXPECT_EQ(copied->added, 1 + others);
    EXPECT_EQ(copied->known, 2);
    const std::vector<trial::Record> there = all(*to);
    EXPECT_EQ(to_json_line(there[0]), to_json_line(wrong));
    EXPECT_EQ(to->best(best_of(1))->front().id, there[1].id);
  }
}

TEST(copy, an_export_that_fails_leaves_no_file) {
  const TestFolder folder;
  const auto from = open(folder.file("from.db"));
  ASSERT_TRUE(from->add(std::vector{sample_record(1, 1e-3)}).ok());
  EXPECT_EQ(export_json_lines(*from, {}, folder.file("no/trials.jsonl")).status().message(),
            "cannot write '" + folder.file("no/trials.jsonl") + "': no such file or directory");
  EXPECT_FALSE(std::filesystem::exists(folder.file("no")));
}

TEST(copy, an_export_replaces_what_a_link_leads_to_and_writes_into_devices) {
  const TestFolder folder;
  const auto from = open(folder.file("from.db"));
  ASSERT_TRUE(from->add(std::vector{sample_record(1, 1e-3)}).ok());
  std::ofstream(folder.file("old.jsonl")) << "old";
  std::filesystem::create_symlink("old.jsonl", folder.file("link.jsonl"));
  ASSERT_TRUE(export_json_lines(*from, {}, folder.file("link.jsonl")).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link.jsonl")));
  EXPECT_EQ(*read_file(folder.file("old.jsonl")), to_json_line(all(*from)[0]) + "\n");
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    files += entry.path().filename().string().find(".hone-") != std::string::npos;
  EXPECT_EQ(files, 0U);
  ASSERT_TRUE(export_json_lines(*from, {}, "/dev/null").ok());
  EXPECT_FALSE(std::filesystem::is_regular_file("/dev/null"));
  const Result<int64_t> full = export_json_lines(*from, {}, "/dev/full");
  EXPECT_EQ(full.status().message(), "cannot write '/dev/full': no space left on device");
}

TEST(store, removes_trials_and_the_tasks_without_any) {
  const TestFolder folder;
  const auto store = open(folder.file("a.db"));
  const auto ids = store->add(
      std::vector{sample_record(1, 1e-3), sample_record(1, 2e-3), sample_record(2, 1e-3)});
  ASSERT_TRUE(ids.ok());
  ASSERT_TRUE(store->remove(std::vector{(*ids)[0], (*ids)[2]}).ok());
  const std::vector<trial::Record> left = all(*store);
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
