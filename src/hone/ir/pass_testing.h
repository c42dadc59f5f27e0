// ir/pass_testing.h - helpers for tests of passes, which compare programs before and after a pass.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "hone/ir/interpreter.h"
#include "hone/ir/parser.h"
#include "hone/ir/printer.h"
#include "hone/ir/verifier.h"

namespace hone::ir::testing {

// Parses a program. If the text is not valid, the test fails and the program is empty.
inline Program parsed(const std::string& text) {
  Result<Program> program = parse_program(text);
  EXPECT_TRUE(program.ok()) << program.status().message() << text;
  return program.ok() ? *std::move(program) : Program();
}

// Makes a program with these params and one phase, which runs these statements once.
inline Program parsed_block(const std::string& params, const std::string& body) {
  return parsed("program block {\n" + params + "  phase {\n    for block in 0..1 {\n" + body +
                "}\n  }\n}\n");
}

inline void expect_valid(const Program& program) {
  const Status verified = verify(program);
  EXPECT_TRUE(verified.ok()) << verified.message() << print(program);
}

// Expects `after` to be valid and to compute what `before` computes for the same params. Results
// may differ by tolerance * (1 + |value|). Elements that are not stored are NaN.
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

// Runs a pass on a parsed_block and returns how many loops are left. It expects the same results,
// bit by bit.
template <typename Pass>
int64_t loops_after(const Pass& pass, const std::string& params, const std::string& body) {
  const Program before = parsed_block(params, body);
  const Program after = pass(before);
  expect_same_results(before, after);
  return count(after.phases[0].body, StmtKind::kFor) - 1;
}

}  // namespace hone::ir::testing
