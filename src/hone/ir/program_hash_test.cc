#include "hone/ir/program_hash.h"

#include <gtest/gtest.h>

#include <map>

#include "hone/ir/parser.h"
#include "hone/ir/printer.h"
#include "hone/ir/random_program.h"

namespace hone::ir {
namespace {

constexpr int kPrograms = 300;

TEST(program_hash, of_another_copy_is_the_same) {
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    const Program program = random_program(seed);
    const Result<Program> copy = parse_program(print(program));
    ASSERT_TRUE(copy.ok()) << copy.status().message();
    EXPECT_EQ(hash(*copy), hash(program)) << print(program);
    EXPECT_EQ(identity(*copy), identity(program)) << print(program);
  }
}

TEST(program_hash, differs_where_programs_do) {
  std::map<uint64_t, std::string> seen;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    Program program = random_program(seed);
    program.name = "p";
    const auto [place, added] = seen.emplace(hash(program), print(program));
    EXPECT_TRUE(added || place->second == print(program)) << print(program);
  }
}

Program copy_program(const std::string& loop, const std::string& from, int64_t extent,
                     ForKind kind) {
  const BufferPtr x = make_buffer(from, DType::kF32, {16}), y = make_buffer("y", DType::kF32, {16});
  const VarPtr i = make_var(loop);
  return {"copy",
          {{x, Role::kInput}, {y, Role::kOutput}},
          {{make_for(i, constant(0), constant(extent), kind,
                     {make_store(y, {variable(i)}, load(x, {variable(i)}))})}}};
}

TEST(program_hash, names_do_not_count_but_all_else_does) {
  const uint64_t one = hash(copy_program("i", "x", 16, ForKind::kSerial));
  EXPECT_EQ(hash(copy_program("oc.1", "input", 16, ForKind::kSerial)), one);
  const Identity self = identity(copy_program("i", "x", 16, ForKind::kSerial));
  EXPECT_EQ(identity(copy_program("oc.1", "input", 16, ForKind::kSerial)), self);
  EXPECT_NE(identity(copy_program("i", "x", 15, ForKind::kSerial)), self);
  EXPECT_NE(self.first, self.second);
  EXPECT_NE(hash(copy_program("i", "x", 15, ForKind::kSerial)), one);
  EXPECT_NE(hash(copy_program("i", "x", 16, ForKind::kVectorized)), one);
  Program marked = copy_program("i", "x", 16, ForKind::kSerial);
  const Stmt& loop = marked.phases[0].body;
  marked.phases[0].body =
      make_for(loop->var, loop->min, loop->extent, loop->for_kind, loop->body, true);
  EXPECT_EQ(hash(marked), one);
  EXPECT_NE(identity(marked), self) << "it is another text";
  Program other = copy_program("i", "x", 16, ForKind::kSerial);
  other.params[0].role = Role::kConstant;
  EXPECT_NE(hash(other), one);
}

TEST(program_hash, the_order_of_integer_sums_does_not_count) {
  const auto program = [](bool swapped, int64_t stride) {
    const BufferPtr y = make_buffer("y", DType::kF32, {16});
    const VarPtr i = make_var("i"), j = make_var("j");
    const Expr a = variable(i) * stride, b = variable(j);
    const Expr index = swapped ? b + (a + 1) : a + b + 1;
    const Stmt inner = make_for(j, constant(0), constant(4), ForKind::kSerial,
                                {make_store(y, {index}, constant_float(0, DType::kF32))});
    return hash({"sum",
                 {{y, Role::kOutput}},
                 {{make_for(i, constant(0), constant(3), ForKind::kSerial, {inner})}}});
  };
  EXPECT_EQ(program(true, 4), program(false, 4));
  EXPECT_NE(program(true, 4), program(true, 3));
}

}  // namespace
}  // namespace hone::ir
