#include "hone/session/shipped_records.h"

#include <gtest/gtest.h>

#include <fstream>

#include "hone/base/file.h"
#include "hone/compute/dag_testing.h"
#include "hone/compute/dag_text.h"
#include "hone/db/registry.h"

namespace hone {
namespace {

trial::Record record(uint64_t task, const std::string& algorithm, double seconds,
                     const std::string& device = "avx2-one-2c") {
  trial::Record r;
  r.task = task;
  r.kernel_class = "conv2d+bias";
  r.task_text = "conv2d+bias data[1,9,9,8]";
  r.device = device;
  r.version = "1";
  r.threads = 1;
  r.algorithm = algorithm;
  r.steps = "vectorize out oc 8\nparallel out oh";
  r.decisions = algorithm + " out:lanes=8";
  r.times = {seconds}, r.centre = r.low = r.high = seconds;
  r.verified = true;
  r.model = "resnet";
  return r;
}

struct Fixture {
  TempDir folder = std::move(TempDir::create()).value();
  std::unique_ptr<db::Store> store = std::move(db::open_store(folder.file("hone.db"))).value();
  std::map<std::string, std::string> files(const std::vector<trial::Record>& records) {
    EXPECT_TRUE(store->add(records).ok());
    const auto files = make_shipped_files(*store);
    EXPECT_TRUE(files.ok()) << files.status().message();
    return *files;
  }
};

TEST(shipped_records, the_fastest_of_each_task_and_of_algorithms_close_to_it) {
  Fixture f;
  trial::Record wrong = record(7, "direct", 1e-6);
  wrong.verified = false;
  const auto files = f.files({record(7, "direct", 1.1e-3), record(7, "direct", 1e-3),
                              record(7, "winograd_2", 1.1e-3), record(7, "im2col", 1.3e-3), wrong,
                              record(8, "direct", 5e-3, "neon-two-8c")});
  ASSERT_EQ(files.size(), 2U);
  const auto avx2 = parse_shipped(files.at("avx2.jsonl"), "avx2.jsonl");
  ASSERT_TRUE(avx2.ok()) << avx2.status().message();
  ASSERT_EQ(avx2->size(), 2U);
  EXPECT_EQ((*avx2)[0].algorithm, "direct");
  EXPECT_EQ((*avx2)[0].centre, 1e-3);
  EXPECT_EQ((*avx2)[1].algorithm, "winograd_2");
  EXPECT_EQ(parse_shipped(files.at("neon.jsonl"), "")->size(), 1U);
  EXPECT_EQ(f.files({}), files);
}

TEST(shipped_records, come_back_as_they_were) {
  const trial::Record before = record(0xfedcba9876543210, "direct", 0.1 + 0.2);
  const auto after = parse_shipped("\n" + to_shipped_line(before) + " \n", "some");
  ASSERT_TRUE(after.ok()) << after.status().message();
  ASSERT_EQ(after->size(), 1U);
  const trial::Record& r = (*after)[0];
  EXPECT_EQ(r.task, before.task);
  EXPECT_EQ(r.kernel_class, before.kernel_class);
  EXPECT_EQ(r.task_text, before.task_text);
  EXPECT_EQ(r.device, before.device);
  EXPECT_EQ(r.threads, before.threads);
  EXPECT_EQ(r.version, before.version);
  EXPECT_EQ(r.algorithm, before.algorithm);
  EXPECT_EQ(r.steps, before.steps);
  EXPECT_EQ(r.decisions, before.decisions);
  EXPECT_EQ(r.centre, before.centre);
  EXPECT_EQ(r.model, before.model);
  EXPECT_TRUE(r.verified);
}

TEST(shipped_records, keep_of_a_task_its_class_and_shape) {
  Fixture f;
  const compute::Dag dag = compute::testing::gemm(5, 6, 7);
  trial::Record r = record(compute::task_key(dag), "direct", 1e-3);
  r.task_text = compute::to_text(dag);
  EXPECT_EQ((*parse_shipped(f.files({r}).at("avx2.jsonl"), ""))[0].task_text,
            compute::describe(dag));
}

TEST(shipped_records, of_another_instruction_set_are_used_where_there_are_no_own) {
  Fixture f;
  std::ofstream(f.folder.file("avx2.jsonl")) << to_shipped_line(record(1, "direct", 1e-3));
  std::ofstream(f.folder.file("avx512.jsonl"))
      << to_shipped_line(record(2, "direct", 1e-3)) << to_shipped_line(record(3, "direct", 1e-3));
  const auto count = [&](const char* device) {
    return shipped_records(target::find(device).value(), f.folder.path())->size();
  };
  EXPECT_EQ(count("x86-64-avx2"), 1U);
  EXPECT_EQ(count("x86-64-avx512"), 2U);
  EXPECT_EQ(count("aarch64-neon"), 3U);
  const target::Target& host = target::host();
  EXPECT_TRUE(shipped_records(host, "")->empty());
  EXPECT_TRUE(shipped_records(host, f.folder.file("nothing"))->empty());
}

TEST(shipped_records, a_broken_file_is_named) {
  Fixture f;
  const std::string good = to_shipped_line(record(1, "direct", 1e-3));
  std::ofstream(f.folder.file("avx2.jsonl")) << good << "{}\n";
  const auto records = shipped_records(target::find("x86-64-avx2").value(), f.folder.path());
  ASSERT_FALSE(records.ok());
  EXPECT_NE(records.status().message().find("avx2.jsonl line 2: field task: expected a text"),
            std::string::npos)
      << records.status().message();
  const auto refused = [&](const std::string& before, const std::string& after) {
    std::string line = good;
    line.replace(line.find(before), before.size(), after);
    return parse_shipped(line, "f").status().message();
  };
  EXPECT_EQ(refused("{", "{\"more\":1,"), "f line 1: found 12 fields, expected 11");
  EXPECT_EQ(refused("0000000000000001", "1"),
            "f line 1: field task: found '1', expected 16 hexadecimal digits");
  EXPECT_EQ(refused("\"threads\":1", "\"threads\":\"1\""),
            "f line 1: field threads: expected an integer");
  EXPECT_NE(refused("\"seconds\":0.001", "\"seconds\":-1"), "");
  EXPECT_EQ(refused("{", "["), "f line 1: expected a JSON object");
}

}  // namespace
}  // namespace hone
