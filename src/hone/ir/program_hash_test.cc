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
  EXPECT_NE(hash(copy_program("i", "x", 15, ForKind::kSerial)), one);
  EXPECT_NE(hash(copy_program("i", "x", 16, ForKind::kVectorized)), one);
  Program other = copy_program("i", "x", 16, ForKind::kSerial);
  other.params[0].role = Role::kConstant;
  EXPECT_NE(hash(other), one);
}

}  // namespace
}  // namespace hone::ir
