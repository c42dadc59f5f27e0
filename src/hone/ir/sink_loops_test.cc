#include "hone/ir/sink_loops.h"

#include <gtest/gtest.h>

#include "hone/ir/pass_testing.h"
#include "hone/ir/prefetch_testing.h"

namespace hone::ir {
namespace {

// The program with the loop `i` inside the loops of its body; it computes the same.
Program sunk(const std::string& body) {
  const std::string text = R"(program columns {
  input x: f32[5, 6]
  input ends: i64[6]
  output y: f32[5, 6]
  phase {
    for i in 0..6 {
)" + body + "}\n  }\n}\n";
  const Program before = testing::parsed(text);
  const Stmt& loop = before.phases[0].body;
  Program after = before;
  after.phases[0].body =
      make_block(sink_loops(loop->body, {{loop->var, 6}}, [&](std::vector<Stmt> together) {
        return std::vector{with_body(*loop, std::move(together))};
      }));
  testing::expect_valid(after);
  std::vector<Tensor> one = random_arguments(before, 3), two = random_arguments(before, 3);
  for (std::vector<Tensor>* args : {&one, &two}) {
    for (int64_t i = 0; i < 6; ++i) (*args)[1].set(i, static_cast<double>(i % 6));
  }
  EXPECT_TRUE(run(before, one).ok());
  EXPECT_TRUE(run(after, two).ok());
  for (int64_t i = 0; i < one[2].size(); ++i) {
    if (std::isnan(one[2].at(i))) continue;
    EXPECT_EQ(one[2].at(i), two[2].at(i)) << print(after);
  }
  return after;
}

TEST(sink_loops, what_a_point_keeps_gets_an_element_for_each) {
  const Program after = sunk(R"(
    alloc stack s: f32[1] {
      s[0] = 0.0
      for k in 0..5 {
        s[0] = s[0] + x[k, i]
        y[k, i] = s[0]
      }
    })");
  const Stmt& alloc = after.phases[0].body;
  ASSERT_EQ(alloc->kind, StmtKind::kAlloc);
  EXPECT_EQ(alloc->buffer->shape, (std::vector<int64_t>{1, 6}));
  ASSERT_EQ(alloc->body.size(), 2U);
  const Stmt& steps = alloc->body[1];
  EXPECT_EQ(steps->var->name, "k");
  ASSERT_EQ(steps->body.size(), 1U) << "one loop around both stores";
  EXPECT_EQ(steps->body[0]->body.size(), 2U);
}

TEST(sink_loops, loops_whose_bounds_depend_on_the_point_stay_inside) {
  for (const char* bound : {"i", "ends[i]"}) {
    const Program after =
        sunk(fmt::format("for k in 0..+min({}, 5) {{ y[k, i] = x[k, i] }}", bound));
    EXPECT_EQ(after.phases[0].body->var->name, "i");
  }
}

TEST(sink_loops, what_stands_beside_a_loop_or_under_a_condition_keeps_its_order) {
  sunk(R"(
    alloc stack a: f32[2] {
      a[0] = x[0, i]
      a[1] = 1.0
      for k in 0..5 {
        for j in 0..2 { a[j] = a[j] * 2.0 + x[k, i] }
        if k < i {
          alloc stack b: f32[1] {
            b[0] = a[1] - a[0]
            y[k, i] = b[0]
          }
        }
        a[1] = a[0]
      }
      y[4, i] = a[0]
    })");
}

}  // namespace
}  // namespace hone::ir
