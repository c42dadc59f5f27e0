// What is known of a task of a small model; the program is its own worker (see tune_test.cc).
#include "hone/explain.h"

#include <gtest/gtest.h>

#include "hone/base/file.h"
#include "hone/base/hash.h"
#include "hone/commands/tune.h"
#include "hone/db/registry.h"
#include "hone/graph/test_model.h"
#include "hone/machine/quick_machine_testing.h"

namespace hone {
namespace {

using Measure = ExplainOptions::Measure;
using Schedule = ExplainOptions::Schedule;

struct Fixture {
  TempDir folder = std::move(TempDir::create()).value();
  std::string model = folder.file("model.onnx"), db = folder.file("hone.db");
  machine::QuickMachine machine;
  JobHooks hooks{.machine = &machine};
  ExplainOptions options;
  Fixture() {
    options.compile.advanced.hooks = &hooks;
    Rng rng(5);
    graph::TestModel network;
    network.input("x", {24, 32}).constant("w", graph::random_tensor({32, 48}, rng));
    network.node("MatMul", {"x", "w"}, {"a"}).node("Relu", {"a"}, {"y"}).output("y");
    EXPECT_TRUE(write_file_atomic(model, network.bytes()).ok());
    options.compile.records.use_db = false;
    options.compile.target.threads = 1;
    options.task = "1";
    options.measure = Measure::kNever;
  }
  Explanation explain_it() { return explain_path(model); }
  Explanation explain_path(const std::string& path) {
    Result<Explanation> explanation = explain(path, options);
    EXPECT_TRUE(explanation.ok()) << explanation.status().message();
    return explanation.ok() ? *std::move(explanation) : Explanation();
  }
  Status refused() { return explain(model, options).status(); }
  // Tunes the model for a moment, so that the database knows it.
  void tune_it() {
    options.compile.records.use_db = true;
    options.compile.records.db = db;
    TuneOptions tuning;
    tuning.compile = options.compile;
    tuning.search.budget_seconds = 30;
    tuning.search.max_trials = 3;
    EXPECT_TRUE(tune(model, folder.file("model.so"), tuning).ok());
  }
};

TEST(explain, from_the_steps_to_the_machine_code) {
  Fixture f;
  f.options.compile.target.device = "x86-64-avx512";  // the same on every machine
  f.options.schedule = Schedule::kDefault;
  const Explanation e = f.explain_it();
  EXPECT_EQ(e.task.kernel_class, "gemm+relu");
  EXPECT_EQ(e.task.source, "default");
  EXPECT_EQ(e.task.flops, 24 * 48 * (2 * 32 + 1));
  EXPECT_EQ(e.task.least_flops, e.task.flops);
  EXPECT_EQ(e.task.bytes, 4 * (24 * 32 + 32 * 48 + 24 * 48));
  EXPECT_NE(e.program.find("parallel"), std::string::npos) << e.program;
  ASSERT_EQ(e.loops.size(), 1U);
  EXPECT_GT(e.loops[0].mix.fma, 4);
  EXPECT_EQ(e.loops[0].vector_bits, 512);
  EXPECT_GT(e.text_bytes, e.loops[0].bytes);
  EXPECT_GT(e.registers_needed, 4);
  EXPECT_GT(e.task.predicted_seconds, 0);
  EXPECT_GT(e.compute_seconds, 0);
  ASSERT_FALSE(e.level_seconds.empty());
  ASSERT_FALSE(e.stages.empty());
  EXPECT_FALSE(e.measured.has_value());
}

TEST(explain, the_task_is_a_number_or_a_key) {
  Fixture f;
  const Explanation by_number = f.explain_it();
  f.options.task = hash_hex(by_number.key);
  EXPECT_EQ(f.explain_it().program, by_number.program);
  for (const char* bad : {"0", "2", "-1", "matmul", ""}) {
    f.options.task = bad;
    EXPECT_EQ(f.refused().code(), Code::kNotFound);
    EXPECT_EQ(f.refused().message(),
              std::string("found task '") + bad + "', expected 1 to 1 or a key of the model");
  }
}

TEST(explain, given_steps_come_back) {
  Fixture f;
  f.options.schedule = Schedule::kDefault;
  const Explanation plain = f.explain_it();
  f.options.schedule = Schedule::kGiven;
  f.options.steps = plain.task.steps;
  std::replace(f.options.steps.begin(), f.options.steps.end(), '\n', ';');
  const Explanation given = f.explain_it();
  EXPECT_EQ(given.task.source, "given");
  EXPECT_EQ(given.task.steps, plain.task.steps);
  EXPECT_EQ(given.program, plain.program);
  f.options.steps = "vectorize(nothing, n)";
  EXPECT_NE(f.refused().message().find("nothing"), std::string::npos) << f.refused().message();
  f.options.steps = "dance(relu)";
  EXPECT_NE(f.refused().message().find("dance"), std::string::npos) << f.refused().message();
}

TEST(explain, a_schedule_without_a_time_is_run) {
  Fixture f;
  f.options.measure = Measure::kIfUnknown;
  const Explanation e = f.explain_it();
  ASSERT_TRUE(e.measured.has_value());
  EXPECT_TRUE(e.measured->now);
  EXPECT_EQ(e.measured->failure, "");
  EXPECT_TRUE(e.measured->verified);
  EXPECT_GT(e.measured->samples, 0);
  EXPECT_GT(e.measured->seconds, 0);
  EXPECT_LE(e.measured->low, e.measured->seconds);
  EXPECT_GE(e.measured->high, e.measured->seconds);
}

TEST(explain, a_device_that_is_not_here_is_not_run) {
  Fixture f;
  f.options.compile.target.device = "aarch64-neon";
  f.options.measure = Measure::kIfUnknown;
  EXPECT_FALSE(f.explain_it().measured.has_value());
  f.options.measure = Measure::kAlways;
  EXPECT_EQ(f.refused().code(), Code::kUnsupported);
}

TEST(explain, what_was_stored_is_not_run_again) {
  Fixture f;
  f.options.schedule = Schedule::kBest;
  EXPECT_EQ(f.refused().code(), Code::kNotFound);
  f.tune_it();
  f.options.measure = Measure::kIfUnknown;
  f.hooks.worker.executable = "/nonexistent";  // it would fail
  const Explanation e = f.explain_it();
  EXPECT_EQ(e.task.source, "stored");
  ASSERT_TRUE(e.measured.has_value());
  EXPECT_FALSE(e.measured->now);
  EXPECT_TRUE(e.measured->verified);
  EXPECT_GT(e.measured->seconds, 0);
}

TEST(explain, a_task_of_the_database_needs_no_model) {
  Fixture f;
  f.tune_it();
  const Explanation of_model = f.explain_it();
  f.options.task = hash_hex(of_model.key);
  const Explanation stored = f.explain_path("");
  EXPECT_EQ(stored.program, of_model.program);
  EXPECT_EQ(stored.task.kernel_class, of_model.task.kernel_class);
  EXPECT_EQ(stored.key, of_model.key);
  f.options.task = "0123456789abcdef";
  EXPECT_EQ(explain("", f.options).status().message(), "the database has no task 0123456789abcdef");
  f.options.task = "1";
  EXPECT_EQ(explain("", f.options).status().code(), Code::kInvalid);
  f.options.task = hash_hex(of_model.key);
  f.options.compile.records.use_db = false;
  EXPECT_EQ(explain("", f.options).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hone
