#include "hone/ir/passes/pipeline.h"

#include <gtest/gtest.h>

#include "hone/ir/pass_testing.h"

namespace hone::ir {
namespace {

constexpr const char* kRows = R"(
  for m in 0..8 { vectorized n in 0..8 { y[m, n] = x[m, n] * 2.0 } }
  for m in 0..8 { vectorized n in 0..8 { y[m, n] = y[m, n] + 1.0 } })";

Program rows() {
  return testing::parsed_block("input x: f32[8, 8]\n output y: f32[8, 8]\n", kRows);
}

// The names of the passes that changed the program, in order.
std::vector<std::string> changes(const PipelineOptions& options, std::span<const Pass> passes) {
  std::vector<std::string> names;
  PipelineOptions traced = options;
  traced.trace = [&](const PassTrace& trace) {
    EXPECT_EQ(trace.changed, print(trace.before) != print(trace.after)) << trace.pass.name;
    EXPECT_GE(trace.seconds, 0);
    if (trace.changed) names.emplace_back(trace.pass.name);
  };
  const Program before = rows();
  const Result<Program> after = run_pipeline(passes, before, traced);
  EXPECT_TRUE(after.ok()) << after.status().message();
  if (after.ok()) testing::expect_same_results(before, *after);
  return names;
}

TEST(pipeline, the_trace_tells_which_passes_changed_the_program) {
  // The loop that runs once goes first.
  EXPECT_EQ(changes({}, cpu_pipeline()), (std::vector<std::string>{"simplify", "fuse_loops"}));
}

TEST(pipeline, a_pass_is_skipped_wherever_it_stands) {
  EXPECT_EQ(changes({.skip = {"fuse_loops"}}, cpu_pipeline()),
            std::vector<std::string>{"simplify"});
}

TEST(pipeline, passes_get_the_parameters) {
  const Pass names_itself[] = {{"name", "", [](Program p, const PassParameters& parameters) {
                                  p.name = std::to_string(parameters.prefetch_blocks.max_block);
                                  return p;
                                }}};
  const PassParameters parameters = {.prefetch_blocks = {.max_block = 7}};
  EXPECT_EQ(run_pipeline(names_itself, rows(), {.parameters = parameters})->name, "7");
}

TEST(pipeline, a_pass_that_breaks_the_program_is_named) {
  const Pass breaks[] = {cpu_pipeline()[0],
                         {"unbind", "", [](Program p, const PassParameters&) {
                            p.phases[0].body =
                                p.phases[0].body->body[0]->body[0];  // without its loop
                            return p;
                          }}};
  const Status status = run_pipeline(breaks, rows()).status();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_EQ(status.message().find("after the pass unbind: phase 0: "), 0U) << status.message();
  EXPECT_TRUE(run_pipeline(breaks, rows(), {.verify = false}).ok());
}

}  // namespace
}  // namespace hone::ir
