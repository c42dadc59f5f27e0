// ir/pass_testing.h - programs before and after a pass, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "hone/ir/interpreter.h"
#include "hone/ir/parser.h"
#include "hone/ir/printer.h"
#include "hone/ir/verifier.h"

namespace hone::ir::testing {

// An empty program if the text is none, which fails the test.
inline Program parsed(const std::string& text) {
  Result<Program> program = parse_program(text);
  EXPECT_TRUE(program.ok()) << program.status().message() << text;
  return program.ok() ? *std::move(program) : Program();
}

// Statements that run once in the one phase of a program with these params.
inline Program parsed_block(const std::string& params, const std::string& body) {
  return parsed("program block {\n" + params + "  phase {\n    for block in 0..1 {\n" + body +
                "}\n  }\n}\n");
}

inline void expect_valid(const Program& program) {
  const Status verified = verify(program);
  EXPECT_TRUE(verified.ok()) << verified.message() << print(program);
}

// `after` is valid and gives what `before` gives, for the same params; they may differ by the
// tolerance times 1 + the value. What is not stored is NaN.
inline void expect_same_results(const Program& before, const Program& after, double tolerance = 0) {
  expect_valid(after);
  std::vector<Tensor> expected = random_arguments(before, 3), found = random_arguments(before, 3);
  EXPECT_TRUE(run(before, expected).ok());
  EXPECT_TRUE(run(after, found).ok());
  for (size_t t = 0; t < expected.size(); ++t) {
    for (int64_t i = 0; i < expected[t].size(); ++i) {
      const double want = expected[t].at(i), have = found[t].at(i);
      EXPECT_TRUE(want == have || (std::isnan(want) && std::isnan(have)) ||
                  std::fabs(want - have) <= tolerance * (1 + std::fabs(want)))
          << want << " " << have;
    }
  }
}

inline int64_t count(const Stmt& s, StmtKind kind) {
  int64_t n = s->kind == kind;
  for (const Stmt& child : s->body) n += count(child, kind);
  return n;
}

// Loops that a pass leaves of a parsed_block; what is computed is the same, bit by bit.
template <typename Pass>
int64_t loops_after(const Pass& pass, const std::string& params, const std::string& body) {
  const Program before = parsed_block(params, body);
  const Program after = pass(before);
  expect_same_results(before, after);
  return count(after.phases[0].body, StmtKind::kFor) - 1;
}

}  // namespace hone::ir::testing
