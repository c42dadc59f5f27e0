#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "hone/compute/dag_testing.h"
#include "hone/ir/printer.h"
#include "hone/schedule/lower.h"
#include "hone/space/space.h"
#include "hone/space/space_testing.h"

namespace hone::space {
namespace {

using compute::testing::conv2d;
using compute::testing::ConvShape;

template <typename F>
void for_each_store(const ir::StmtNode& s, const F& f) {
  if (s.kind == ir::StmtKind::kStore) f(s);
  for (const ir::Stmt& child : s.body) for_each_store(*child, f);
}

std::set<ir::BufferPtr> read_by(const ir::StmtNode& store) {
  std::set<ir::BufferPtr> buffers;
  ir::visit(store.value, [&](const ir::Expr& e) {
    if (e->op == ir::Op::kLoad) buffers.insert(e->buffer);
  });
  return buffers;
}

ir::BufferPtr param(const ir::Program& program, std::string_view name) {
  for (const ir::Param& p : program.params) {
    if (p.buffer->name == name) return p.buffer;
  }
  return nullptr;
}

// "" or what keeps the program of a convolution with bias, residual and relu from being what it
// should: one pass over the results, which adds and clamps what the transform back has left of a
// vector of tiles' results, and weights that are transformed at compile time.
std::string flaw_of(const ir::Program& program, int64_t results_of_tile) {
  const ir::BufferPtr weight = param(program, "weight"), bias = param(program, "bias"),
                      other = param(program, "other"), out = param(program, "out");
  std::set<ir::BufferPtr> packed, read;
  for (const ir::Param& p : program.params) {
    if (p.role == ir::Role::kWorkspace) return p.buffer->name + " is kept in memory";
  }
  int passes = 0, stores = 0;
  std::string flaw;
  for (const ir::Phase& phase : program.phases) {
    passes += phase.prepare ? 0 : 1;
    for_each_store(*phase.body, [&](const ir::StmtNode& store) {
      const std::set<ir::BufferPtr> loads = read_by(store);
      if (phase.prepare && loads.contains(weight)) packed.insert(store.buffer);
      // Of a transform in two steps, the second reads what the first has left.
      if (phase.prepare && std::any_of(loads.begin(), loads.end(),
                                       [&](const ir::BufferPtr& b) { return packed.contains(b); }))
        packed.insert(store.buffer);
      if (phase.prepare) return;
      read.insert(loads.begin(), loads.end());
      if (store.buffer != out) return;
      ++stores;
      const bool of_tile = std::any_of(loads.begin(), loads.end(), [&](const ir::BufferPtr& b) {
        return !param(program, b->name) && b->num_elements() <= results_of_tile;
      });
      if (!loads.contains(bias) || !loads.contains(other) || !of_tile)
        flaw = "a result is stored without its bias or the other operand, or not from a tile";
    });
  }
  if (!flaw.empty()) return flaw;
  if (passes != 1) return fmt::format("{} phases at run time", passes);
  if (stores == 0) return "nothing is stored";
  if (read.contains(out)) return "results are read again";
  if (read.contains(weight)) return "weights are transformed at run time";
  const bool reads_packed = std::any_of(packed.begin(), packed.end(),
                                        [&](const ir::BufferPtr& b) { return read.contains(b); });
  return reads_packed ? "" : "no transformed weights are read";
}

TEST(rule_winograd, results_are_finished_in_the_tile_of_the_transform_back) {
  const ConvShape shapes[] = {
      {.h = 12, .w = 12, .ic = 8, .oc = 8, .residual = true},
      {.h = 13, .w = 31, .ic = 7, .oc = 33, .residual = true},
      {.h = 56, .w = 56, .ic = 64, .oc = 64, .residual = true},
      {.h = 17, .w = 13, .ic = 6, .oc = 16, .stride = 2, .residual = true},
      {.h = 9, .w = 14, .ic = 5, .oc = 8, .kernel = 5, .pad = 2, .residual = true},
      {.h = 5, .w = 19, .ic = 5, .oc = 9, .kernel = 1, .residual = true, .kernel_w = 3}};
  std::vector<target::Target> targets = {narrow()};
  for (const char* name : {"x86-64-avx2", "x86-64-avx512"}) targets.push_back(*target::find(name));
  for (const ConvShape& shape : shapes) {
    const compute::Dag dag = conv2d(shape);
    for (const target::Target& target : targets) {
      const Result<Space> space = Space::create(dag, target);
      ASSERT_TRUE(space.ok()) << space.status().message();
      int found = 0;
      for (const Point& point : space->default_points()) {
        if (!space->algorithm(point.sketch).starts_with("winograd_")) continue;
        ++found;
        const schedule::Steps steps = space->steps(point);
        const Result<ir::Program> program = schedule::lower(dag, steps);
        ASSERT_TRUE(program.ok()) << program.status().message();
        const std::string name = space->algorithm(point.sketch);
        const int64_t outputs = name.back() - '0';
        EXPECT_EQ(flaw_of(*program, outputs * outputs * target.cpu().lanes(4)), "")
            << name << "\n"
            << schedule::to_string(steps) << ir::print(*program);
      }
      EXPECT_GE(found, 2) << compute::describe(dag);
    }
  }
}

// The direct program of the same convolution has no transformed weights: the check sees it.
TEST(rule_winograd, what_is_finished_elsewhere_is_seen) {
  const compute::Dag dag = conv2d({.h = 12, .w = 12, .ic = 8, .oc = 8, .residual = true});
  const auto flaw = [&](const char* text) {
    const Result<schedule::Steps> steps = schedule::parse_steps(text);
    EXPECT_TRUE(steps.ok());
    const Result<ir::Program> program = schedule::lower(dag, *steps);
    EXPECT_TRUE(program.ok());
    return flaw_of(*program, 144);
  };
  EXPECT_NE(flaw(""), "");
  EXPECT_NE(flaw("winograd(conv2d, 4)\n"), "");  // every stage in a loop of its own
}

}  // namespace
}  // namespace hone::space
